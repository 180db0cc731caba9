import { expect, test } from "bun:test";
import { COLUMNS } from "../../src/page/pod-columns.tsx";
import { DEFAULT_FILTER, type RowFilter, type Spark, selectRows } from "../../src/page/store.ts";
import { podRow as row } from "../support/pod-row.ts";

const PODS = new Map(
  [
    row("c", { restarts: 2, createdAt: 30, status: "Error", namespace: "a" }),
    row("a", { restarts: 0, createdAt: 10, status: "Running" }),
    row("b", {
      restarts: 10,
      createdAt: 20,
      status: "CrashLoopBackOff",
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
  ["status", ["b", "c", "new", "a"]],
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
});

test.each([
  ["SHOP", ["b"]],
  ["rolled", ["b"]],
  ["a/c", ["c"]],
  ["new.yaml", ["new"]],
  ["  pending ", ["new"]],
  ["nothing", []],
])("the filter %p", (text, wanted) => {
  expect(select({ text })).toEqual(wanted);
});
