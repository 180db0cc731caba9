import { expect, test } from "bun:test";
import type { PodStatus } from "../../../src/base/api/pod.ts";
import type { PodSnapshot } from "../../../src/base/model/pod-snapshot.ts";
import type { PodEnd } from "../../../src/plan/pod-plan.ts";
import { computePodStatus } from "../../../src/plan/status/compute-pod-status.ts";
import { anExited, aPod, aRunning, EPOCH } from "../../support/builders.ts";

const POD = aPod({ restartPolicy: "OnFailure" });

function statusOf(containers: PodSnapshot["containers"], over: { end?: PodEnd; previous?: PodStatus } = {}) {
  return computePodStatus({
    pod: POD,
    snapshot: { uid: "u", name: "p", namespace: "default", sandboxes: [], containers },
    qosClass: "BestEffort",
    probes: new Map(),
    waiting: new Map(),
    postStartPending: new Set(),
    terminationMessages: new Map(),
    imageNames: new Map(),
    lastPodIps: [],
    hostIp: "192.0.2.1",
    startTime: EPOCH,
    now: EPOCH,
    ...over,
  });
}

test("a pod that has ended still reports the attempt before the last, whose container is gone", () => {
  const end: PodEnd = { phase: "Succeeded" };
  const name = POD.spec.containers[0]!.name;
  const [failed, succeeded] = [anExited(name, 4), anExited(name, 0, { restartCount: 1 })];
  const before = statusOf([succeeded, failed], { end });
  const wanted = { state: { terminated: { exitCode: 0 } }, lastState: { terminated: { exitCode: 4 } } };
  expect(before.containerStatuses).toMatchObject([wanted]);
  expect(statusOf([succeeded], { end, previous: before }).containerStatuses).toMatchObject([wanted]);
  // While it continues, and for another container, only what is there counts.
  expect(statusOf([succeeded], { previous: before }).containerStatuses?.[0]?.lastState).toEqual({});
  const third = anExited(name, 0, { restartCount: 2 });
  expect(statusOf([third], { end, previous: before }).containerStatuses?.[0]?.lastState).toEqual({});
});

test("a pod that failed is not ready, though its containers run on for their grace period", () => {
  const running = aRunning(POD.spec.containers[0]!.name);
  const { containerStatuses, conditions } = statusOf([running], {
    end: { phase: "Failed", reason: "DeadlineExceeded" },
  });
  expect(containerStatuses).toMatchObject([{ ready: true }]);
  for (const type of ["Ready", "ContainersReady"])
    expect(conditions).toContainEqual(expect.objectContaining({ type, status: "False", reason: "PodFailed" }));
});
