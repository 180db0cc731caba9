import { hasCondition } from "../../base/api/meta.ts";
import type { ContainerStatus, Pod } from "../../base/api/pod.ts";
import { statusesOf } from "../../base/model/pod.ts";
import type { ProcessSample } from "../../base/model/pod-snapshot.ts";
import type { RolloutProgress } from "../rollout.ts";
import { findWaitingReason } from "../waiting-reasons.ts";

/** The goal of `--runonce` (`--wait`); `none`: each container was started. Success of a pod satisfies all of them. */
export type RunOnceWait = "ready" | "running" | "completed" | "none";

/** State of a pod of a `--runonce`. */
export interface RunOnceVerdict {
  state: "waiting" | "up" | "succeeded" | "failed";
  /** The goal that is not reached yet, or the reason of the failure. */
  message: string;
  /** The container that the message is about. */
  container?: string;
}

const EDIT_IN_PROGRESS: RunOnceVerdict = { state: "waiting", message: "an edit is in progress" };

/**
 * Whether a pod has reached what `--runonce` waits for. One that cannot reach it with this manifest has failed; one
 * whose edit is in progress has not.
 * @param sandboxError what keeps the pod from having a sandbox, e.g. a volume
 */
export function judgeRunOnce(
  pod: Pod,
  wait: RunOnceWait,
  { sandboxError, rollout = "live" }: { sandboxError?: string | undefined; rollout?: RolloutProgress } = {},
): RunOnceVerdict {
  const { status } = pod;
  if (rollout === "pending") return EDIT_IN_PROGRESS;
  const containers = status?.containerStatuses ?? [];
  const all = statusesOf(status);
  if (status?.phase === "Succeeded" && rollout === "live") return { state: "succeeded", message: "Succeeded" };
  if (status?.phase === "Failed") return describeFailure(status, all);
  if (wait === "completed" && pod.spec.restartPolicy === "Always") {
    return { state: "failed", message: "never completes: its restartPolicy is Always" };
  }
  const hopeless = all.find(({ state }) => findWaitingReason(state.waiting?.reason)?.isHopeless);
  if (hopeless) return { state: "failed", message: describeWaiting(hopeless), container: hopeless.name };
  if (sandboxError) return { state: "failed", message: sandboxError };
  const isEnough = (status: ContainerStatus) => isStarted(pod, status, wait);
  const late = status?.phase === "Running" ? containers.find((it) => !isEnough(it)) : all.find((it) => !isEnough(it));
  if (late) return waitingFor(late, describeState(late));
  if (status?.phase !== "Running") return { state: "waiting", message: "waiting" };
  if (rollout !== "live") return EDIT_IN_PROGRESS;
  if (wait === "completed") return { state: "waiting", message: "Running" };
  if (wait !== "ready" || hasCondition(status, "Ready")) return { state: "up", message: "Running" };
  const unready = containers.find(({ ready, state }) => !ready && state.running);
  return unready ? waitingFor(unready, "not ready") : { state: "waiting", message: "not ready" };
}

const waitingFor = ({ name }: ContainerStatus, what: string): RunOnceVerdict => ({
  state: "waiting",
  message: `container ${name}: ${what}`,
  container: name,
});

const isStarted = (pod: Pod, { state, started, lastState }: ContainerStatus, wait: RunOnceWait): boolean => {
  if (wait === "none") return [state.running, state.terminated, lastState.terminated].some(Boolean);
  return state.running ? started === true : isDone(pod, state);
};

/** A container that succeeded and is not restarted. */
const isDone = (pod: Pod, { terminated }: ContainerStatus["state"]) =>
  terminated?.exitCode === 0 && pod.spec.restartPolicy !== "Always";

function describeFailure(status: NonNullable<Pod["status"]>, all: readonly ContainerStatus[]): RunOnceVerdict {
  const culprit = all.find(({ state }) => state.terminated && state.terminated.exitCode !== 0);
  const container = culprit && { container: culprit.name };
  if (status.message) {
    const message = status.reason ? `${status.reason}: ${status.message}` : status.message;
    return { state: "failed", message, ...container };
  }
  return {
    state: "failed",
    message: culprit ? describeEnd(culprit, culprit.state.terminated) : "Failed",
    ...container,
  };
}

function describeWaiting(container: ContainerStatus): string {
  const { reason, message } = container.state.waiting ?? {};
  const { terminated } = container.lastState;
  if (terminated && (reason === "CrashLoopBackOff" || reason === "RunContainerError")) {
    return describeEnd(container, terminated);
  }
  return `container ${container.name}: ${reason}${message ? `: ${message}` : ""}`;
}

function describeEnd({ name }: ContainerStatus, end: ContainerStatus["state"]["terminated"]): string {
  const words = end?.message?.trim();
  const what = end?.reason === "ContainerCannotRun" ? "could not be started" : `exited with code ${end?.exitCode}`;
  const why = end?.reason === "OOMKilled" ? " (OOMKilled)" : "";
  return `container ${name} ${what}${why}${words ? `: ${words}` : ""}`;
}

function describeState({ state }: ContainerStatus): string {
  if (state.running) return "not started yet (startup probe or postStart hook)";
  if (state.terminated) return `exited with code ${state.terminated.exitCode}`;
  return state.waiting?.reason ?? "waiting";
}

export interface TimedSample extends ProcessSample {
  /** Monotonic milliseconds. */
  atMs: number;
}

/** Time between two samples. Programs that fail at once do not sleep this long before. */
export const SAMPLE_PERIOD_MS = 30;
/** A program that is never idle counts as up after this time. */
const BUSY_SETTLE_MS = 250;
/** CPU time that it must have used by then: on a busy machine it might not have been scheduled yet. */
const BUSY_CPU_MS = 100;
/** After this time the state that the engine reports counts. */
const SETTLE_LIMIT_MS = 10_000;

/**
 * Whether a container that the engine reports as running has come up. A program that fails at once works until it ends
 * (0 to 30 ms), long before the engine reports it (80 to 1100 ms); one that has not run from one sample to the next
 * waits, as servers do.
 * @param samples of the same run of the container, oldest first
 */
export function hasSettled(samples: readonly TimedSample[]): boolean {
  const [first, before, now] = [samples[0], samples.at(-2), samples.at(-1)];
  if (!first || !before || !now) return false;
  const seenForMs = now.atMs - first.atMs;
  if (seenForMs >= SETTLE_LIMIT_MS) return true;
  if (now.state === "gone" || now.state === "starting") return false;
  const isAsleep = now.state === "asleep";
  if (isAsleep && before.state === "asleep" && now.switches === before.switches) return true;
  return seenForMs >= BUSY_SETTLE_MS && (isAsleep || now.cpuMs >= BUSY_CPU_MS);
}
