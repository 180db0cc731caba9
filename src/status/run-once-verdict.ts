import type { ContainerStatus, Pod } from "../api/pod.ts";
import type { RolloutProgress } from "../plan/compute-pod-actions.ts";

/** State of a pod of a `--runonce`. */
export interface RunOnceVerdict {
  state: "waiting" | "up" | "succeeded" | "failed";
  /** What it waits for, or why it failed. */
  message: string;
}

const EDIT_IN_PROGRESS: RunOnceVerdict = { state: "waiting", message: "an edit is in progress" };

/** Waiting reasons that will not go away by waiting. */
const HOPELESS = new Set([
  "ErrImagePull",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "ImageInspectError",
  "RegistryUnavailable",
  "CreateContainerConfigError",
  "CreateContainerError",
  "RunContainerError",
  "CrashLoopBackOff",
]);

/**
 * Whether a pod has come up, as `--runonce` sees it: Running with every container started, or Succeeded. A pod that
 * cannot run with this manifest has failed without further waiting.
 * A pod whose edit is in progress is not up: what runs is about to be replaced.
 * @param sandboxError what keeps the pod from having a sandbox, e.g. a volume
 */
export function judgeRunOnce(
  pod: Pod,
  { sandboxError, rollout = "live" }: { sandboxError?: string | undefined; rollout?: RolloutProgress } = {},
): RunOnceVerdict {
  const { status } = pod;
  if (rollout === "pending") return EDIT_IN_PROGRESS;
  const containers = status?.containerStatuses ?? [];
  const all = [...(status?.initContainerStatuses ?? []), ...containers];
  if (status?.phase === "Succeeded" && rollout === "live") return { state: "succeeded", message: "Succeeded" };
  if (status?.phase === "Failed") return { state: "failed", message: describeFailure(status, all) };
  for (const container of all) {
    const { waiting } = container.state;
    if (waiting?.reason && HOPELESS.has(waiting.reason))
      return { state: "failed", message: describeWaiting(container) };
  }
  if (sandboxError) return { state: "failed", message: sandboxError };
  const isUp = ({ state, started }: ContainerStatus) => (state.running ? started === true : isDone(pod, state));
  if (status?.phase === "Running" && containers.every(isUp)) {
    return rollout === "live" ? { state: "up", message: "Running" } : EDIT_IN_PROGRESS;
  }
  const late = all.find((container) => !isUp(container));
  return { state: "waiting", message: late ? `container ${late.name}: ${describeState(late)}` : "waiting" };
}

/** A container that succeeded and is not restarted. */
const isDone = (pod: Pod, { terminated }: ContainerStatus["state"]) =>
  terminated?.exitCode === 0 && pod.spec.restartPolicy !== "Always";

function describeFailure(status: NonNullable<Pod["status"]>, all: readonly ContainerStatus[]): string {
  if (status.message) return status.reason ? `${status.reason}: ${status.message}` : status.message;
  const culprit = all.find(({ state }) => state.terminated && state.terminated.exitCode !== 0);
  return culprit ? describeEnd(culprit, culprit.state.terminated) : "Failed";
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
