import { describe, expect, test } from "bun:test";
import type { ContainerSnapshot } from "../../src/base/model/pod-snapshot.ts";
import { computePodActions } from "../../src/plan/compute-pod-actions.ts";
import type { PodAction, SyncState } from "../../src/plan/pod-plan.ts";
import {
  aContainer,
  aPlanInput,
  aPod,
  aSandbox,
  aSyncState,
  at,
  anExited as ended,
  type PlanCase,
  aRunning as up,
} from "../support/builders.ts";

/** One action as a word: `start app#1`, `kill app-0 SpecChanged`, `sandbox#0`, `stop sandbox-0`, `remove app-0`. */
function say(action: PodAction): string {
  switch (action.kind) {
    case "create-sandbox":
      return `sandbox#${action.attempt}`;
    case "start-container":
      return `start ${action.name}#${action.restartCount}`;
    case "kill-container":
      return `kill ${action.id} ${action.reason}`;
    default:
      return `${action.kind.split("-")[0]} ${action.id}`;
  }
}

const planOf = (given: PlanCase) => computePodActions(aPlanInput(given));

const stateOf = (state: Partial<SyncState>, exitedAtMs = {}) => Object.assign(aSyncState(exitedAtMs), state);
const SECOND = [aSandbox({ id: "sandbox-1", attempt: 1 })];
const UNHEALTHY = { app: { containerId: "app-0", liveness: "failure" as const } };
const SECOND_RUN = [up("app", { restartCount: 1, createdAt: at(2) }), ended("app", 1)];
const BOTH = { containers: [aContainer(), aContainer({ name: "b" })] };
const DEAD = [aSandbox({ state: "notready" })];
const sidecar = (name: string, more = {}) => aContainer({ name, restartPolicy: "Always", ...more });
const twoInits = aPod({ initContainers: [aContainer({ name: "one" }), aContainer({ name: "two" })] });
const never = (more = {}) => aPod({ restartPolicy: "Never", ...more });
const onFailure = (more = {}) => aPod({ restartPolicy: "OnFailure", ...more });

/** Actions in their order, then the phase if the pod has ended. */
function table(
  rows: [when: string, containers: ContainerSnapshot[], want: string, more?: PlanCase][],
  all: PlanCase = {},
) {
  test.each(rows)("%s", (...[, containers, want, more]) => {
    const { actions, end } = planOf({ containers, ...all, ...more });
    expect(`${actions.map(say).join(", ")}${end ? ` => ${end.phase}` : ""}`.trim()).toBe(want);
  });
}

describe("sandbox", () => {
  table([
    ["none: it is created before anything else", [], "sandbox#0", { sandboxes: [] }],
    ["one is being created: wait", [], "", { sandboxes: [], state: stateOf({ sandboxBusy: true }) }],
    ["creation failed a moment ago: wait", [], "", { sandboxes: [], state: stateOf({ sandboxRetryAtMs: 61_000 }) }],
    ["pause died: what still runs is stopped first", [up()], "kill app-0 SandboxChanged", { sandboxes: DEAD }],
    [
      "pause died and all is still: a new one",
      [ended("app", 137)],
      "sandbox#4",
      { sandboxes: [aSandbox({ state: "notready", attempt: 3 })] },
    ],
    ["changed revision, containers run", [up()], "kill app-0 SandboxChanged", { sandboxHash: "new" }],
    ["changed revision, nothing runs", [ended()], "stop sandbox-0", { sandboxHash: "new" }],
    [
      "an edited init container: the pod starts again",
      [up()],
      "kill app-0 SandboxChanged",
      { initHash: "new", sandboxes: [aSandbox({ initHash: "old" })] },
    ],
    [
      "an edited init container of a finished Never pod: it runs again",
      [ended()],
      "sandbox#1",
      { pod: never(), initHash: "new", sandboxes: [aSandbox({ state: "notready", initHash: "old" })] },
    ],
    ["a sandbox made before init containers were recorded is left alone", [up()], "", { initHash: "new" }],
    [
      "changed revision of a finished Never pod",
      [ended()],
      "sandbox#1",
      { pod: never(), sandboxHash: "new", sandboxes: DEAD },
    ],
    ["gone under a Never pod that ended", [ended()], "=> Succeeded", { pod: never(), sandboxes: DEAD }],
    [
      "gone under a Never pod that was killed with it",
      [ended("app", 137)],
      "=> Failed",
      { pod: never(), sandboxes: DEAD },
    ],
    ["gone under an OnFailure pod that succeeded", [ended()], "=> Succeeded", { pod: onFailure(), sandboxes: DEAD }],
    ["gone before a Never pod started anything: try again", [], "sandbox#1", { pod: never(), sandboxes: DEAD }],
    [
      "an older one still lies about: removed",
      [up("app", { sandboxId: "sandbox-1" })],
      "remove sandbox-0",
      { sandboxes: [aSandbox({ id: "sandbox-1", attempt: 1 }), aSandbox({ state: "notready" })] },
    ],
    [
      "containers of the old sandbox do not count in the new one",
      [ended("app", 137)],
      "start app#1",
      { sandboxes: SECOND },
    ],
  ]);
});

describe("main containers", () => {
  table([
    ["first start", [], "start app#0"],
    [
      "all start in the order of the spec",
      [],
      "start z#0, start a#0",
      { pod: aPod({ containers: [aContainer({ name: "z" }), aContainer({ name: "a" })] }) },
    ],
    ["running: nothing to do", [up()], ""],
    ["start under way", [], "", { state: stateOf({ starting: new Set(["app"]) }) }],
    ["kill under way", [up("app", { hash: "old" })], "", { state: stateOf({ killing: new Set(["app-0"]) }) }],
    ["removed behind our back", [up("b")], "start app#0", { pod: aPod(BOTH) }],
    [
      "only what was edited is stopped",
      [up("app", { hash: "old" }), up("b")],
      "kill app-0 SpecChanged",
      { pod: aPod(BOTH) },
    ],
    ["edited and dead: starts at once, without back-off", [ended("app", 1, { hash: "old" })], "start app#1"],
    ["dropped from the spec: stopped", [up(), up("gone")], "kill gone-0 SpecChanged"],
    ["dropped from the spec and dead: removed", [up(), ended("gone")], "remove gone-0"],
    ["created but never started: replaced", [up("app", { state: "created" })], "remove app-0"],
    [
      "of a Never pod, created in a sandbox that died: a new sandbox",
      [up("app", { state: "created" })],
      "sandbox#1",
      { pod: never(), sandboxes: DEAD },
    ],
    [
      "of a Never pod, created in the sandbox before: replaced",
      [up("app", { state: "created" })],
      "remove sandbox-0, remove app-0",
      { pod: never(), sandboxes: [...SECOND, ...DEAD] },
    ],
    [
      "only the last dead one is kept",
      [
        up("app", { restartCount: 2, createdAt: at(3) }),
        ended("app", 1, { restartCount: 1, createdAt: at(2) }),
        ended("app", 1),
      ],
      "remove app-0",
    ],
    [
      "-1: all dead ones are kept",
      [
        up("app", { restartCount: 2, createdAt: at(3) }),
        ended("app", 1, { restartCount: 1, createdAt: at(2) }),
        ended("app", 1),
      ],
      "",
      { options: { maxDeadPerContainer: -1 } },
    ],
    ["0: none is kept next to one that runs", SECOND_RUN, "remove app-0", { options: { maxDeadPerContainer: 0 } }],
    [
      "0: the newest stays while its restart waits",
      [ended("app", 1)],
      "",
      { options: { maxDeadPerContainer: 0 }, state: stateOf({ retryAtMs: new Map([["app", 65_000]]) }) },
    ],
    [
      "a dead one too many is kept as long as its minimum",
      SECOND_RUN,
      "",
      { options: { maxDeadPerContainer: 0, minDeadTtlMs: 30_000 }, state: aSyncState({ "app-0": 30_001 }) },
    ],
    [
      "and goes then",
      SECOND_RUN,
      "remove app-0",
      { options: { maxDeadPerContainer: 0, minDeadTtlMs: 30_000 }, state: aSyncState({ "app-0": 30_000 }) },
    ],
    [
      "postStart failed: killed",
      [up()],
      "kill app-0 PostStartFailed",
      { state: stateOf({ postStartFailed: new Set(["app-0"]) }) },
    ],
    ["liveness failed", [up()], "kill app-0 LivenessFailed", { probes: UNHEALTHY }],
    [
      "startup failed",
      [up()],
      "kill app-0 StartupFailed",
      { probes: { app: { containerId: "app-0", startup: "failure" } } },
    ],
    ["a verdict on an older attempt says nothing", [up("app", { restartCount: 1 })], "", { probes: UNHEALTHY }],
  ]);

  test("other limits: changed in place, without a restart", () => {
    const { actions } = planOf({ containers: [up()], limits: { app: { cpuQuotaUs: 50_000 } } });
    expect(actions).toEqual([{ kind: "resize-container", id: "app-0", name: "app", update: { cpuQuotaUs: 50_000 } }]);
  });

  test("a liveness kill uses the probe's own grace period and says what happens", () => {
    const pod = aPod({ containers: [aContainer({ livenessProbe: { terminationGracePeriodSeconds: 5 } as never })] });
    const [kill] = planOf({
      pod,
      containers: [up()],
      probes: UNHEALTHY,
    }).actions;
    expect(kill).toMatchObject({ graceSeconds: 5, message: "Container app failed liveness probe, will be restarted" });
  });

  test("under Never a liveness kill is a stop", () => {
    const [kill] = planOf({
      pod: never(),
      containers: [up()],
      probes: UNHEALTHY,
    }).actions;
    expect(kill).toMatchObject({ graceSeconds: 30, message: "Stopping container app" });
  });
});

describe("restart policy", () => {
  table([
    ["Always restarts a clean exit", [ended()], "start app#1"],
    ["Always restarts a crash", [ended("app", 1)], "start app#1"],
    ["OnFailure leaves a clean exit alone", [ended()], "stop sandbox-0 => Succeeded", { pod: onFailure() }],
    ["OnFailure restarts a crash", [ended("app", 1)], "start app#1", { pod: onFailure() }],
    ["Never leaves a crash alone", [ended("app", 1)], "stop sandbox-0 => Failed", { pod: never() }],
    ["Never: the others continue", [ended("app", 1), up("b")], "", { pod: never(BOTH) }],
    [
      "a container that could not be started counts as crashed",
      [up("app", { state: "created", exitCode: 127, startedAt: undefined as never })],
      "stop sandbox-0 => Failed",
      { pod: never() },
    ],
    [
      "the container's own policy wins",
      [ended("app", 1)],
      "stop sandbox-0 => Failed",
      { pod: aPod({ containers: [aContainer({ restartPolicy: "Never" })] }) },
    ],
    [
      "a rule restarts an exit code that the policy would leave",
      [ended("app", 42)],
      "start app#1",
      {
        pod: aPod({
          restartPolicy: "Never",
          containers: [
            aContainer({
              restartPolicy: "Never",
              restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "In", values: [42] } }],
            }),
          ],
        }),
      },
    ],
    [
      "NotIn matches every other code",
      [ended()],
      "stop sandbox-0 => Succeeded",
      {
        pod: aPod({
          restartPolicy: "Never",
          containers: [
            aContainer({
              restartPolicy: "Never",
              restartPolicyRules: [{ action: "Restart", exitCodes: { operator: "NotIn", values: [0] } }],
            }),
          ],
        }),
      },
    ],
    ["a pod that ended stays ended", [], "stop sandbox-0 => Succeeded", { pod: never(), end: { phase: "Succeeded" } }],
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
  const plan = planOf({ pod, end: { phase: "Failed" }, containers: [up()], state, nowMs: 100_000 });
  expect(plan.actions).toMatchObject([{ kind: "kill-container", graceSeconds: want }]);
});

describe("RestartAllContainers", () => {
  const rule = { action: "RestartAllContainers" as const, exitCodes: { operator: "In" as const, values: [88] } };
  const pod = aPod({
    restartPolicy: "Never",
    initContainers: [aContainer({ name: "init" })],
    containers: [aContainer({ restartPolicy: "Never", restartPolicyRules: [rule] }), aContainer({ name: "b" })],
  });
  table(
    [
      ["the others are stopped", [ended("init"), ended("app", 88), up("b")], "kill b-0 RestartAllContainers"],
      [
        "then all start again, init containers first",
        [ended("init"), ended("app", 88), ended("b", 137)],
        "start init#1",
      ],
      [
        "what started after that counts",
        [
          ended("init", 0, { restartCount: 1, createdAt: at(2000), startedAt: at(2000), finishedAt: at(2100) }),
          ended("app", 88),
          ended("b", 137),
        ],
        "start app#1, start b#1",
      ],
      [
        "who asked for it again and again waits like after a crash, the others do not",
        [
          ended("init", 0, { restartCount: 1, createdAt: at(2000), startedAt: at(2000), finishedAt: at(2100) }),
          ended("app", 88),
          ended("b", 137),
        ],
        "start b#1",
        {
          state: Object.assign(aSyncState({ "app-0": 59_000, "b-0": 59_000 }), {
            backOff: new Map(
              ["app", "b"].map((name) => [`${name}@hash-${name}`, { delayMs: 10_000, updatedAtMs: 50_000 }]),
            ),
          }),
        },
      ],
    ],
    { pod },
  );

  test("no time is left for preStop hooks and grace periods", () => {
    const containers = [ended("init"), ended("app", 88), up("b")];
    expect(planOf({ pod, containers }).actions).toMatchObject([{ kind: "kill-container", graceSeconds: 0 }]);
  });
});

describe("init containers", () => {
  table(
    [
      ["the first one only", [], "start one#0"],
      ["running: the others wait", [up("one")], ""],
      ["done: the next", [ended("one")], "start two#0"],
      ["all done: the main containers", [ended("one"), ended("two")], "start app#0"],
      ["failed under Always: again", [ended("one", 1)], "start one#1"],
      [
        "failed under Never: the pod failed",
        [ended("one", 1)],
        "stop sandbox-0 => Failed",
        { pod: aPod({ ...twoInits.spec, restartPolicy: "Never" }) },
      ],
      ["succeeded under Always is not run again", [ended("one"), ended("two"), ended("app", 1)], "start app#1"],
      [
        "edited after initialization: nothing runs again",
        [ended("one"), ended("two"), up()],
        "",
        { hashes: { one: "new" } },
      ],
      ["edited while it runs: replaced", [up("one")], "kill one-0 SpecChanged", { hashes: { one: "new" } }],
      [
        "in a new sandbox all of them run again",
        [ended("one"), ended("two"), ended("app", 137)],
        "start one#1",
        { sandboxes: SECOND },
      ],
    ],
    { pod: twoInits },
  );
});

describe("sidecars", () => {
  const pod = aPod({ initContainers: [sidecar("proxy"), aContainer({ name: "setup" }), sidecar("logs")] });
  const once = aPod({ ...pod.spec, restartPolicy: "Never" });
  const started = (name: string) => ({ [name]: { containerId: `${name}-0`, started: true } });
  table(
    [
      ["starts in its place", [], "start proxy#0"],
      [
        "the next one waits for its startup probe",
        [up("proxy")],
        "",
        { probes: { proxy: { containerId: "proxy-0", started: false } } },
      ],
      [
        "the next one waits for its postStart hook",
        [up("proxy")],
        "",
        { probes: started("proxy"), state: stateOf({ postStartPending: new Set(["proxy-0"]) }) },
      ],
      ["once started the next one comes", [up("proxy")], "start setup#0", { probes: started("proxy") }],
      ["one after another up to the main containers", [up("proxy"), ended("setup"), up("logs")], "start app#0"],
      ["one that died during initialization: the others wait", [ended("proxy", 1), ended("setup")], "start proxy#1"],
      ["one that died later starts again", [ended("proxy", 0), ended("setup"), up("logs"), up()], "start proxy#1"],
      [
        "restarts under Never as well",
        [ended("proxy", 0), ended("setup"), up("logs"), up()],
        "start proxy#1",
        { pod: once },
      ],
      [
        "does not keep a pod alive: the last one is stopped first",
        [up("proxy"), ended("setup"), up("logs"), ended()],
        "kill logs-0 PodEnded => Succeeded",
        { pod: once },
      ],
      [
        "then the one before",
        [up("proxy"), ended("setup"), ended("logs", 143), ended()],
        "kill proxy-0 PodEnded => Succeeded",
        { pod: once, end: { phase: "Succeeded" } },
      ],
      [
        "its exit code does not matter for the pod's phase",
        [ended("proxy", 1), ended("setup"), ended("logs", 1), ended()],
        "stop sandbox-0 => Succeeded",
        { pod: once, end: { phase: "Succeeded" } },
      ],
      [
        "edited: replaced alone",
        [up("proxy"), ended("setup"), up("logs"), up()],
        "kill proxy-0 SpecChanged",
        { hashes: { proxy: "new" } },
      ],
    ],
    { pod },
  );
});

describe("crash-loop back-off", () => {
  const crashed = (restartCount: number) => ended("app", 1, { restartCount, createdAt: at(restartCount) });
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
    expect(planOf({ state: memo, nowMs: 65_000 }).actions.map(say)).toEqual(["start app#0"]);
  });
});

describe("activeDeadlineSeconds", () => {
  test("the plan is made again when it runs out", () => {
    expect(planOf({ containers: [up()], deadlineAtMs: 90_000 }).recheckAtMs).toBe(90_000);
  });
  test("then the pod fails and everything stops", () => {
    const plan = planOf({ containers: [up()], deadlineAtMs: 60_000 });
    expect(plan.actions.map(say)).toEqual(["kill app-0 PodEnded"]);
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
    expect(planOf({ hold, containers: [ended("app", 1)] }).actions).toEqual([]);
  });

  test("that runs is left alone", () => {
    expect(planOf({ hold, containers: [up()] })).toMatchObject({ actions: [], waiting: new Map() });
  });

  test("that partly runs is started completely", () => {
    const pod = aPod(BOTH);
    expect(planOf({ hold, pod, containers: [up()] }).actions.map(({ kind }) => kind)).toEqual(["start-container"]);
  });

  test("that has ended is finished", () => {
    const plan = planOf({ hold, pod: never(), containers: [ended()] });
    expect(plan.end).toEqual({ phase: "Succeeded" });
  });
});

describe("dead containers", () => {
  const neverStarted = (restartCount: number) =>
    up("app", {
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
      ended("app", 0, { id: "app-1", restartCount: 1 }),
      ended("app", 1, { id: "app-0", restartCount: 0 }),
      up("other"),
    ];
    const pod = aPod({ restartPolicy: "OnFailure", containers: [aContainer(), aContainer({ name: "other" })] });
    expect(planOf({ pod, containers }).actions).toEqual([]);
  });

  test("of a crash loop only the newest stays", () => {
    const containers = [
      ended("app", 1, { id: "app-1", restartCount: 1 }),
      ended("app", 1, { id: "app-0", restartCount: 0 }),
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
  table(
    [
      ["a new one starts next to running containers", [up()], "start debug#0"],
      ["one that runs is left alone", [up(), up("debug")], ""],
      ["one that ended never starts again", [up(), ended("debug", 1)], ""],
      [
        "nor one of an earlier sandbox",
        [up("app", { sandboxId: "new" }), ended("debug", 0, { sandboxId: "old" })],
        "",
        { sandboxes: [aSandbox({ id: "new", attempt: 1 })] },
      ],
      ["it starts although an init container fails", [up("one")], "start debug#0", { pod: failing }],
      [
        "a finished pod ends it too",
        [ended("app", 0), up("debug", { id: "debug-0" })],
        "kill debug-0 PodEnded => Succeeded",
        { pod: aPod({ restartPolicy: "Never", ephemeralContainers: [aContainer({ name: "debug" })] }) },
      ],
    ],
    { pod },
  );
});
