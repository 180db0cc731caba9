import { expect, test } from "bun:test";
import type { ContainerStatus, Pod } from "../../../src/base/api/pod.ts";
import type { ProcessSample } from "../../../src/base/model/pod-snapshot.ts";
import { hasSettled, judgeRunOnce, type TimedSample } from "../../../src/plan/status/run-once-verdict.ts";
import { aPod } from "../../support/builders.ts";

const one = (status: Partial<ContainerStatus>): ContainerStatus => ({
  name: "app",
  state: {},
  lastState: {},
  ready: false,
  restartCount: 0,
  image: "",
  imageID: "",
  ...status,
});

const pod = (phase: string, containers: ContainerStatus[], more: object = {}): Pod =>
  ({ ...aPod(), status: { phase, containerStatuses: containers, ...more } }) as Pod;

const waiting = (reason: string, message?: string) => ({ waiting: { reason, ...(message && { message }) } });
const ended = (exitCode: number, reason: string, message?: string) => ({
  terminated: { exitCode, reason, ...(message && { message }) },
});
const killedForMemory = one({ state: ended(137, "OOMKilled") });
const looping = (lastState: ContainerStatus["lastState"] = {}) =>
  pod("Running", [one({ state: waiting("CrashLoopBackOff"), lastState })]);

test.each<[when: string, Pod, want: string]>([
  ["runs and has started", pod("Running", [one({ state: { running: {} }, started: true })]), "up"],
  ["has not passed its startup probe", pod("Running", [one({ state: { running: {} }, started: false })]), "waiting"],
  ["succeeded", pod("Succeeded", []), "succeeded"],
  ["has no status yet", aPod(), "waiting"],
])("a pod that %s", (_when, given, want) => expect(judgeRunOnce(given, "running").state).toBe(want as never));

test.each<[when: string, Pod, message: string]>([
  [
    "an image that cannot be pulled",
    pod("Pending", [one({ state: waiting("ErrImagePull", "manifest unknown") })]),
    "container app: ErrImagePull: manifest unknown",
  ],
  [
    "a command that does not exist",
    looping(ended(127, "ContainerCannotRun", "exec: no such file")),
    "container app could not be started: exec: no such file",
  ],
  ["a crash, its last words", looping(ended(2, "Error", "no config\n")), "container app exited with code 2: no config"],
  ["a failed job", pod("Failed", [killedForMemory]), "container app exited with code 137 (OOMKilled)"],
  [
    "a refusal",
    pod("Failed", [], { reason: "NodePorts", message: "Pod Predicate NodePorts failed" }),
    "NodePorts: Pod Predicate NodePorts failed",
  ],
])("%s is a failure at once", (_when, given, message) => {
  expect(judgeRunOnce(given, "running")).toMatchObject({ state: "failed", message });
});

test("an error of the sandbox is a failure", () => {
  const creating = pod("Pending", [one({ state: waiting("ContainerCreating") })]);
  const message = "hostPath type check failed";
  expect(judgeRunOnce(creating, "running", { sandboxError: message })).toEqual({ state: "failed", message });
});

test("a pod whose edit is in progress is not up, however well the old revision runs", () => {
  const running = pod("Running", [one({ state: { running: { startedAt: "" } }, started: true, ready: true })]);
  expect(judgeRunOnce(running, "running").state).toBe("up");
  for (const rollout of ["pending", "progressing"] as const) {
    const verdict = judgeRunOnce(running, "running", { rollout });
    expect(verdict).toEqual({ state: "waiting", message: "an edit is in progress" });
  }
  expect(judgeRunOnce(pod("Succeeded", []), "running", { rollout: "progressing" }).state).toBe("waiting");
});

test("a failure of the old revision does not count before the edit was planned", () => {
  expect(judgeRunOnce(looping(), "running", { rollout: "pending" }).state).toBe("waiting");
  expect(judgeRunOnce(looping(), "running", { rollout: "progressing" }).state).toBe("failed");
});

const ready = { conditions: [{ type: "Ready", status: "True" }] };
const running = one({ state: { running: {} }, started: true });
const unstarted = one({ state: { running: {} }, started: false });
const unready = pod("Running", [running]);
const crashed = pod("Pending", [one({ state: { terminated: { exitCode: 1 } } })]);

test.each([
  ["ready", pod("Running", [{ ...running, ready: true }], ready), "up", "Running"],
  ["ready", unready, "waiting", "container app: not ready"],
  ["running", unready, "up", "Running"],
  ["none", pod("Running", [unstarted]), "up", "Running"],
  ["running", pod("Running", [unstarted]), "waiting", /startup probe/],
  ["none", crashed, "waiting", "waiting"],
  ["completed", pod("Running", [running]), "failed", "never completes: its restartPolicy is Always"],
  ["completed", { ...unready, spec: { ...unready.spec, restartPolicy: "Never" } }, "waiting", "Running"],
  ["completed", pod("Succeeded", []), "succeeded", "Succeeded"],
  ["ready", pod("Succeeded", []), "succeeded", "Succeeded"],
  ["none", pod("Failed", []), "failed", "Failed"],
] as const)("what is waited for: --wait=%s: %#", (wait, given, state, message) => {
  const verdict = judgeRunOnce(given as Pod, wait);
  expect(verdict.state).toBe(state);
  expect(verdict.message).toMatch(message);
});

const at = (atMs: number, state: ProcessSample["state"], switches = 0, cpuMs = 0): TimedSample => ({
  atMs,
  state,
  switches,
  cpuMs,
});

test.each<[string, TimedSample[], boolean]>([
  ["no sample yet", [], false],
  ["one sample proves nothing", [at(0, "asleep")], false],
  ["a server that waits for its first client", [at(0, "asleep", 7), at(30, "asleep", 7)], true],
  ["one that was woken in between", [at(0, "asleep", 7), at(30, "asleep", 8)], false],
  ["one that has only just begun to wait", [at(0, "busy", 7), at(30, "asleep", 7)], false],
  ["a program that reads its configuration", [at(0, "busy", 1), at(30, "busy", 1)], false],
  ["one the runtime has not turned into the program", [at(0, "starting"), at(300, "starting")], false],
  ["one that is dead, whatever the engine says", [at(0, "asleep"), at(500, "gone"), at(1_000, "gone")], false],
  ["a restless one that lived for a while", [at(0, "asleep", 1), at(220, "asleep", 20), at(260, "asleep", 29)], true],
  ["a busy one on an idle machine", [at(0, "busy", 0, 0), at(230, "busy", 1, 90), at(260, "busy", 2, 110)], true],
  ["a busy one that is not scheduled", [at(0, "busy", 0, 0), at(230, "busy", 1, 0), at(260, "busy", 2, 10)], false],
  ["an engine that says running for ten seconds", [at(0, "gone"), at(9_000, "gone"), at(10_000, "gone")], true],
])("%s", (_, samples, want) => {
  expect(hasSettled(samples)).toBe(want);
});
