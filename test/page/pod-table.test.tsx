import { expect, test } from "bun:test";
import { COLUMNS, sparkPath, sparkPositions } from "../../src/page/pod-table.tsx";
import { DEFAULT_FILTER, type RowFilter, selectRows } from "../../src/page/store.ts";
import type { Spark } from "../../src/page/wire.ts";
import { podRow as row } from "../support/pod-row.ts";

const PODS = new Map(
  [
    row("c", { restarts: 2, createdAt: 30, status: "Completed", namespace: "a", isReady: false }),
    row("a", { restarts: 0, createdAt: 10, status: "Running" }),
    row("b", {
      restarts: 10,
      createdAt: 20,
      status: "CrashLoopBackOff",
      isReady: false,
      why: "exit code 3",
      owner: "Deployment shop",
      notice: "rolled back",
    }),
    row("new", { restarts: 0, createdAt: 40, status: "Pending", source: "/m/new.yaml:3" }),
  ].map((pod) => [pod.uid, pod]),
);
const spark = (cpu: number, memory: number): Spark => ({ cpuCores: [9, cpu], memoryBytes: [9, memory] });
/** `new` has not been measured yet. */
const SPARKS = new Map([
  ["a", spark(0.1, 300)],
  ["b", spark(0.3, 100)],
  ["c", spark(0.2, 200)],
]);
function select(filter: Partial<RowFilter>) {
  const wanted = { ...DEFAULT_FILTER, ...filter };
  const compare = COLUMNS.find(({ key }) => key === wanted.sort)?.compare;
  return selectRows(PODS, wanted, compare && ((a, b) => compare(a, b, SPARKS))).map(({ name }) => name);
}

test.each([
  ["name", ["c", "a", "b", "new"]],
  ["status", ["c", "b", "new", "a"]],
  ["restarts", ["a", "new", "c", "b"]],
  ["age", ["new", "c", "b", "a"]],
  ["cpu", ["new", "a", "c", "b"]],
  ["memory", ["new", "b", "c", "a"]],
] as const)("rows by %s", (sort, wanted) => {
  expect(select({ sort })).toEqual([...wanted]);
});

test("the largest first; equal rows stay in the order of their names", () => {
  expect(select({ sort: "restarts", descending: true })).toEqual(["b", "c", "a", "new"]);
  expect(select({ sort: "cpu", descending: true })).toEqual(["b", "c", "a", "new"]);
  expect(select({ descending: true })).toEqual(["new", "b", "a", "c"]);
});

test("pods that are not ready, without those that have completed", () => {
  expect(select({ onlyNotReady: true })).toEqual(["b"]);
});

test.each([
  ["SHOP", ["b"]],
  ["rolled", ["b"]],
  ["a/c", ["c"]],
  ["new.yaml", ["new"]],
  ["  pending ", ["new"]],
  [" default/b   code EXIT ", ["b"]],
  ["exit missing", []],
  [".*", []],
])("the filter %p", (text, wanted) => {
  expect(select({ text })).toEqual(wanted);
});

test("the newest value is at the right end, and the distances are in proportion to time", () => {
  expect(sparkPositions([0, 300_000, 600_000], 600_000)).toEqual([0, 400, 800]);
  expect(sparkPositions([500_000, 600_000], 600_000)).toEqual([667, 800]);
  expect(sparkPositions([], 600_000)).toEqual([]);
});

test("a line reaches from the bottom for zero to the top for its largest value", () => {
  expect(sparkPath([0, 1, 2], [0, 400, 800])).toBe("M0 190L400 100L800 10");
  expect(sparkPath([0, 0], [0, 800])).toBe("M0 190L800 190");
});

test("a line has a gap where a value is not known", () => {
  expect(sparkPath([null, 1, 1, null, 1], [0, 200, 400, 600, 800])).toBe("M200 10L400 10M800 10");
  expect(sparkPath([null], [800])).toBe("");
});
