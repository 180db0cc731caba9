import { expect, test } from "bun:test";
import type { ContainerStatus, PodStatus } from "../../../src/base/api/pod.ts";
import type { PodSnapshot } from "../../../src/base/model/pod-snapshot.ts";
import type { PodEnd } from "../../../src/plan/pod-plan.ts";
import {
  type ContainerStatusInput,
  computeContainerStatus,
  computePodStatus,
} from "../../../src/plan/status/compute-pod-status.ts";
import { aContainer, anExited, aPod, aRunning, EPOCH } from "../../support/builders.ts";

const START = `${EPOCH.toISOString().slice(0, 19)}Z`;
const backOff = { reason: "CrashLoopBackOff", message: "back-off 10s" } as const;
const neverStarted = (restartCount: number) => {
  const { startedAt: _, ...container } = anExited("app", 127, { restartCount, error: "exec: no such file" });
  return { ...container, state: "created" as const };
};

function statusOf(given: Partial<ContainerStatusInput>): ContainerStatus {
  return computeContainerStatus({
    container: aContainer(),
    isInit: false,
    isSidecar: false,
    attempts: [],
    restarts: true,
    sandboxId: "sandbox-0",
    isPostStartPending: false,
    terminationMessages: new Map(),
    imageNames: new Map(),
    defaultWaitingReason: "ContainerCreating",
    ...given,
  });
}

const cannotStart = 'failed to start container "app-0": Error response from daemon: exec: no such file';
const notReady = { ready: false, started: false };
const probed = aContainer({ readinessProbe: { exec: { command: ["true"] } } } as never);

test.each<[when: string, given: Partial<ContainerStatusInput>, want: Partial<ContainerStatus>]>([
  [
    "nothing is there yet",
    {},
    { state: { waiting: { reason: "ContainerCreating" } }, lastState: {}, ...notReady, imageID: "" },
  ],
  [
    "it runs and has no probe",
    { attempts: [aRunning()] },
    { state: { running: { startedAt: START } }, ready: true, started: true, containerID: "docker://app-0" },
  ],
  [
    "it runs and the prober speaks of its predecessor",
    { container: probed, attempts: [aRunning()], verdict: { containerId: "old", started: true, ready: true } },
    { ready: false, started: true },
  ],
  [
    "its postStart hook has not ended",
    { attempts: [aRunning()], isPostStartPending: true },
    { state: { running: { startedAt: START } }, ...notReady },
  ],
  [
    "it crashed and waits",
    { attempts: [anExited("app", 3)], waiting: backOff },
    { state: { waiting: backOff }, ...notReady, restartCount: 0 },
  ],
  [
    "it runs again after a crash",
    { attempts: [aRunning("app", { restartCount: 1 }), anExited("app", 3, { restartCount: 0 })] },
    { restartCount: 1, ready: true, containerID: "docker://app-1" },
  ],
  [
    "it could not be started",
    { attempts: [neverStarted(0)] },
    { state: { waiting: { reason: "RunContainerError", message: cannotStart } }, ...notReady },
  ],
  [
    "it could not be started and is not to be tried again",
    { attempts: [neverStarted(0)], restarts: false, waiting: { reason: "RunContainerError", message: "no such file" } },
    {
      state: { terminated: expect.objectContaining({ exitCode: 127, reason: "ContainerCannotRun" }) },
      lastState: {},
      ready: false,
    },
  ],
])("%s", (_when, given, want) => expect(statusOf(given)).toMatchObject(want));

test.each([
  [0, false, "Completed"],
  [3, false, "Error"],
  [137, true, "OOMKilled"],
  // A child of pid 1 was killed: recorded of a kubelet.
  [5, true, "OOMKilled"],
])("ended with %s, killed for memory %s: %s", (exitCode, oomKilled, reason) => {
  const { state, ready } = statusOf({ attempts: [anExited("app", exitCode, { oomKilled })] });
  expect(state.terminated).toMatchObject({ exitCode, reason, containerID: "docker://app-0" });
  expect(ready).toBe(false);
});

test("the last state is that of the dead predecessor, or of a dead container that waits", () => {
  const crashed = { exitCode: 3, reason: "Error" };
  const again = statusOf({ attempts: [aRunning("app", { restartCount: 1 }), anExited("app", 3)] });
  expect(again.lastState.terminated).toMatchObject(crashed);
  expect(statusOf({ attempts: [anExited("app", 3)], waiting: backOff }).lastState.terminated).toMatchObject(crashed);
  const cannotRun = { exitCode: 127, reason: "ContainerCannotRun", message: "exec: no such file" };
  expect(statusOf({ attempts: [neverStarted(0)] }).lastState.terminated).toMatchObject(cannotRun);
  expect(statusOf({ attempts: [neverStarted(0)], waiting: backOff }).lastState.terminated).toMatchObject(cannotRun);
});

test("an init container is ready once it has ended well, and never started; a sidecar is like any other", () => {
  const done = statusOf({ isInit: true, attempts: [anExited()] });
  expect(done.ready).toBe(true);
  expect("started" in done).toBe(false);
  expect(statusOf({ isInit: true, attempts: [aRunning()] }).ready).toBe(false);
  expect(statusOf({ isInit: true, isSidecar: true, attempts: [aRunning()] })).toMatchObject({
    ready: true,
    started: true,
  });
});

test("an image is called what the engine calls it first, its id by digest when it has one", () => {
  const imageNames = new Map([["sha256:busybox", { tag: "registry/app:1", digest: "registry/app@sha256:abc" }]]);
  expect(statusOf({ attempts: [aRunning()], imageNames })).toMatchObject({
    image: "registry/app:1",
    imageID: "docker-pullable://registry/app@sha256:abc",
  });
  expect(statusOf({ attempts: [aRunning()] })).toMatchObject({
    image: "busybox:test",
    imageID: "docker://sha256:busybox",
  });
});

const POD = aPod({ restartPolicy: "OnFailure" });

function podStatusOf(containers: PodSnapshot["containers"], over: { end?: PodEnd; previous?: PodStatus } = {}) {
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
  const before = podStatusOf([succeeded, failed], { end });
  const wanted = { state: { terminated: { exitCode: 0 } }, lastState: { terminated: { exitCode: 4 } } };
  expect(before.containerStatuses).toMatchObject([wanted]);
  expect(podStatusOf([succeeded], { end, previous: before }).containerStatuses).toMatchObject([wanted]);
  // While it continues, and for another container, only what is there counts.
  expect(podStatusOf([succeeded], { previous: before }).containerStatuses?.[0]?.lastState).toEqual({});
  const third = anExited(name, 0, { restartCount: 2 });
  expect(podStatusOf([third], { end, previous: before }).containerStatuses?.[0]?.lastState).toEqual({});
});

test("a pod that failed is not ready, though its containers run on for their grace period", () => {
  const running = aRunning(POD.spec.containers[0]!.name);
  const { containerStatuses, conditions } = podStatusOf([running], {
    end: { phase: "Failed", reason: "DeadlineExceeded" },
  });
  expect(containerStatuses).toMatchObject([{ ready: true }]);
  for (const type of ["Ready", "ContainersReady"])
    expect(conditions).toContainEqual(expect.objectContaining({ type, status: "False", reason: "PodFailed" }));
});
