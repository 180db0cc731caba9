import { expect, test } from "bun:test";
import type { PodRow } from "../../src/page/pod-row.ts";
import { applySnapshot, applyUpdate, findPod, mayMissPods, podWithCause, shownPod } from "../../src/page/store.ts";
import type { Explanation, NodeState, NodeUsage, Snapshot } from "../../src/page/wire.ts";
import { podRow as row } from "../support/pod-row.ts";

const node = { cpuCores: 1 } as NodeUsage;

const snapshot: Snapshot = {
  access: { privileged: false, canAct: false },
  node: { name: "n" } as NodeState,
  pods: [row("a"), row("b")],
  isComplete: true,
  rejections: [],
  workloads: [],
  services: [],
  usage: { times: [1000], node, pods: { a: { cpuCores: [0.5], memoryBytes: [10] } } },
  now: 5000,
};

test("an update changes, adds and removes pods; the others stay the same objects", () => {
  const before = applySnapshot(snapshot, 4000);
  const after = applyUpdate(before, { pods: [row("a", { restarts: 1 }), row("c")] }, 4000);
  expect([...after.pods.keys()]).toEqual(["a", "c"]);
  expect(after.pods.get("a")?.restarts).toBe(1);
  expect(after.clockOffsetMs).toBe(1000);
  const again = applyUpdate(after, { pods: [row("a", { restarts: 1 }), row("c", { restarts: 2 })] }, 4000);
  expect(again.pods.get("a")).toBe(after.pods.get("a")!);
});

test("every spark line has one value for each time, ten minutes at most", () => {
  let state = applySnapshot(snapshot, 4000);
  const add = (time: number, pods: Record<string, { cpuCores: number; memoryBytes: number }>) => {
    state = applyUpdate(state, { usage: { time, node, pods } }, time - 1000);
  };
  add(11_000, { a: { cpuCores: 1, memoryBytes: 1 } });
  add(21_000, { a: { cpuCores: 2, memoryBytes: 2 }, b: { cpuCores: 3, memoryBytes: 3 } });
  add(31_000, { b: { cpuCores: 4, memoryBytes: 4 } });
  expect(state.times).toEqual([1000, 11_000, 21_000, 31_000]);
  expect(state.sparks.get("a")?.cpuCores).toEqual([0.5, 1, 2, null]);
  expect(state.sparks.get("b")?.cpuCores).toEqual([null, null, 3, 4]);
  add(612_000, { b: { cpuCores: 5, memoryBytes: 5 } });
  expect(state.times).toEqual([21_000, 31_000, 612_000]);
  expect(state.sparks.get("b")?.cpuCores).toEqual([3, 4, 5]);
  for (let time = 1_000_000; time < 2_000_000; time += 1000) add(time, { b: { cpuCores: 1, memoryBytes: 1 } });
  expect(state.times.length).toBe(60);
  expect(state.sparks.get("b")?.cpuCores.length).toBe(60);
});

test("a snapshot after a break keeps the rows that did not change", () => {
  const before = applySnapshot(snapshot, 4000);
  const after = applySnapshot({ ...snapshot, pods: [row("a"), row("b", { restarts: 1 })] }, 5000, before);
  expect(after.pods.get("a")).toBe(before.pods.get("a")!);
  expect(after.pods.get("b")?.restarts).toBe(1);
});

test("a clock that was set back begins the spark lines again", () => {
  const before = applySnapshot(snapshot, 4000);
  const usage = { time: 500, node, pods: { a: { cpuCores: 1, memoryBytes: 1 } } };
  const after = applyUpdate(before, { usage }, 5000);
  expect([after.times, after.sparks.get("a")?.cpuCores]).toEqual([[500], [1]]);
});

test("of two pods of one name the new one is found", () => {
  const pods = [
    row("web", { uid: "1", status: "Terminating", createdAt: 3 }),
    row("web", { uid: "2", createdAt: 2 }),
    row("web", { uid: "3", createdAt: 1 }),
  ];
  const state = applySnapshot({ ...snapshot, pods }, 0);
  expect(findPod(state.pods, "default", "web")?.uid).toBe("2");
  expect(findPod(state.pods, "other", "web")).toBeUndefined();
});

test("pods may be late until every source was read; a refused manifest does not make them late", () => {
  const refused = { source: "/pods/a.yaml", line: 1, column: 1, message: "" };
  const late = (isComplete: boolean, count: number) =>
    mayMissPods({ isComplete, rejections: Array.from({ length: count }, () => refused) });
  expect([late(true, 0), late(false, 0), late(false, 1), late(true, 1)]).toEqual([false, true, false, false]);
  expect(mayMissPods({ isComplete: false, rejections: [{ ...refused, isUnread: true }] })).toBe(true);
});

test("a session that has expired is remembered until there is one again", () => {
  const access = { privileged: true, canAct: true };
  let state = applySnapshot({ ...snapshot, access }, 4000);
  expect(state.hasExpired).toBe(false);
  state = applySnapshot(snapshot, 5000, state);
  expect([state.privileged, state.hasExpired]).toEqual([false, true]);
  state = applySnapshot(snapshot, 6000, state);
  expect(state.hasExpired).toBe(true);
  expect(applySnapshot({ ...snapshot, access }, 7000, state).hasExpired).toBe(false);
});

test("ages follow the server's clock, also when a clock is set while the page is open", () => {
  const before = applySnapshot(snapshot, 4000);
  const usage = { time: 3_600_000, node, pods: {} };
  const offset = (receivedAtMs: number) => applyUpdate(before, { usage }, receivedAtMs).clockOffsetMs;
  expect(offset(3_600_000 - 3000)).toBe(1000);
  expect(offset(7_200_000)).toBe(-3_600_000);
  expect(offset(0)).toBe(3_600_000);
});

test("a pod is shown on while a kubelet that was just started may not know it yet", () => {
  const place = { namespace: "default", name: "a" };
  const state = (pods: PodRow[], isComplete: boolean) => applySnapshot({ ...snapshot, pods, isComplete }, 0);
  const last = row("a");
  expect(shownPod(state([], false), place, last)).toBe(last);
  expect(shownPod(state([], true), place, last)).toBeUndefined();
  expect(shownPod(state([], false), place, row("b"))).toBeUndefined();
  expect(shownPod(state([row("a", { restarts: 1 })], false), place, last)?.restarts).toBe(1);
});

test("a workload that does not say why it is not ready has a pod that says it", () => {
  const why = "container app: its image cannot be pulled";
  const pods = [row("a", { owner: "Deployment web" }), row("b", { owner: "Deployment web", why }), row("c", { why })];
  const workload = { namespace: "default", kind: "Deployment", name: "web", source: "", lastRun: 0, nextRun: 0 };
  const shown = (isGood: boolean, explanation: Explanation[] = []) =>
    podWithCause(applySnapshot({ ...snapshot, pods }, 0).pods, { ...workload, status: "", isGood, explanation })?.name;
  expect([shown(false), shown(true), shown(false, [{ problem: "", facts: [], fix: "" }])]).toEqual([
    "b",
    undefined,
    undefined,
  ]);
});
