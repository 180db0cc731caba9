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
  NO_LIMITS,
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
const THIRD_RUN = [
  up("app", { restartCount: 2, createdAt: at(3) }),
  ended("app", 1, { restartCount: 1, createdAt: at(2) }),
  ended("app", 1),
];
const KEEP_NONE = { maxDeadPerContainer: 0 };
/** Dead containers are kept for 30 s; it is second 60. */
const endedAt = (atMs: number) => ({
  options: { ...KEEP_NONE, minDeadTtlMs: 30_000 },
  state: aSyncState({ "app-0": atMs }),
});
const APP_0 = new Set(["app-0"]);
const EDITED = up("app", { hash: "old" });
const MADE = up("app", { state: "created" });
const neverStarted = (restartCount = 0) =>
  up("app", { state: "created", exitCode: 127, startedAt: undefined as never, restartCount });
const BOTH = { containers: [aContainer(), aContainer({ name: "b" })] };
const dead = (more = {}) => ({ sandboxes: [aSandbox({ state: "notready", ...more })] });
const sidecar = (name: string, more = {}) => aContainer({ name, restartPolicy: "Always", ...more });
const twoInits = aPod({ initContainers: [aContainer({ name: "one" }), aContainer({ name: "two" })] });
const never = (more = {}) => aPod({ restartPolicy: "Never", ...more });
const GONE_UNDER_NEVER = { pod: never(), ...dead() };
const onFailure = (more = {}) => aPod({ restartPolicy: "OnFailure", ...more });

/** Containers as words: `app` runs, `app!1` has exited with 1. */
function containersOf(given: string | ContainerSnapshot[]): ContainerSnapshot[] {
  if (typeof given !== "string") return given;
  const words = given.split(" ").filter((word) => word !== "");
  return words.map((word) => {
    const [name, exitCode] = word.split("!");
    return exitCode === undefined ? up(name) : ended(name, Number(exitCode));
  });
}

/** Actions in their order, then the phase if the pod has ended. */
function table(
  rows: [when: string, containers: string | ContainerSnapshot[], want: string, more?: PlanCase][],
  all: PlanCase = {},
) {
  test.each(rows)("%s", (...[, containers, want, more]) => {
    const { actions, end } = planOf({ containers: containersOf(containers), ...all, ...more });
    expect(`${actions.map(say).join(", ")}${end ? ` => ${end.phase}` : ""}`.trim()).toBe(want);
  });
}

describe("sandbox", () => {
  table([
    ["none: it is created before anything else", "", "sandbox#0", { sandboxes: [] }],
    ["one is being created: wait", "", "", { sandboxes: [], state: stateOf({ sandboxBusy: true }) }],
    ["creation failed a moment ago: wait", "", "", { sandboxes: [], state: stateOf({ sandboxRetryAtMs: 61_000 }) }],
    ["pause died: what still runs is stopped first", "app", "kill app-0 SandboxChanged", dead()],
    ["pause died and nothing runs: a new one", "app!137", "sandbox#4", dead({ attempt: 3 })],
    ["changed revision, containers run", "app", "kill app-0 SandboxChanged", { sandboxHash: "new" }],
    ["changed revision, nothing runs", "app!0", "stop sandbox-0", { sandboxHash: "new" }],
    [
      "an edited init container: the pod starts again",
      "app",
      "kill app-0 SandboxChanged",
      { initHash: "new", sandboxes: [aSandbox({ initHash: "old" })] },
    ],
    [
      "an edited init container of a finished Never pod: it runs again",
      "app!0",
      "sandbox#1",
      { pod: never(), initHash: "new", ...dead({ initHash: "old" }) },
    ],
    ["a sandbox made before init containers were recorded is left alone", "app", "", { initHash: "new" }],
    ["changed revision of a finished Never pod", "app!0", "sandbox#1", { ...GONE_UNDER_NEVER, sandboxHash: "new" }],
    ["gone under a Never pod that ended", "app!0", "=> Succeeded", GONE_UNDER_NEVER],
    ["gone under a Never pod that was killed with it", "app!137", "=> Failed", GONE_UNDER_NEVER],
    ["gone under an OnFailure pod that succeeded", "app!0", "=> Succeeded", { pod: onFailure(), ...dead() }],
    ["gone before a Never pod started anything: try again", "", "sandbox#1", GONE_UNDER_NEVER],
    [
      "an older one is left: removed",
      [up("app", { sandboxId: "sandbox-1" })],
      "remove sandbox-0",
      { sandboxes: [aSandbox({ id: "sandbox-1", attempt: 1 }), aSandbox({ state: "notready" })] },
    ],
    ["containers of the old sandbox do not count in the new one", "app!137", "start app#1", { sandboxes: SECOND }],
  ]);
});

describe("main containers", () => {
  table([
    ["first start", "", "start app#0"],
    [
      "all start in the order of the spec",
      "",
      "start z#0, start a#0",
      { pod: aPod({ containers: [aContainer({ name: "z" }), aContainer({ name: "a" })] }) },
    ],
    ["running: nothing to do", "app", ""],
    ["start under way", "", "", { state: stateOf({ starting: new Set(["app"]) }) }],
    ["kill under way", [EDITED], "", { state: stateOf({ killing: new Set(["app-0"]) }) }],
    ["removed by someone else", "b", "start app#0", { pod: aPod(BOTH) }],
    ["only what was edited is stopped", [EDITED, up("b")], "kill app-0 SpecChanged", { pod: aPod(BOTH) }],
    ["edited and dead: starts at once, without back-off", [ended("app", 1, { hash: "old" })], "start app#1"],
    ["dropped from the spec: stopped", "app gone", "kill gone-0 SpecChanged"],
    ["dropped from the spec and dead: removed", "app gone!0", "remove gone-0"],
    ["created but never started: replaced", [MADE], "remove app-0"],
    [
      "created but never started: its predecessor has the restart count, and stays",
      [{ ...MADE, id: "app-1", restartCount: 1, createdAt: at(2) }, ended("app", 1)],
      "remove app-1",
      { options: KEEP_NONE },
    ],
    ["of a Never pod, created in a sandbox that died: a new sandbox", [MADE], "sandbox#1", GONE_UNDER_NEVER],
    [
      "of a Never pod, created in the sandbox before: replaced",
      [MADE],
      "remove sandbox-0, remove app-0",
      { pod: never(), sandboxes: [...SECOND, ...dead().sandboxes] },
    ],
    ["only the last dead one is kept", THIRD_RUN, "remove app-0"],
    ["-1: all dead ones are kept", THIRD_RUN, "", { options: { maxDeadPerContainer: -1 } }],
    ["0: none is kept next to one that runs", SECOND_RUN, "remove app-0", { options: KEEP_NONE }],
    [
      "0: the newest stays while its restart waits",
      "app!1",
      "",
      { options: KEEP_NONE, state: stateOf({ retryAtMs: new Map([["app", 65_000]]) }) },
    ],
    ["a dead one too many is kept as long as its minimum", SECOND_RUN, "", endedAt(30_001)],
    ["and goes then", SECOND_RUN, "remove app-0", endedAt(30_000)],
    ["postStart failed: killed", "app", "kill app-0 PostStartFailed", { state: stateOf({ postStartFailed: APP_0 }) }],
    ["liveness failed", "app", "kill app-0 LivenessFailed", { probes: UNHEALTHY }],
    [
      "startup failed",
      "app",
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
    const [kill] = planOf({ pod, containers: [up()], probes: UNHEALTHY }).actions;
    expect(kill).toMatchObject({ graceSeconds: 5, message: "Container app failed liveness probe, will be restarted" });
  });

  test("under Never a liveness kill is a stop", () => {
    const [kill] = planOf({ pod: never(), containers: [up()], probes: UNHEALTHY }).actions;
    expect(kill).toMatchObject({ graceSeconds: 30, message: "Stopping container app" });
  });
});

describe("restart policy", () => {
  const ONCE = aContainer({ restartPolicy: "Never" });
  const withRule = (operator: "In" | "NotIn", ...values: number[]) => {
    const restartPolicyRules = [{ action: "Restart" as const, exitCodes: { operator, values } }];
    return never({ containers: [aContainer({ restartPolicy: "Never", restartPolicyRules })] });
  };
  table([
    ["Always restarts a clean exit", "app!0", "start app#1"],
    ["Always restarts a crash", "app!1", "start app#1"],
    ["OnFailure leaves a clean exit alone", "app!0", "stop sandbox-0 => Succeeded", { pod: onFailure() }],
    ["OnFailure restarts a crash", "app!1", "start app#1", { pod: onFailure() }],
    ["Never leaves a crash alone", "app!1", "stop sandbox-0 => Failed", { pod: never() }],
    ["Never: the others continue", "app!1 b", "", { pod: never(BOTH) }],
    ["one that could not be started has crashed", [neverStarted()], "stop sandbox-0 => Failed", { pod: never() }],
    ["the container's own policy wins", "app!1", "stop sandbox-0 => Failed", { pod: aPod({ containers: [ONCE] }) }],
    ["a rule restarts an exit code that the policy would leave", "app!42", "start app#1", { pod: withRule("In", 42) }],
    ["NotIn matches every other code", "app!0", "stop sandbox-0 => Succeeded", { pod: withRule("NotIn", 0) }],
    ["a pod that ended stays ended", "", "stop sandbox-0 => Succeeded", { pod: never(), end: { phase: "Succeeded" } }],
  ]);
});

test.each([
  { when: "all of it at first", grace: 30, spentMs: 0, want: 30 },
  { when: "what is left of it", grace: 30, spentMs: 12_000, want: 18 },
  { when: "the shortest, when it is used up", grace: 30, spentMs: 60_000, want: 2 },
  { when: "none: no preStop hook either", grace: 0, spentMs: 0, want: 0 },
  { when: "one second for the hook", grace: 1, spentMs: 0, want: 1 },
])("grace period of a pod that is stopped: $when", ({ grace, spentMs, want }) => {
  const pod = never({ terminationGracePeriodSeconds: grace });
  const state = Object.assign(aSyncState(), { stoppingSinceMs: 100_000 - spentMs });
  const plan = planOf({ pod, end: { phase: "Failed" }, containers: [up()], state, nowMs: 100_000 });
  expect(plan.actions).toMatchObject([{ kind: "kill-container", graceSeconds: want }]);
});

describe("RestartAllContainers", () => {
  const initAgain = ended("init", 0, {
    restartCount: 1,
    createdAt: at(2000),
    startedAt: at(2000),
    finishedAt: at(2100),
  });
  const rule = { action: "RestartAllContainers" as const, exitCodes: { operator: "In" as const, values: [88] } };
  const pod = aPod({
    restartPolicy: "Never",
    initContainers: [aContainer({ name: "init" })],
    containers: [aContainer({ restartPolicy: "Never", restartPolicyRules: [rule] }), aContainer({ name: "b" })],
  });
  table(
    [
      ["the others are stopped", "init!0 app!88 b", "kill b-0 RestartAllContainers"],
      ["then all start again, init containers first", "init!0 app!88 b!137", "start init#1"],
      ["what started after that counts", [initAgain, ended("app", 88), ended("b", 137)], "start app#1, start b#1"],
      [
        "the container that asks for it again waits as after a crash, the others do not",
        [initAgain, ended("app", 88), ended("b", 137)],
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
      ["the first one only", "", "start one#0"],
      ["running: the others wait", "one", ""],
      ["done: the next", "one!0", "start two#0"],
      ["all done: the main containers", "one!0 two!0", "start app#0"],
      ["failed under Always: again", "one!1", "start one#1"],
      [
        "failed under Never: the pod failed",
        "one!1",
        "stop sandbox-0 => Failed",
        { pod: aPod({ ...twoInits.spec, restartPolicy: "Never" }) },
      ],
      ["succeeded under Always is not run again", "one!0 two!0 app!1", "start app#1"],
      ["edited after initialization: nothing runs again", "one!0 two!0 app", "", { hashes: { one: "new" } }],
      ["edited while it runs: replaced", "one", "kill one-0 SpecChanged", { hashes: { one: "new" } }],
      ["in a new sandbox all of them run again", "one!0 two!0 app!137", "start one#1", { sandboxes: SECOND }],
    ],
    { pod: twoInits },
  );
});

describe("sidecars", () => {
  const pod = aPod({ initContainers: [sidecar("proxy"), aContainer({ name: "setup" }), sidecar("logs")] });
  const once = aPod({ ...pod.spec, restartPolicy: "Never" });
  const over = { pod: once, end: { phase: "Succeeded" as const } };
  const started = (name: string) => ({ [name]: { containerId: `${name}-0`, started: true } });
  table(
    [
      ["starts in its place", "", "start proxy#0"],
      ["the next waits for its probe", "proxy", "", { probes: { proxy: { containerId: "proxy-0", started: false } } }],
      [
        "the next one waits for its postStart hook",
        "proxy",
        "",
        { probes: started("proxy"), state: stateOf({ postStartPending: new Set(["proxy-0"]) }) },
      ],
      ["once started the next one comes", "proxy", "start setup#0", { probes: started("proxy") }],
      ["one after another up to the main containers", "proxy setup!0 logs", "start app#0"],
      ["one that died during initialization: the others wait", "proxy!1 setup!0", "start proxy#1"],
      ["one that died later starts again", "proxy!0 setup!0 logs app", "start proxy#1"],
      ["restarts under Never as well", "proxy!0 setup!0 logs app", "start proxy#1", { pod: once }],
      [
        "does not keep a pod alive: the last one is stopped first",
        "proxy setup!0 logs app!0",
        "kill logs-0 PodEnded => Succeeded",
        { pod: once },
      ],
      ["then the one before", "proxy setup!0 logs!143 app!0", "kill proxy-0 PodEnded => Succeeded", over],
      ["its exit code does not matter", "proxy!1 setup!0 logs!1 app!0", "stop sandbox-0 => Succeeded", over],
      ["edited: replaced alone", "proxy setup!0 logs app", "kill proxy-0 SpecChanged", { hashes: { proxy: "new" } }],
    ],
    { pod },
  );
});

describe("crash-loop back-off", () => {
  const crashed = (restartCount: number) => ended("app", 1, { restartCount, createdAt: at(restartCount) });
  const entry = (delayMs: number, updatedAtMs = 0) => new Map([["app@hash-app", { delayMs, updatedAtMs }]]);
  const state = (exitedAtMs: number, backOff = entry(0), more = {}) =>
    Object.assign(aSyncState({ "app-0": exitedAtMs, "app-1": exitedAtMs }), { backOff, ...more });

  const killed = (id: string, sinceMs?: number) => ({ killedToRestart: new Map([[id, sinceMs]]) });
  test.each<[when: string, restartCount: number, state: ReturnType<typeof state>, nowMs: number, notedDelayMs: number]>(
    [
      ["the first restart does not wait; ten seconds are noted", 0, state(60_000, new Map()), 60_000, 10_000],
      ["when it has waited it starts and the delay doubles", 1, state(50_000, entry(10_000)), 60_000, 20_000],
      ["never beyond five minutes", 1, state(0, entry(300_000)), 300_000, 300_000],
      ["ten minutes without a crash end the back-off", 1, state(700_000, entry(300_000)), 700_000, 10_000],
      [
        "a second liveness kill starts at once too, counted from the end before it",
        1,
        state(60_000, new Map(), killed("app-1", 10_000)),
        60_000,
        10_000,
      ],
    ],
  )("%s", (_when, restartCount, memo, nowMs, delayMs) => {
    const { actions } = planOf({ containers: [crashed(restartCount)], state: memo, nowMs });
    const start = { restartCount: restartCount + 1, backOff: { entry: { delayMs, updatedAtMs: nowMs } } };
    expect(actions.filter(({ kind }) => kind === "start-container")).toMatchObject([start]);
  });
  test("the second waits ten seconds from the end of the container", () => {
    const plan = planOf({ containers: [crashed(1)], state: state(59_000, entry(10_000)) });
    expect(plan).toMatchObject({ actions: [], recheckAtMs: 69_000 });
    expect(plan.waiting.get("app")).toEqual({
      reason: "CrashLoopBackOff",
      message: `back-off 10s restarting failed container=app pod=web-node1_default(${"u".repeat(32)})`,
    });
  });
  test.each([
    ["raised: it starts at once", 64 << 20, "start app#2"],
    ["lowered: it waits", 16 << 20, undefined],
    ["as it was: it waits", 32 << 20, undefined],
  ])("the memory limit was %s", (_what, memoryBytes, want) => {
    const containers = [
      ended("app", 1, { restartCount: 1, createdAt: at(1), limits: { ...NO_LIMITS, memoryBytes: 32 << 20 } }),
    ];
    const plan = planOf({ containers, state: state(59_000, entry(10_000)), limits: { app: { memoryBytes } } });
    expect(plan.actions.map(say)).toEqual(want === undefined ? [] : [want]);
    expect(plan.recheckAtMs).toBe(want === undefined ? 69_000 : undefined);
  });
  test("a first liveness kill starts again at once and notes nothing", () => {
    const [start] = planOf({ containers: [crashed(0)], state: state(60_000, new Map(), killed("app-0")) }).actions;
    expect(start).toMatchObject({ kind: "start-container", restartCount: 1 });
    expect(start).not.toHaveProperty("backOff");
  });
  test("a third one soon after waits from its own end", () => {
    const memo = state(60_000, entry(10_000, 52_100), killed("app-1", 52_000));
    expect(planOf({ containers: [crashed(1)], state: memo })).toMatchObject({ actions: [], recheckAtMs: 70_000 });
  });
  test("a start that failed before anything ran is tried again when its time has come", () => {
    const memo = stateOf({ retryAtMs: new Map([["app", 65_000]]) });
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

  table(
    [
      ["starts nothing", "", "", { sandboxes: [] }],
      ["does not start again either, with its sandbox in place", "app!1", ""],
      ["that partly runs is started completely", "app", "start b#0", { pod: aPod(BOTH) }],
      ["that has ended is finished", "app!0", "stop sandbox-0 => Succeeded", { pod: never() }],
    ],
    { hold },
  );

  test("says what it waits for, unless it runs: then it is left alone", () => {
    expect(planOf({ hold, sandboxes: [] }).waiting.get("app")).toEqual(hold);
    expect(planOf({ hold, containers: [up()] })).toMatchObject({ actions: [], waiting: new Map() });
  });
});

describe("dead containers", () => {
  table([
    [
      "that could not be started are removed like exited ones",
      [neverStarted(2), neverStarted(1), neverStarted(0)],
      "remove app-1, remove app-0, start app#3",
      { state: aSyncState({ "app-0": 0, "app-1": 30_000, "app-2": 59_000 }) },
    ],
    [
      "the predecessor of a container that is done stays for `logs --previous`",
      [ended("app", 0, { restartCount: 1 }), ended("app", 1), up("b")],
      "",
      { pod: onFailure(BOTH) },
    ],
    [
      "of a crash loop only the newest stays",
      [ended("app", 1, { restartCount: 1 }), ended("app", 1)],
      "remove app-0, start app#2",
      { pod: onFailure() },
    ],
  ]);
});

describe("ephemeral containers", () => {
  const pod = aPod({ containers: [aContainer()], ephemeralContainers: [aContainer({ name: "debug" })] });
  const failing = aPod({
    initContainers: [aContainer({ name: "one" })],
    ephemeralContainers: [aContainer({ name: "debug" })],
  });
  table(
    [
      ["a new one starts next to running containers", "app", "start debug#0"],
      ["one that runs is left alone", "app debug", ""],
      ["one that ended never starts again", "app debug!1", ""],
      [
        "one that was made and not started is made again",
        [up("app"), up("debug", { state: "created" })],
        "remove debug-0",
      ],
      ["one whose start failed does not", [up("app"), up("debug", { state: "created", exitCode: 127 })], ""],
      [
        "nor one of an earlier sandbox",
        [up("app", { sandboxId: "new" }), ended("debug", 0, { sandboxId: "old" })],
        "",
        { sandboxes: [aSandbox({ id: "new", attempt: 1 })] },
      ],
      ["it starts although an init container fails", "one", "start debug#0", { pod: failing }],
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
