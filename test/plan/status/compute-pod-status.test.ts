import { expect, test } from "bun:test";
import type { Container, ContainerStatus, PodPhase, PodStatus } from "../../../src/base/api/pod.ts";
import type { PodSnapshot } from "../../../src/base/model/pod-snapshot.ts";
import type { PodEnd } from "../../../src/plan/pod-plan.ts";
import {
  type ContainerStatusInput,
  computeContainerStatus,
  computePhase,
  computePodStatus,
} from "../../../src/plan/status/compute-pod-status.ts";
import { aContainer, anExited, aPod, aRunning, aSandbox, EPOCH } from "../../support/builders.ts";

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
  ["nothing yet", {}, { state: { waiting: { reason: "ContainerCreating" } }, lastState: {}, ...notReady, imageID: "" }],
  [
    "it runs and has no probe",
    { attempts: [aRunning()] },
    { state: { running: { startedAt: START } }, ready: true, started: true, containerID: "docker://app-0" },
  ],
  [
    "its manifest names a stop signal",
    { container: aContainer({ lifecycle: { stopSignal: "SIGUSR1" } }), attempts: [aRunning()] },
    { stopSignal: "SIGUSR1" },
  ],
  [
    "it runs and the probe results are of its predecessor",
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
    "its successor was only created, and may be removed again",
    { attempts: [{ ...neverStarted(1), exitCode: 0 }, anExited("app", 3)] },
    { restartCount: 0, containerID: "docker://app-0" },
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
  const sidecar = aContainer({ restartPolicy: "Always" });
  const running = { ready: true, started: true };
  expect(statusOf({ container: sidecar, isInit: true, attempts: [aRunning()] })).toMatchObject(running);
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

function podStatusOf(
  containers: PodSnapshot["containers"],
  over: { end?: PodEnd; isStopping?: true; previous?: PodStatus; pod?: typeof POD } = {},
  sandboxes: PodSnapshot["sandboxes"] = [],
) {
  return computePodStatus({
    pod: POD,
    snapshot: { uid: "u", name: "p", namespace: "default", sandboxes, containers },
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

test("a pod that stops still reports a dead container that was removed: it is not pending", () => {
  const previous = podStatusOf([anExited(POD.spec.containers[0]!.name, 143)], { isStopping: true });
  const { phase, containerStatuses } = podStatusOf([], { isStopping: true, previous });
  expect([phase, containerStatuses]).toEqual([previous.phase, previous.containerStatuses]);
});

test("an init container that was removed has ended well once a main container is there, a sidecar waits", () => {
  const pod = aPod({ initContainers: [aContainer({ name: "i" }), aContainer({ name: "s", restartPolicy: "Always" })] });
  const running = aRunning(pod.spec.containers[0]!.name);
  const [sandbox, waits] = [aSandbox({ id: running.sandboxId }), { state: { waiting: {} }, ready: false }];
  const done = { state: { terminated: { exitCode: 0, reason: "Completed" } }, ready: true };
  expect(podStatusOf([running], { pod }, [sandbox]).initContainerStatuses).toMatchObject([done, waits]);
  for (const sandboxes of [[aSandbox({ id: "new", attempt: 1 }), sandbox], []])
    expect(podStatusOf([running], { pod }, sandboxes).initContainerStatuses).toMatchObject([waits, waits]);
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

test("a paused container runs and is ready, and the pod says that it is paused", () => {
  const running = aRunning(POD.spec.containers[0]!.name, { paused: true });
  const status = podStatusOf([running]);
  expect(status).toMatchObject({ phase: "Running", reason: "Paused", containerStatuses: [{ ready: true }] });
  expect(status.message).toBe(`container ${running.name} is paused: docker unpause ${running.id.slice(0, 12)}`);
  expect(podStatusOf([running], { end: { phase: "Failed", reason: "Evicted" } }).reason).toBe("Evicted");
});

test("the end of a pod is one status: that its sandbox stops later changes nothing", () => {
  const containers = [anExited(POD.spec.containers[0]!.name, 0)];
  const end: PodEnd = { phase: "Succeeded" };
  const [before, after] = (["ready", "notready"] as const).map((state) =>
    podStatusOf(containers, { end }, [aSandbox({ state })]),
  );
  expect(before).toEqual(after!);
});

/** A container without `state` was removed from the engine, or never made. */
interface One {
  state?: ContainerStatus["state"];
  lastState?: ContainerStatus["lastState"];
  started?: boolean;
  spec?: Partial<Container>;
}

const gone: One = {};
const waiting = (reason = "ContainerCreating"): One => ({ state: { waiting: { reason } } });
const running: One = { state: { running: {} } };
const ended = (exitCode: number, spec: Partial<Container> = {}): One => ({ state: { terminated: { exitCode } }, spec });
const crashLoop = (exitCode: number): One => ({
  ...waiting("CrashLoopBackOff"),
  lastState: { terminated: { exitCode } },
});
const sidecar = (started: boolean): One => ({ ...running, spec: { restartPolicy: "Always" }, started });
const own = (restartPolicy: Container["restartPolicy"] & string): Partial<Container> => ({ restartPolicy });
const rule = (action: "Restart" | "RestartAllContainers", ...values: number[]): Partial<Container> => ({
  restartPolicy: "Never",
  restartPolicyRules: [{ action, exitCodes: { operator: "In", values } }],
});

const partsOf = (kind: string, ones: readonly One[]) => ({
  containers: ones.map(({ spec }, index) => aContainer({ name: `${kind}${index}`, ...spec })),
  statuses: ones.flatMap(({ state, lastState = {}, started = state?.running !== undefined }, index) =>
    state === undefined
      ? []
      : { name: `${kind}${index}`, state, lastState, started, ready: false, restartCount: 0, image: "", imageID: "" },
  ),
});

test.each<[when: string, "Always" | "OnFailure" | "Never", inits: One[], mains: One[], want: PodPhase]>([
  ["nothing is known yet", "Always", [], [gone], "Pending"],
  ["one waits for its first start although another runs", "Always", [], [running, waiting()], "Pending"],
  ["all run", "Always", [], [running, running], "Running"],
  ["one backs off, one runs", "Always", [], [running, crashLoop(3)], "Running"],
  ["one backs off, one has no image", "Always", [], [crashLoop(2), waiting("ImagePullBackOff")], "Pending"],
  ["all back off after success", "Always", [], [crashLoop(0)], "Running"],
  ["all back off after a failure", "Always", [], [crashLoop(1)], "Running"],
  ["all ended well a moment ago", "Always", [], [ended(0)], "Running"],
  ["all ended well", "Never", [], [ended(0), ended(0)], "Succeeded"],
  ["one failed", "Never", [], [ended(0), ended(137)], "Failed"],
  ["one failed and one runs", "Never", [], [ended(137), running], "Running"],
  ["one failed: it runs again", "OnFailure", [], [ended(1)], "Running"],
  ["one is done, one runs", "OnFailure", [], [ended(0), running], "Running"],
  ["one backs off next to one that is done", "OnFailure", [], [crashLoop(1), ended(0)], "Running"],
  ["all ended well", "OnFailure", [], [ended(0)], "Succeeded"],
  ["an init container runs", "Always", [running], [waiting()], "Pending"],
  ["an init container failed", "Never", [ended(1)], [waiting()], "Failed"],
  ["an init container backs off", "Always", [crashLoop(1)], [waiting()], "Pending"],
  ["init containers are done", "Always", [ended(0)], [running], "Running"],
  ["init containers were removed from the engine", "Always", [gone], [running], "Running"],
  ["a sidecar is not up yet", "Always", [sidecar(false)], [waiting()], "Pending"],
  ["a sidecar outlives the mains", "Never", [sidecar(true)], [ended(0)], "Succeeded"],
  // The container's own policy and rules.
  ["own Never, ended well", "Always", [], [ended(0, own("Never"))], "Succeeded"],
  ["own Never, failed", "Always", [], [ended(1, own("Never"))], "Failed"],
  ["own OnFailure, failed a moment ago", "Always", [], [ended(1, own("OnFailure"))], "Running"],
  ["own Always", "Never", [], [ended(0, own("Always"))], "Running"],
  ["a rule brings it back", "Never", [], [ended(42, rule("Restart", 42))], "Running"],
  ["a rule brings all back", "Never", [], [ended(42, rule("RestartAllContainers", 42))], "Running"],
  ["no rule matches", "Never", [], [ended(1, rule("Restart", 42))], "Failed"],
  ["an init container with own OnFailure", "Never", [ended(1, own("OnFailure"))], [waiting()], "Pending"],
  ["an init container with own Never", "Always", [ended(1, own("Never"))], [waiting()], "Failed"],
])("phase: %s, under %s", (_when, restartPolicy, inits, mains, want) => {
  const [init, main] = [partsOf("i", inits), partsOf("c", mains)];
  const { spec } = aPod({ restartPolicy, initContainers: init.containers, containers: main.containers });
  expect(computePhase(spec, init.statuses, main.statuses)).toBe(want);
});
