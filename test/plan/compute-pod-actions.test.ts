import { describe, expect, test } from "bun:test";
import { computePodActions } from "../../src/plan/compute-pod-actions.ts";
import type { PodAction } from "../../src/plan/pod-plan.ts";
import {
  aContainer,
  anExited,
  aPlanInput,
  aPod,
  aRunning,
  aSandbox,
  aSyncState,
  at,
  type PlanCase,
} from "../support/builders.ts";

/** One action as a word: `start app#1`, `kill app (SpecChanged)`, `create-sandbox#0`, `stop-sandbox sandbox-0`. */
function say(action: PodAction): string {
  switch (action.kind) {
    case "create-sandbox":
      return `create-sandbox#${action.attempt}`;
    case "start-container":
      return `start ${action.name}#${action.restartCount}`;
    case "kill-container":
      return `kill ${action.id} (${action.reason})`;
    default:
      return `${action.kind} ${action.id}`;
  }
}

const planOf = (given: PlanCase) => computePodActions(aPlanInput(given));
const saysOf = (given: PlanCase) => planOf(given).actions.map(say);

const sidecar = (name: string, more = {}) => aContainer({ name, restartPolicy: "Always", ...more });
const twoInits = aPod({ initContainers: [aContainer({ name: "one" }), aContainer({ name: "two" })] });
const never = (more = {}) => aPod({ restartPolicy: "Never", ...more });
const onFailure = (more = {}) => aPod({ restartPolicy: "OnFailure", ...more });

interface Row extends PlanCase {
  when: string;
  want: string[];
  phase?: string;
}

function table(rows: Row[]) {
  test.each(rows)("$when", ({ want, phase, when: _, ...given }) => {
    const plan = planOf(given);
    expect(plan.actions.map(say)).toEqual(want);
    expect(plan.end?.phase).toBe(phase as never);
  });
}

describe("sandbox", () => {
  table([
    { when: "none: it is created before anything else", sandboxes: [], want: ["create-sandbox#0"] },
    {
      when: "one is being created: wait",
      sandboxes: [],
      state: Object.assign(aSyncState(), { sandboxBusy: true }),
      want: [],
    },
    {
      when: "creation failed a moment ago: wait",
      sandboxes: [],
      state: Object.assign(aSyncState(), { sandboxRetryAtMs: 61_000 }),
      want: [],
    },
    {
      when: "pause died: what still runs is stopped first",
      sandboxes: [aSandbox({ state: "notready" })],
      containers: [aRunning()],
      want: ["kill app-0 (SandboxChanged)"],
    },
    {
      when: "pause died and all is still: a new one with the next attempt",
      sandboxes: [aSandbox({ state: "notready", attempt: 3 })],
      containers: [anExited("app", 137)],
      want: ["create-sandbox#4"],
    },
    {
      when: "changed revision, containers run: they are stopped",
      sandboxHash: "new",
      containers: [aRunning()],
      want: ["kill app-0 (SandboxChanged)"],
    },
    {
      when: "changed revision, nothing runs: the old one is stopped",
      sandboxHash: "new",
      containers: [anExited("app", 0)],
      want: ["stop-sandbox sandbox-0"],
    },
    {
      when: "an edited init container: the pod starts again",
      initHash: "new",
      sandboxes: [aSandbox({ initHash: "old" })],
      containers: [aRunning()],
      want: ["kill app-0 (SandboxChanged)"],
    },
    {
      when: "an edited init container of a finished Never pod: it runs again",
      pod: never(),
      initHash: "new",
      sandboxes: [aSandbox({ state: "notready", initHash: "old" })],
      containers: [anExited("app", 0)],
      want: ["create-sandbox#1"],
    },
    {
      when: "a sandbox made before init containers were recorded is left alone",
      initHash: "new",
      containers: [aRunning()],
      want: [],
    },
    {
      when: "changed revision of a finished Never pod: it runs again",
      pod: never(),
      sandboxHash: "new",
      sandboxes: [aSandbox({ state: "notready" })],
      containers: [anExited("app", 0)],
      want: ["create-sandbox#1"],
    },
    {
      when: "gone under a Never pod whose container ended: the pod is finished",
      pod: never(),
      sandboxes: [aSandbox({ state: "notready" })],
      containers: [anExited("app", 0)],
      want: [],
      phase: "Succeeded",
    },
    {
      when: "gone under a Never pod whose container was killed with it: failed",
      pod: never(),
      sandboxes: [aSandbox({ state: "notready" })],
      containers: [anExited("app", 137)],
      want: [],
      phase: "Failed",
    },
    {
      when: "gone under an OnFailure pod that succeeded",
      pod: onFailure(),
      sandboxes: [aSandbox({ state: "notready" })],
      containers: [anExited("app", 0)],
      want: [],
      phase: "Succeeded",
    },
    {
      when: "gone before a Never pod started anything: try again",
      pod: never(),
      sandboxes: [aSandbox({ state: "notready" })],
      want: ["create-sandbox#1"],
    },
    {
      when: "an older one still lies about: removed",
      sandboxes: [aSandbox({ id: "sandbox-1", attempt: 1 }), aSandbox({ state: "notready" })],
      containers: [aRunning("app", { sandboxId: "sandbox-1" })],
      want: ["remove-sandbox sandbox-0"],
    },
    {
      when: "containers of the old sandbox do not count as running in the new one",
      sandboxes: [aSandbox({ id: "sandbox-1", attempt: 1 })],
      containers: [anExited("app", 137)],
      want: ["start app#1"],
    },
  ]);
});

describe("main containers", () => {
  table([
    { when: "first start", want: ["start app#0"] },
    {
      when: "all start in the order of the spec",
      pod: aPod({ containers: [aContainer({ name: "z" }), aContainer({ name: "a" })] }),
      want: ["start z#0", "start a#0"],
    },
    { when: "running: nothing to do", containers: [aRunning()], want: [] },
    { when: "start under way", state: Object.assign(aSyncState(), { starting: new Set(["app"]) }), want: [] },
    {
      when: "kill under way",
      containers: [aRunning("app", { hash: "old" })],
      state: Object.assign(aSyncState(), { killing: new Set(["app-0"]) }),
      want: [],
    },
    {
      when: "removed behind our back",
      pod: aPod({ containers: [aContainer(), aContainer({ name: "b" })] }),
      containers: [aRunning("b")],
      want: ["start app#0"],
    },
    {
      when: "only what was edited is stopped",
      pod: aPod({ containers: [aContainer(), aContainer({ name: "b" })] }),
      containers: [aRunning("app", { hash: "old" }), aRunning("b")],
      want: ["kill app-0 (SpecChanged)"],
    },
    {
      when: "edited and dead: starts at once, without back-off",
      containers: [anExited("app", 1, { hash: "old" })],
      want: ["start app#1"],
    },
    {
      when: "dropped from the spec: stopped",
      containers: [aRunning(), aRunning("gone")],
      want: ["kill gone-0 (SpecChanged)"],
    },
    {
      when: "dropped from the spec and dead: removed",
      containers: [aRunning(), anExited("gone")],
      want: ["remove-container gone-0"],
    },
    {
      when: "created but never started (we died in between): replaced",
      containers: [aRunning("app", { state: "created" })],
      want: ["remove-container app-0"],
    },
    {
      when: "of a Never pod, created in a sandbox that died: a new sandbox",
      pod: never(),
      sandboxes: [aSandbox({ state: "notready" })],
      containers: [aRunning("app", { state: "created" })],
      want: ["create-sandbox#1"],
    },
    {
      when: "of a Never pod, created in the sandbox before: replaced",
      pod: never(),
      sandboxes: [aSandbox({ id: "sandbox-1", attempt: 1 }), aSandbox({ state: "notready" })],
      containers: [aRunning("app", { state: "created" })],
      want: ["remove-sandbox sandbox-0", "remove-container app-0"],
    },
    {
      when: "only the last dead one is kept",
      containers: [
        aRunning("app", { restartCount: 2, createdAt: at(3) }),
        anExited("app", 1, { restartCount: 1, createdAt: at(2) }),
        anExited("app", 1),
      ],
      want: ["remove-container app-0"],
    },
    {
      when: "-1: all dead ones are kept",
      options: { maxDeadPerContainer: -1 },
      containers: [
        aRunning("app", { restartCount: 2, createdAt: at(3) }),
        anExited("app", 1, { restartCount: 1, createdAt: at(2) }),
        anExited("app", 1),
      ],
      want: [],
    },
    {
      when: "0: none is kept next to one that runs",
      options: { maxDeadPerContainer: 0 },
      containers: [aRunning("app", { restartCount: 1, createdAt: at(2) }), anExited("app", 1)],
      want: ["remove-container app-0"],
    },
    {
      when: "0: the newest stays while its restart waits",
      options: { maxDeadPerContainer: 0 },
      containers: [anExited("app", 1)],
      state: Object.assign(aSyncState(), { retryAtMs: new Map([["app", 65_000]]) }),
      want: [],
    },
    {
      when: "a dead one too many is kept as long as its minimum",
      options: { maxDeadPerContainer: 0, minDeadTtlMs: 30_000 },
      containers: [aRunning("app", { restartCount: 1, createdAt: at(2) }), anExited("app", 1)],
      state: aSyncState({ "app-0": 30_001 }),
      want: [],
    },
    {
      when: "and goes then",
      options: { maxDeadPerContainer: 0, minDeadTtlMs: 30_000 },
      containers: [aRunning("app", { restartCount: 1, createdAt: at(2) }), anExited("app", 1)],
      state: aSyncState({ "app-0": 30_000 }),
      want: ["remove-container app-0"],
    },
    {
      when: "postStart failed: killed",
      containers: [aRunning()],
      state: Object.assign(aSyncState(), { postStartFailed: new Set(["app-0"]) }),
      want: ["kill app-0 (PostStartFailed)"],
    },
    {
      when: "liveness failed",
      containers: [aRunning()],
      probes: { app: { containerId: "app-0", liveness: "failure" } },
      want: ["kill app-0 (LivenessFailed)"],
    },
    {
      when: "startup failed",
      containers: [aRunning()],
      probes: { app: { containerId: "app-0", startup: "failure" } },
      want: ["kill app-0 (StartupFailed)"],
    },
    {
      when: "a verdict on an older attempt says nothing",
      containers: [aRunning("app", { restartCount: 1 })],
      probes: { app: { containerId: "app-0", liveness: "failure" } },
      want: [],
    },
  ]);

  test("other limits: changed in place, without a restart", () => {
    const { actions } = planOf({ containers: [aRunning()], limits: { app: { cpuQuotaUs: 50_000 } } });
    expect(actions).toEqual([{ kind: "resize-container", id: "app-0", name: "app", update: { cpuQuotaUs: 50_000 } }]);
  });

  test("a liveness kill uses the probe's own grace period and says what happens", () => {
    const pod = aPod({ containers: [aContainer({ livenessProbe: { terminationGracePeriodSeconds: 5 } as never })] });
    const [kill] = planOf({
      pod,
      containers: [aRunning()],
      probes: { app: { containerId: "app-0", liveness: "failure" } },
    }).actions;
    expect(kill).toMatchObject({ graceSeconds: 5, message: "Container app failed liveness probe, will be restarted" });
  });

  test("under Never a liveness kill is a stop", () => {
    const [kill] = planOf({
      pod: never(),
      containers: [aRunning()],
      probes: { app: { containerId: "app-0", liveness: "failure" } },
    }).actions;
    expect(kill).toMatchObject({ graceSeconds: 30, message: "Stopping container app" });
  });
});

describe("restart policy", () => {
  table([
    { when: "Always restarts a clean exit", containers: [anExited("app", 0)], want: ["start app#1"] },
    { when: "Always restarts a crash", containers: [anExited("app", 1)], want: ["start app#1"] },
    {
      when: "OnFailure leaves a clean exit alone",
      pod: onFailure(),
      containers: [anExited("app", 0)],
      want: ["stop-sandbox sandbox-0"],
      phase: "Succeeded",
    },
    { when: "OnFailure restarts a crash", pod: onFailure(), containers: [anExited("app", 1)], want: ["start app#1"] },
    {
      when: "Never leaves a crash alone",
      pod: never(),
      containers: [anExited("app", 1)],
      want: ["stop-sandbox sandbox-0"],
      phase: "Failed",
    },
    {
      when: "Never: the others continue",
      pod: never({ containers: [aContainer(), aContainer({ name: "b" })] }),
      containers: [anExited("app", 1), aRunning("b")],
      want: [],
    },
    {
      when: "a container that could not be started counts as crashed",
      pod: never(),
      containers: [aRunning("app", { state: "created", exitCode: 127, startedAt: undefined as never })],
      want: ["stop-sandbox sandbox-0"],
      phase: "Failed",
    },
    {
      when: "the container's own policy wins",
      pod: aPod({ containers: [aContainer({ restartPolicy: "Never" })] }),
      containers: [anExited("app", 1)],
      want: ["stop-sandbox sandbox-0"],
      phase: "Failed",
    },
    {
      when: "a rule restarts an exit code that the policy would leave",
      pod: aPod({
        restartPolicy: "Never",
        containers: [
          aContainer({
            restartPolicy: "Never",
            restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }],
          }),
        ],
      }),
      containers: [anExited("app", 42)],
      want: ["start app#1"],
    },
    {
      when: "NotIn matches every other code",
      pod: aPod({
        restartPolicy: "Never",
        containers: [
          aContainer({
            restartPolicy: "Never",
            restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "NotIn", values: [0] } }],
          }),
        ],
      }),
      containers: [anExited("app", 0)],
      want: ["stop-sandbox sandbox-0"],
      phase: "Succeeded",
    },
    {
      when: "a pod that ended stays ended",
      pod: never(),
      end: { phase: "Succeeded" },
      containers: [],
      want: ["stop-sandbox sandbox-0"],
      phase: "Succeeded",
    },
  ]);
});

test.each([
  { when: "all of it at first", grace: 30, spentMs: 0, want: 30 },
  { when: "what is left of it", grace: 30, spentMs: 12_000, want: 18 },
  { when: "the shortest, when it is used up", grace: 30, spentMs: 60_000, want: 2 },
  { when: "none: no preStop hook either", grace: 0, spentMs: 0, want: 0 },
  { when: "one second for the hook", grace: 1, spentMs: 0, want: 1 },
])("grace period of a pod that is put to rest: $when", ({ grace, spentMs, want }) => {
  const pod = never({ terminationGracePeriodSeconds: grace });
  const state = Object.assign(aSyncState(), { stoppingSinceMs: 100_000 - spentMs });
  const plan = planOf({ pod, end: { phase: "Failed" }, containers: [aRunning()], state, nowMs: 100_000 });
  expect(plan.actions).toMatchObject([{ kind: "kill-container", graceSeconds: want }]);
});

describe("RestartAllContainers", () => {
  const rule = { action: "RestartAllContainers" as const, exitCodes: { operator: "In" as const, values: [88] } };
  const pod = aPod({
    restartPolicy: "Never",
    initContainers: [aContainer({ name: "init" })],
    containers: [aContainer({ restartPolicy: "Never", restartPolicyRules: [rule] }), aContainer({ name: "b" })],
  });
  table([
    {
      when: "the others are stopped",
      pod,
      containers: [anExited("init"), anExited("app", 88), aRunning("b")],
      want: ["kill b-0 (RestartAllContainers)"],
    },
    {
      when: "then everything starts again, init containers first",
      pod,
      containers: [anExited("init"), anExited("app", 88), anExited("b", 137)],
      want: ["start init#1"],
    },
    {
      when: "what started after that counts",
      pod,
      containers: [
        anExited("init", 0, { restartCount: 1, createdAt: at(2000), startedAt: at(2000), finishedAt: at(2100) }),
        anExited("app", 88),
        anExited("b", 137),
      ],
      want: ["start app#1", "start b#1"],
    },
    {
      when: "who asked for it again and again waits like after a crash, the others do not",
      pod,
      containers: [
        anExited("init", 0, { restartCount: 1, createdAt: at(2000), startedAt: at(2000), finishedAt: at(2100) }),
        anExited("app", 88),
        anExited("b", 137),
      ],
      state: Object.assign(aSyncState({ "app-0": 59_000, "b-0": 59_000 }), {
        backOff: new Map(
          ["app", "b"].map((name) => [`${name}@hash-${name}`, { delayMs: 10_000, updatedAtMs: 50_000 }]),
        ),
      }),
      want: ["start b#1"],
    },
  ]);

  test("no time is left for preStop hooks and grace periods", () => {
    const containers = [anExited("init"), anExited("app", 88), aRunning("b")];
    expect(planOf({ pod, containers }).actions).toMatchObject([{ kind: "kill-container", graceSeconds: 0 }]);
  });
});

describe("init containers", () => {
  table([
    { when: "the first one only", pod: twoInits, want: ["start one#0"] },
    { when: "running: the others wait", pod: twoInits, containers: [aRunning("one")], want: [] },
    { when: "done: the next", pod: twoInits, containers: [anExited("one")], want: ["start two#0"] },
    {
      when: "all done: the main containers",
      pod: twoInits,
      containers: [anExited("one"), anExited("two")],
      want: ["start app#0"],
    },
    { when: "failed under Always: again", pod: twoInits, containers: [anExited("one", 1)], want: ["start one#1"] },
    {
      when: "failed under Never: the pod failed",
      pod: aPod({ ...twoInits.spec, restartPolicy: "Never" }),
      containers: [anExited("one", 1)],
      want: ["stop-sandbox sandbox-0"],
      phase: "Failed",
    },
    {
      when: "succeeded under Always is not run again",
      pod: twoInits,
      containers: [anExited("one"), anExited("two"), anExited("app", 1)],
      want: ["start app#1"],
    },
    {
      when: "edited after initialization: nothing runs again",
      pod: twoInits,
      hashes: { one: "new" },
      containers: [anExited("one"), anExited("two"), aRunning()],
      want: [],
    },
    {
      when: "edited while it runs: replaced",
      pod: twoInits,
      hashes: { one: "new" },
      containers: [aRunning("one")],
      want: ["kill one-0 (SpecChanged)"],
    },
    {
      when: "in a new sandbox all of them run again",
      pod: twoInits,
      sandboxes: [aSandbox({ id: "sandbox-1", attempt: 1 })],
      containers: [anExited("one"), anExited("two"), anExited("app", 137)],
      want: ["start one#1"],
    },
  ]);
});

describe("sidecars", () => {
  const pod = aPod({ initContainers: [sidecar("proxy"), aContainer({ name: "setup" }), sidecar("logs")] });
  const up = (name: string) => ({ [name]: { containerId: `${name}-0`, started: true } });
  table([
    { when: "starts in its place", pod, want: ["start proxy#0"] },
    {
      when: "the next one waits for its startup probe",
      pod,
      containers: [aRunning("proxy")],
      probes: { proxy: { containerId: "proxy-0", started: false } },
      want: [],
    },
    {
      when: "the next one waits for its postStart hook",
      pod,
      containers: [aRunning("proxy")],
      probes: up("proxy"),
      state: Object.assign(aSyncState(), { postStartPending: new Set(["proxy-0"]) }),
      want: [],
    },
    {
      when: "once started the next one comes",
      pod,
      containers: [aRunning("proxy")],
      probes: up("proxy"),
      want: ["start setup#0"],
    },
    {
      when: "one after another up to the main containers",
      pod,
      containers: [aRunning("proxy"), anExited("setup"), aRunning("logs")],
      want: ["start app#0"],
    },
    {
      when: "one that died during initialization starts again and the others wait",
      pod,
      containers: [anExited("proxy", 1), anExited("setup")],
      want: ["start proxy#1"],
    },
    {
      when: "one that died later starts again next to the main containers",
      pod,
      containers: [anExited("proxy", 0), anExited("setup"), aRunning("logs"), aRunning()],
      want: ["start proxy#1"],
    },
    {
      when: "restarts under Never as well",
      pod: aPod({ ...pod.spec, restartPolicy: "Never" }),
      containers: [anExited("proxy", 0), anExited("setup"), aRunning("logs"), aRunning()],
      want: ["start proxy#1"],
    },
    {
      when: "does not keep a pod alive: the last one is stopped first",
      pod: aPod({ ...pod.spec, restartPolicy: "Never" }),
      containers: [aRunning("proxy"), anExited("setup"), aRunning("logs"), anExited()],
      want: ["kill logs-0 (PodEnded)"],
      phase: "Succeeded",
    },
    {
      when: "then the one before",
      pod: aPod({ ...pod.spec, restartPolicy: "Never" }),
      end: { phase: "Succeeded" },
      containers: [aRunning("proxy"), anExited("setup"), anExited("logs", 143), anExited()],
      want: ["kill proxy-0 (PodEnded)"],
      phase: "Succeeded",
    },
    {
      when: "its exit code does not matter for the pod's phase",
      pod: aPod({ ...pod.spec, restartPolicy: "Never" }),
      containers: [anExited("proxy", 1), anExited("setup"), anExited("logs", 1), anExited()],
      end: { phase: "Succeeded" },
      want: ["stop-sandbox sandbox-0"],
      phase: "Succeeded",
    },
    {
      when: "edited: replaced alone",
      pod,
      hashes: { proxy: "new" },
      containers: [aRunning("proxy"), anExited("setup"), aRunning("logs"), aRunning()],
      want: ["kill proxy-0 (SpecChanged)"],
    },
  ]);
});

describe("crash-loop back-off", () => {
  const crashed = (restartCount: number) => anExited("app", 1, { restartCount, createdAt: at(restartCount) });
  const entry = (delayMs: number, updatedAtMs = 0) => new Map([["app@hash-app", { delayMs, updatedAtMs }]]);
  const state = (exitedAtMs: number, backOff = entry(0), more = {}) =>
    Object.assign(aSyncState({ "app-0": exitedAtMs, "app-1": exitedAtMs }), { backOff, ...more });

  test("the first restart does not wait; ten seconds are noted for the next", () => {
    const [start] = planOf({ containers: [crashed(0)], state: state(60_000, new Map()) }).actions;
    expect(start).toMatchObject({
      kind: "start-container",
      backOff: { entry: { delayMs: 10_000, updatedAtMs: 60_000 } },
    });
  });
  test("the second waits ten seconds from the end of the container", () => {
    const plan = planOf({ containers: [crashed(1)], state: state(59_000, entry(10_000)), nowMs: 60_000 });
    expect(plan.actions).toEqual([]);
    expect(plan.recheckAtMs).toBe(69_000);
    expect(plan.waiting.get("app")).toEqual({
      reason: "CrashLoopBackOff",
      message: `back-off 10s restarting failed container=app pod=web-node1_default(${"u".repeat(32)})`,
    });
  });
  test("when it has waited it starts and the delay doubles", () => {
    const [start] = planOf({ containers: [crashed(1)], state: state(50_000, entry(10_000)), nowMs: 60_000 }).actions;
    expect(start).toMatchObject({ backOff: { entry: { delayMs: 20_000 } } });
  });
  test("never beyond five minutes", () => {
    const [start] = planOf({ containers: [crashed(1)], state: state(0, entry(300_000)), nowMs: 300_000 }).actions;
    expect(start).toMatchObject({ backOff: { entry: { delayMs: 300_000 } } });
  });
  test("ten minutes of good run forgive everything", () => {
    const [start] = planOf({
      containers: [crashed(1)],
      state: state(700_000, entry(300_000, 0)),
      nowMs: 700_000,
    }).actions;
    expect(start).toMatchObject({ backOff: { entry: { delayMs: 10_000 } } });
  });
  test("a first liveness kill starts again at once and notes nothing", () => {
    const given = {
      containers: [crashed(0)],
      state: state(60_000, new Map(), { killedToRestart: new Map([["app-0", undefined]]) }),
    };
    const [start] = planOf(given).actions;
    expect(start).toMatchObject({ kind: "start-container", restartCount: 1 });
    expect(start).not.toHaveProperty("backOff");
  });
  test("a second liveness kill starts at once too, counted from the end before it", () => {
    const given = {
      containers: [crashed(1)],
      state: state(60_000, new Map(), { killedToRestart: new Map([["app-1", 10_000]]) }),
    };
    expect(planOf(given).actions.find(({ kind }) => kind === "start-container")).toMatchObject({
      backOff: { entry: { delayMs: 10_000 } },
    });
  });
  test("a third one soon after waits from its own end", () => {
    const killedToRestart = new Map([["app-1", 52_000]]);
    const plan = planOf({
      containers: [crashed(1)],
      state: state(60_000, entry(10_000, 52_100), { killedToRestart }),
    });
    expect(plan.actions).toEqual([]);
    expect(plan.recheckAtMs).toBe(70_000);
  });
  test("a start that failed before anything ran is tried again when its time has come", () => {
    const memo = Object.assign(aSyncState(), { retryAtMs: new Map([["app", 65_000]]) });
    expect(planOf({ state: memo }).recheckAtMs).toBe(65_000);
    expect(saysOf({ state: memo, nowMs: 65_000 })).toEqual(["start app#0"]);
  });
});

describe("activeDeadlineSeconds", () => {
  test("the plan is made again when it runs out", () => {
    expect(planOf({ containers: [aRunning()], deadlineAtMs: 90_000 }).recheckAtMs).toBe(90_000);
  });
  test("then the pod fails and everything stops", () => {
    const plan = planOf({ containers: [aRunning()], deadlineAtMs: 60_000 });
    expect(plan.actions.map(say)).toEqual(["kill app-0 (PodEnded)"]);
    expect(plan.end).toMatchObject({ phase: "Failed", reason: "DeadlineExceeded" });
  });
});

describe("a pod that waits for another pod", () => {
  const hold = { reason: "WaitingForDependency", message: "waits for pod default/db to be Ready" } as const;

  test("starts nothing, and its containers say what they wait for", () => {
    const plan = planOf({ hold, sandboxes: [] });
    expect(plan.actions).toEqual([]);
    expect(plan.waiting.get("app")).toEqual(hold);
  });

  test("does not start again either, with its sandbox in place", () => {
    expect(planOf({ hold, containers: [anExited("app", 1)] }).actions).toEqual([]);
  });

  test("that runs is left alone", () => {
    expect(planOf({ hold, containers: [aRunning()] })).toMatchObject({ actions: [], waiting: new Map() });
  });

  test("that partly runs is started completely", () => {
    const pod = aPod({ containers: [aContainer(), aContainer({ name: "b" })] });
    expect(planOf({ hold, pod, containers: [aRunning()] }).actions.map(({ kind }) => kind)).toEqual([
      "start-container",
    ]);
  });

  test("that has ended is finished", () => {
    const plan = planOf({ hold, pod: never(), containers: [anExited("app", 0)] });
    expect(plan.end).toEqual({ phase: "Succeeded" });
  });
});

describe("dead containers", () => {
  const neverStarted = (restartCount: number) =>
    aRunning("app", {
      id: `app-${restartCount}`,
      state: "created",
      exitCode: 127,
      startedAt: undefined as never,
      restartCount,
    });

  test("that could not be started are removed like exited ones", () => {
    const state = aSyncState({ "app-0": 0, "app-1": 30_000, "app-2": 59_000 });
    const containers = [neverStarted(2), neverStarted(1), neverStarted(0)];
    const removed = planOf({ containers, state }).actions.filter(({ kind }) => kind === "remove-container");
    expect(removed.map((action) => "id" in action && action.id)).toEqual(["app-1", "app-0"]);
  });

  test("the predecessor of a container that is done stays for `logs --previous`", () => {
    const containers = [
      anExited("app", 0, { id: "app-1", restartCount: 1 }),
      anExited("app", 1, { id: "app-0", restartCount: 0 }),
      aRunning("other"),
    ];
    const pod = aPod({ restartPolicy: "OnFailure", containers: [aContainer(), aContainer({ name: "other" })] });
    expect(planOf({ pod, containers }).actions).toEqual([]);
  });

  test("of a crash loop only the newest stays", () => {
    const containers = [
      anExited("app", 1, { id: "app-1", restartCount: 1 }),
      anExited("app", 1, { id: "app-0", restartCount: 0 }),
    ];
    const pod = aPod({ restartPolicy: "OnFailure" });
    const removed = planOf({ pod, containers }).actions.filter(({ kind }) => kind === "remove-container");
    expect(removed).toEqual([{ kind: "remove-container", id: "app-0", name: "app" }]);
  });
});

describe("ephemeral containers", () => {
  const pod = aPod({ containers: [aContainer()], ephemeralContainers: [aContainer({ name: "debug" })] });
  const failing = aPod({
    initContainers: [aContainer({ name: "one" })],
    ephemeralContainers: [aContainer({ name: "debug" })],
  });
  table([
    { when: "a new one starts next to running containers", pod, containers: [aRunning()], want: ["start debug#0"] },
    { when: "one that runs is left alone", pod, containers: [aRunning(), aRunning("debug")], want: [] },
    { when: "one that ended never starts again", pod, containers: [aRunning(), anExited("debug", 1)], want: [] },
    {
      when: "nor one of an earlier sandbox",
      pod,
      sandboxes: [aSandbox({ id: "new", attempt: 1 })],
      containers: [aRunning("app", { sandboxId: "new" }), anExited("debug", 0, { sandboxId: "old" })],
      want: [],
    },
    {
      when: "it starts although an init container fails",
      pod: failing,
      containers: [aRunning("one")],
      want: ["start debug#0"],
    },
    {
      when: "a finished pod ends it too",
      pod: aPod({ restartPolicy: "Never", ephemeralContainers: [aContainer({ name: "debug" })] }),
      containers: [anExited("app", 0), aRunning("debug", { id: "debug-0" })],
      want: ["kill debug-0 (PodEnded)"],
      phase: "Succeeded",
    },
  ]);
});
