import type { Container, ContainerState, ContainerStateTerminated, ContainerStatus } from "../../base/api/pod.ts";
import type { ContainerSnapshot } from "../../base/model/pod-snapshot.ts";
import { isRunning, isTerminated } from "../container-history.ts";
import type { ContainerProbeState, WaitingReason } from "../pod-plan.ts";

export interface ContainerStatusInput {
  container: Container;
  isInit: boolean;
  /** A regular init container never counts as started; a sidecar does. */
  isSidecar: boolean;
  /** Every attempt the engine still has, newest first. */
  attempts: ContainerSnapshot[];
  /** Id of the sandbox that counts; attempts of older sandboxes are history. */
  sandboxId?: string;
  /** Why it waits, from the plan or from the last failed start. */
  waiting?: WaitingReason;
  /** Whether the newest attempt, when it has ended, is followed by another one. */
  restarts: boolean;
  verdict?: ContainerProbeState;
  /** A postStart hook that has not ended keeps the container from being ready. */
  isPostStartPending: boolean;
  /** Termination messages by container id. */
  terminationMessages: ReadonlyMap<string, string>;
  /** Names of each image, by id. */
  imageNames: ReadonlyMap<string, ImageNames>;
  /** Waiting reason of a container that has none of its own. */
  defaultWaitingReason: "ContainerCreating" | "PodInitializing";
}

/** Names of an image, for `image` and `imageID`. */
export interface ImageNames {
  /** First tag the engine lists. */
  tag?: string;
  /** `repository@sha256:…` of a pulled image. */
  digest?: string;
}

/** Zero time as Go prints it. */
const ZERO_TIME = "0001-01-01T00:00:00Z";

/** RFC 3339 in whole seconds, as the API has it. */
export function formatTime(time: Date | undefined): string {
  return time && time.getTime() > 0 ? `${time.toISOString().slice(0, 19)}Z` : ZERO_TIME;
}

/** The terminated state of a dead container. Source: dockershim's reasons (Completed, Error, OOMKilled, ContainerCannotRun). */
function toTerminatedState(
  container: ContainerSnapshot,
  terminationMessages: ReadonlyMap<string, string>,
): ContainerStateTerminated {
  const neverStarted = !container.startedAt;
  const message = neverStarted ? container.error : (terminationMessages.get(container.id) ?? container.error);
  return {
    exitCode: container.exitCode,
    reason: terminatedReason(container, neverStarted),
    ...(message ? { message } : {}),
    startedAt: formatTime(container.startedAt ?? container.createdAt),
    finishedAt: formatTime(container.finishedAt ?? container.createdAt),
    containerID: `docker://${container.id}`,
  };
}

function terminatedReason(container: ContainerSnapshot, neverStarted: boolean): string {
  if (container.oomKilled) return "OOMKilled";
  if (neverStarted) return "ContainerCannotRun";
  return container.exitCode === 0 ? "Completed" : "Error";
}

/** One entry of `containerStatuses` or `initContainerStatuses`. Source: the kubelet's convertToAPIContainerStatuses. */
export function computeContainerStatus(input: ContainerStatusInput): ContainerStatus {
  const { container, attempts, waiting } = input;
  const newest = attempts[0];
  const previous = attempts.find((attempt) => attempt !== newest && isTerminated(attempt));
  const terminated = (attempt: ContainerSnapshot | undefined): ContainerState =>
    attempt ? { terminated: toTerminatedState(attempt, input.terminationMessages) } : {};

  let state: ContainerState;
  let lastState = terminated(previous);
  let ready = false;
  let started = false;
  if (newest && isRunning(newest)) {
    state = { running: { startedAt: formatTime(newest.startedAt) } };
    const verdict = input.verdict?.containerId === newest.id ? input.verdict : undefined;
    started = (verdict ? verdict.started : !container.startupProbe) && !input.isPostStartPending;
    ready = started && (verdict ? verdict.ready : !container.readinessProbe) && (!input.isInit || input.isSidecar);
  } else if (newest && isTerminated(newest) && !newest.startedAt && !input.restarts && isStartFailure(waiting)) {
    // It waits for nothing any more. Source: convertStatusToAPIStatus asks ShouldContainerBeRestarted first.
    state = terminated(newest);
  } else if (newest && isTerminated(newest) && !waiting && (newest.startedAt || newest.sandboxId === input.sandboxId)) {
    if (newest.startedAt) {
      state = terminated(newest);
      // A regular init container that succeeded has done its part.
      ready = input.isInit && !input.isSidecar && newest.exitCode === 0;
    } else {
      const message = `failed to start container "${newest.id}": Error response from daemon: ${newest.error}`;
      state = { waiting: { reason: "RunContainerError", message } };
      lastState = terminated(newest);
    }
  } else {
    state = { waiting: waiting ? { ...waiting } : { reason: input.defaultWaitingReason } };
    if (newest && isTerminated(newest)) lastState = terminated(newest);
  }
  return {
    name: container.name,
    state,
    lastState,
    ready,
    restartCount: newest?.restartCount ?? 0,
    image: (newest && input.imageNames.get(newest.imageId)?.tag) ?? container.image ?? "",
    imageID: newest ? toImageId(newest.imageId, input.imageNames.get(newest.imageId)?.digest) : "",
    ...(newest ? { containerID: `docker://${newest.id}` } : {}),
    // Upstream sets `started` for main containers and sidecars only. Source: recorded kubelet.
    ...(!input.isInit || input.isSidecar ? { started } : {}),
  };
}

/** Waits for nothing other than a failed start. */
const isStartFailure = (waiting: WaitingReason | undefined) => !waiting || waiting.reason === "RunContainerError";

/** `docker-pullable://repo@sha256:…` for a pulled image, else `docker://sha256:…`. Source: dockershim. */
function toImageId(imageId: string, digest: string | undefined): string {
  return digest ? `docker-pullable://${digest}` : `docker://${imageId}`;
}
