import { describe, expect, test } from "bun:test";
import { POD_COLUMNS, summarizePod } from "../../../src/apiserver/printers/pod-row.ts";
import { ago, ended, has, NOW, running, type ShownPod, shown, waiting } from "../../cli/print/pods.ts";

const INIT_WAITS = waiting("PodInitializing");
const idle = [has("app", INIT_WAITS)];

interface Row {
  when: string;
  pod: ShownPod;
  want: [ready: string, status: string, restarts: string];
}

const ROWS: Row[] = [
  { when: "all runs", pod: { ready: true }, want: ["1/1", "Running", "0"] },
  {
    when: "one of two is ready",
    pod: { mains: [has("a", running), has("b", running, { ready: false })] },
    want: ["1/2", "Running", "0"],
  },
  {
    when: "nothing is known of containers yet",
    pod: { mains: [], spec: { containers: shown().spec.containers }, status: { phase: "Pending" } },
    want: ["0/1", "Pending", "0"],
  },
  {
    when: "a container waits",
    pod: { mains: [has("app", waiting("ContainerCreating"))], status: { phase: "Pending" } },
    want: ["0/1", "ContainerCreating", "0"],
  },
  {
    when: "an image cannot be pulled",
    pod: { mains: [has("app", waiting("ImagePullBackOff"))], status: { phase: "Pending" } },
    want: ["0/1", "ImagePullBackOff", "0"],
  },
  {
    when: "a container crashes again and again",
    pod: {
      mains: [
        has("app", waiting("CrashLoopBackOff"), {
          restartCount: 3,
          lastState: ended("Error", 1, { finishedAt: ago(301) }),
        }),
      ],
    },
    want: ["0/1", "CrashLoopBackOff", "3 (5m1s ago)"],
  },
  {
    when: "the first container with a problem gives the reason",
    pod: { mains: [has("a", waiting("ErrImagePull")), has("b", waiting("CrashLoopBackOff"))] },
    want: ["0/2", "ErrImagePull", "0"],
  },
  {
    when: "restarts are counted over containers, the last one dated",
    pod: {
      mains: [
        has("a", running, { restartCount: 1, lastState: ended("Error", 1, { finishedAt: ago(40) }) }),
        has("b", running, { restartCount: 2, lastState: ended("Error", 1, { finishedAt: ago(20) }) }),
      ],
    },
    want: ["2/2", "Running", "3 (20s ago)"],
  },
  {
    when: "it has done its work",
    pod: { mains: [has("app", ended("Completed"))], status: { phase: "Succeeded" } },
    want: ["0/1", "Completed", "0"],
  },
  {
    when: "it failed",
    pod: { mains: [has("app", ended("Error", 1))], status: { phase: "Failed" } },
    want: ["0/1", "Error", "0"],
  },
  { when: "memory ran out", pod: { mains: [has("app", ended("OOMKilled", 137))] }, want: ["0/1", "OOMKilled", "0"] },
  {
    when: "an end without a reason has its code",
    pod: { mains: [has("app", ended("", 3))] },
    want: ["0/1", "ExitCode:3", "0"],
  },
  {
    when: "or its signal",
    pod: { mains: [has("app", ended("", 137, { signal: 9 }))] },
    want: ["0/1", "Signal:9", "0"],
  },
  {
    when: "one is done, the other continues, the pod is ready",
    pod: { mains: [has("a", ended("Completed")), has("b", running)], ready: true },
    want: ["1/2", "Running", "0"],
  },
  {
    when: "one is done, the other continues, the pod is not ready",
    pod: { mains: [has("a", ended("Completed")), has("b", running)] },
    want: ["1/2", "NotReady", "0"],
  },
  {
    when: "it was evicted",
    pod: { mains: [], spec: { containers: shown().spec.containers }, status: { phase: "Failed", reason: "Evicted" } },
    want: ["0/1", "Evicted", "0"],
  },
  {
    when: "the node refused it",
    pod: { mains: [], spec: { containers: shown().spec.containers }, status: { phase: "Failed", reason: "OutOfpods" } },
    want: ["0/1", "OutOfpods", "0"],
  },
  {
    when: "it is being removed",
    pod: { metadata: { deletionTimestamp: ago(1) }, ready: true },
    want: ["1/1", "Terminating", "0"],
  },
  {
    when: "what is removed after its end shows the end",
    pod: {
      metadata: { deletionTimestamp: ago(1) },
      mains: [has("app", ended("Completed"))],
      status: { phase: "Succeeded" },
    },
    want: ["0/1", "Completed", "0"],
  },
  {
    when: "the first init container runs",
    pod: { init: [has("i0", running, { ready: false }), has("i1", INIT_WAITS)], mains: idle },
    want: ["0/1", "Init:0/2", "0"],
  },
  {
    when: "the second one runs",
    pod: { init: [has("i0", ended("Completed")), has("i1", running, { ready: false })], mains: idle },
    want: ["0/1", "Init:1/2", "0"],
  },
  {
    when: "an init container fails",
    pod: { init: [has("i0", ended("Error", 1), { restartCount: 2 })], mains: idle },
    want: ["0/1", "Init:Error", "2"],
  },
  {
    when: "an init container fails without a reason",
    pod: { init: [has("i0", ended("", 4))], mains: idle },
    want: ["0/1", "Init:ExitCode:4", "0"],
  },
  {
    when: "an init container crashes again and again",
    pod: {
      init: [has("i0", waiting("CrashLoopBackOff"), { restartCount: 5, lastState: ended("Error", 1) })],
      mains: idle,
    },
    want: ["0/1", "Init:CrashLoopBackOff", "5 (30s ago)"],
  },
  {
    when: "init containers are done, the mains not begun",
    pod: { init: [has("i0", ended("Completed"))], mains: idle, initialized: true },
    want: ["0/1", "PodInitializing", "0"],
  },
  {
    when: "restarts of init containers that are done do not count",
    pod: {
      init: [has("i0", ended("Completed"), { restartCount: 4, lastState: ended("Error", 1) })],
      initialized: true,
      ready: true,
    },
    want: ["1/1", "Running", "0"],
  },
  {
    when: "a sidecar counts like a main container",
    pod: {
      init: [has("side", running, { started: true, restartCount: 1, lastState: ended("Error", 1) })],
      initialized: true,
      ready: true,
    },
    want: ["2/2", "Running", "1 (30s ago)"],
  },
  {
    when: "a sidecar that is not ready",
    pod: { init: [has("side", running, { started: true, ready: false })], initialized: true },
    want: ["1/2", "Running", "0"],
  },
  {
    when: "a sidecar that has not started delays the pod",
    pod: { init: [has("side", running, { started: false, ready: false }), has("i1", INIT_WAITS)], mains: idle },
    want: ["0/2", "Init:0/2", "0"],
  },
  {
    when: "a sidecar that crashed later, when the pod was initialized",
    pod: { init: [has("side", waiting("CrashLoopBackOff"), { started: false, restartCount: 2 })], initialized: true },
    want: ["1/2", "Init:CrashLoopBackOff", "2"],
  },
];

const cellsOf = (pod: ReturnType<typeof shown>) => POD_COLUMNS.map(({ cell }) => cell(pod, NOW));

describe("a pod as kubectl shows it", () => {
  test.each(ROWS)("$when: $want", ({ pod, want }) => {
    const [, ready, status, restarts] = cellsOf(shown(pod));
    expect([ready, status, restarts]).toEqual(want);
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
