import type { ContainerSnapshot, PodSnapshot } from "../model/pod-snapshot.ts";
import { isRunning } from "./container-history.ts";
import { remainingGraceSeconds, SANDBOX_GRACE_SECONDS } from "./grace-period.ts";
import type { KillReason, PodAction } from "./pod-plan.ts";
import type { SyncState } from "./sync-state.ts";

export interface StopPodInput {
  snapshot: PodSnapshot;
  state: SyncState;
  nowMs: number;
  reason: Extract<KillReason, "PodEnded" | "PodRemoved" | "SandboxChanged">;
  /** `terminationGracePeriodSeconds` of the pod, or what the labels of an orphan say. */
  graceSeconds: number;
  /** Sidecars in the order of the spec: they are stopped last, in reverse. */
  sidecars: readonly string[];
  /** Remove containers and sandboxes too once everything is still. */
  remove: boolean;
}

/**
 * Puts a pod to rest: all main containers at once, then the sidecars one by one in reverse order, then the sandbox, then
 * (with `remove`) what is left of them. Call it again whenever something ended; it returns nothing when all is done or
 * something is under way. Source: the kubelet's killPodWithSyncResult and KEP-753 for the order of sidecars.
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
    // A pod that gives no time gives none to preStop hooks either; one that has used it up leaves them the shortest.
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

  const upright = snapshot.sandboxes.filter(({ state }) => state === "ready");
  if (upright.length > 0)
    return upright.map(({ id }) => ({ kind: "stop-sandbox", id, graceSeconds: SANDBOX_GRACE_SECONDS }));
  if (!input.remove) return [];

  const containers = snapshot.containers.filter(({ id }) => !state.removing.has(id));
  if (containers.length > 0) return containers.map(({ id, name }) => ({ kind: "remove-container", id, name }));
  if (snapshot.containers.length > 0) return [];
  return snapshot.sandboxes
    .filter(({ id }) => !state.removing.has(id))
    .map(({ id }) => ({ kind: "remove-sandbox", id }));
}
