import { describe, expect, test } from "bun:test";
import { POD_COLUMNS, summarizePod } from "../../../src/apiserver/printers/rows.ts";
import { ago, ended, has, NOW, running, type ShownPod, shown, waiting } from "../../cli/print/pods.ts";

const INIT_WAITS = waiting("PodInitializing");
const idle = [has("app", INIT_WAITS)];

const NOTHING_YET = { mains: [], spec: { containers: shown().spec.containers } };
const crashed = (restartCount: number, finishedAt = ago(30)) => ({
  restartCount,
  lastState: ended("Error", 1, { finishedAt }),
});

const LOOPING = waiting("CrashLoopBackOff");
const DONE = has("app", ended("Completed"));
const COMPLETED = { mains: [DONE], status: { phase: "Succeeded" as const } };
const INIT_DONE = has("i0", ended("Completed"));
const UNSTARTED = { started: false, ready: false };

/** When, what is shown of it (ready, status, restarts), and the pod. */
const ROWS: [when: string, want: string, pod: ShownPod][] = [
  ["all runs", "1/1 Running 0", { ready: true }],
  ["one of two is ready", "1/2 Running 0", { mains: [has("a", running), has("b", running, { ready: false })] }],
  ["nothing is known of containers yet", "0/1 Pending 0", { ...NOTHING_YET, status: { phase: "Pending" } }],
  ["a container waits", "0/1 ContainerCreating 0", { mains: [has("app", waiting("ContainerCreating"))] }],
  ["an image cannot be pulled", "0/1 ImagePullBackOff 0", { mains: [has("app", waiting("ImagePullBackOff"))] }],
  [
    "it crashes again and again",
    "0/1 CrashLoopBackOff 3 (5m1s ago)",
    { mains: [has("app", LOOPING, crashed(3, ago(301)))] },
  ],
  [
    "the first one with a problem gives the reason",
    "0/2 ErrImagePull 0",
    { mains: [has("a", waiting("ErrImagePull")), has("b", LOOPING)] },
  ],
  [
    "restarts of all, the last one dated",
    "2/2 Running 3 (20s ago)",
    { mains: [has("a", running, crashed(1, ago(40))), has("b", running, crashed(2, ago(20)))] },
  ],
  ["it has completed", "0/1 Completed 0", COMPLETED],
  ["it failed", "0/1 Error 0", { mains: [has("app", ended("Error", 1))], status: { phase: "Failed" } }],
  ["memory ran out", "0/1 OOMKilled 0", { mains: [has("app", ended("OOMKilled", 137))] }],
  ["an end without a reason has its code", "0/1 ExitCode:3 0", { mains: [has("app", ended("", 3))] }],
  ["or its signal", "0/1 Signal:9 0", { mains: [has("app", ended("", 137, { signal: 9 }))] }],
  [
    "one is done, the pod is ready",
    "1/2 Running 0",
    { mains: [has("a", ended("Completed")), has("b", running)], ready: true },
  ],
  ["one is done, the pod is not ready", "1/2 NotReady 0", { mains: [has("a", ended("Completed")), has("b", running)] }],
  ["it was evicted", "0/1 Evicted 0", { ...NOTHING_YET, status: { phase: "Failed", reason: "Evicted" } }],
  ["the node refused it", "0/1 OutOfpods 0", { ...NOTHING_YET, status: { phase: "Failed", reason: "OutOfpods" } }],
  ["it is being removed", "1/1 Terminating 0", { metadata: { deletionTimestamp: ago(1) }, ready: true }],
  [
    "what is removed after its end shows the end",
    "0/1 Completed 0",
    { ...COMPLETED, metadata: { deletionTimestamp: ago(1) } },
  ],
  ["init runs", "0/1 Init:0/2 0", { init: [has("i0", running, { ready: false }), has("i1", INIT_WAITS)], mains: idle }],
  ["the second one runs", "0/1 Init:1/2 0", { init: [INIT_DONE, has("i1", running, { ready: false })], mains: idle }],
  ["its init fails", "0/1 Init:Error 2", { init: [has("i0", ended("Error", 1), { restartCount: 2 })], mains: idle }],
  ["it fails without a reason", "0/1 Init:ExitCode:4 0", { init: [has("i0", ended("", 4))], mains: idle }],
  [
    "an init one crashes again and again",
    "0/1 Init:CrashLoopBackOff 5 (30s ago)",
    { init: [has("i0", LOOPING, crashed(5))], mains: idle },
  ],
  ["init is done", "0/1 PodInitializing 0", { init: [INIT_DONE], mains: idle, initialized: true }],
  [
    "restarts of init ones do not count",
    "1/1 Running 0",
    { init: [has("i0", ended("Completed"), crashed(4))], initialized: true, ready: true },
  ],
  [
    "a sidecar counts like a main one",
    "2/2 Running 1 (30s ago)",
    { init: [has("side", running, { started: true, ...crashed(1) })], initialized: true, ready: true },
  ],
  [
    "a sidecar that is not ready",
    "1/2 Running 0",
    { init: [has("side", running, { started: true, ready: false })], initialized: true },
  ],
  [
    "one that has not started delays",
    "0/2 Init:0/2 0",
    { init: [has("side", running, UNSTARTED), has("i1", INIT_WAITS)], mains: idle },
  ],
  [
    "a sidecar that crashed later",
    "1/2 Init:CrashLoopBackOff 2",
    { init: [has("side", LOOPING, { started: false, restartCount: 2 })], initialized: true },
  ],
];

const cellsOf = (pod: ReturnType<typeof shown>) => POD_COLUMNS.map(({ cell }) => cell(pod, NOW));

describe("a pod as kubectl shows it", () => {
  test.each(ROWS)("%s: %s", (_, want, pod) => {
    expect(cellsOf(shown(pod)).slice(1, 4).join(" ")).toBe(want);
  });

  test("age counts from when the node began with the pod", () => {
    expect(cellsOf(shown())[4]).toBe("5m32s");
    expect(cellsOf(shown({ metadata: { creationTimestamp: ago(60) } }))[4]).toBe("60s");
    const refused = shown({
      status: { startTime: undefined as never },
      metadata: { annotations: { "kubernetes.io/config.seen": ago(7) } },
    });
    expect(cellsOf(refused)[4]).toBe("7s");
  });

  test("wide", () => {
    const gates = { readinessGates: [{ conditionType: "Ready" }, { conditionType: "example.com/up" }] };
    expect(cellsOf(shown({ ready: true })).slice(5)).toEqual(["172.17.0.2", "node1", "<none>", "<none>"]);
    expect(cellsOf(shown({ ready: true, spec: gates, status: { podIP: "" } })).slice(5)).toEqual([
      "<none>",
      "node1",
      "<none>",
      "1/2",
    ]);
  });

  test("a pod without any status is Unknown", () => {
    const { status: _, ...bare } = shown();
    expect(summarizePod(bare)).toMatchObject({ ready: 0, total: 1, status: "Unknown", restarts: 0 });
  });
});
