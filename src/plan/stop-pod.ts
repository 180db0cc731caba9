import { type ContainerSnapshot, isRunning, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import type { KillReason, PodAction, PodPlanInput } from "./pod-plan.ts";

/** Shortest time between SIGTERM and SIGKILL, for any manifest. Source: the kubelet's minimumGracePeriod. */
const MINIMUM_GRACE_SECONDS = 2;

/** Grace period of the pause container, which ends at once: time for a signal sent before pause handles signals. */
export const SANDBOX_GRACE_SECONDS = 5;

/** Seconds left to a container after `spentMs` of the grace period went to hooks and other containers. */
export function remainingGraceSeconds(graceSeconds: number, spentMs: number): number {
  return Math.max(MINIMUM_GRACE_SECONDS, Math.ceil((graceSeconds * 1000 - spentMs) / 1000));
}

/** Grace period of a pod without a manifest: the longest that the labels of its containers promise, else 30. */
export function orphanGraceSeconds({ containers }: PodSnapshot): number {
  const promised = containers
    .map(({ labels }) => Number.parseInt(labels["annotation.io.kubernetes.pod.terminationGracePeriod"] ?? "", 10))
    .filter((seconds) => !Number.isNaN(seconds));
  return promised.length > 0 ? Math.max(...promised) : 30;
}

interface StopPodInput extends Pick<PodPlanInput, "snapshot" | "state" | "nowMs"> {
  reason: Extract<KillReason, "PodEnded" | "PodRemoved" | "SandboxChanged">;
  /** `terminationGracePeriodSeconds` of the pod, or what the labels of an orphan say. */
  graceSeconds: number;
  /** Names of sidecars in the order of the spec. They are stopped last, in reverse order. */
  sidecars: readonly string[];
  /** Also remove containers and sandboxes once everything has stopped. */
  remove: boolean;
}

/**
 * All main containers at once, then the sidecars in reverse order, then the sandbox; with `remove` all are removed.
 * Call it again whenever something ended. Source: killPodWithSyncResult and KEP-753.
 */
export function computeStopActions(input: StopPodInput): PodAction[] {
  const { snapshot, state } = input;
  const live = snapshot.containers.filter(isRunning);
  const spentMs = state.stoppingSinceMs === undefined ? 0 : input.nowMs - state.stoppingSinceMs;
  const kill = (container: ContainerSnapshot): PodAction => ({
    kind: "kill-container",
    id: container.id,
    name: container.name,
    reason: input.reason,
    message: `Stopping container ${container.name}`,
    // A grace period of 0 gives preStop hooks no time either; one that is used up gives them the minimum.
    graceSeconds: Math.min(input.graceSeconds, remainingGraceSeconds(input.graceSeconds, spentMs)),
  });
  const unkilled = (containers: ContainerSnapshot[]) => containers.filter(({ id }) => !state.killing.has(id));

  const mains = live.filter(({ name }) => !input.sidecars.includes(name));
  if (mains.length > 0 || state.starting.size > 0) return unkilled(mains).map(kill);
  if (live.length > 0) {
    const last = [...live].sort((a, b) => input.sidecars.indexOf(b.name) - input.sidecars.indexOf(a.name))[0]!;
    return unkilled([last]).map(kill);
  }
  if (state.killing.size > 0 || state.sandboxBusy) return [];

  const ready = snapshot.sandboxes.filter(({ state }) => state === "ready");
  if (ready.length > 0)
    return ready.map(({ id }) => ({ kind: "stop-sandbox", id, graceSeconds: SANDBOX_GRACE_SECONDS }));
  if (!input.remove) return [];

  const isLeft = ({ id }: { id: string }) => !state.removing.has(id);
  if (snapshot.containers.length > 0)
    return snapshot.containers.filter(isLeft).map(({ id, name }) => ({ kind: "remove-container", id, name }));
  return snapshot.sandboxes.filter(isLeft).map(({ id }) => ({ kind: "remove-sandbox", id }));
}
