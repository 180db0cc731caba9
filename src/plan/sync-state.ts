import type { ContainerId, PodSnapshot } from "../base/model/pod-snapshot.ts";
import type { BackOffEntry } from "./back-off.ts";
import { attemptsOf } from "./container-history.ts";

/**
 * Facts about a pod that the engine does not know: actions under way and the times of observations. Owned by the pod
 * worker, read by the planner and by status. All times are monotonic milliseconds.
 */
export interface SyncState {
  /** Names of containers whose start is under way (pulling, configuring, creating, starting). */
  readonly starting: ReadonlySet<string>;
  /** Containers with a kill under way (preStop, SIGTERM, grace). */
  readonly killing: ReadonlySet<ContainerId>;
  /** Containers and sandboxes with a removal under way. */
  readonly removing: ReadonlySet<ContainerId>;
  /** Containers whose limits are being changed, or failed to change recently. */
  readonly resizing: ReadonlySet<ContainerId>;
  /** A sandbox is being created or stopped. */
  readonly sandboxBusy: boolean;
  /** The sandbox that a restart of the pod replaces. */
  readonly replacedSandbox?: ContainerId;
  /** When each dead container ended. */
  readonly exitedAtMs: ReadonlyMap<ContainerId, number>;
  /** Crash-loop back-off by {@link backOffKey}. */
  readonly backOff: ReadonlyMap<string, BackOffEntry>;
  /** Containers whose start failed before anything ran (image, config, create): not to be tried before this time. */
  readonly retryAtMs: ReadonlyMap<string, number>;
  /** The sandbox (or a volume it waits for) failed: not to be tried before this time. */
  readonly sandboxRetryAtMs?: number;
  /** Running containers whose postStart hook has not ended. */
  readonly postStartPending: ReadonlySet<ContainerId>;
  /** Running containers whose postStart hook failed: they must die. */
  readonly postStartFailed: ReadonlySet<ContainerId>;
  /**
   * Containers we killed so that they start again (probe, edit): their successor does not wait like a crash. The value is
   * when the attempt before it ended, which may be removed by now; undefined = there was none.
   */
  readonly killedToRestart: ReadonlyMap<ContainerId, number | undefined>;
  /** When the pod began to be stopped; the grace period counts from here. */
  readonly stoppingSinceMs?: number;
}

/** Back-off belongs to a name and a revision of the container: an edited container starts without one. */
export const backOffKey = (name: string, hash: string) => `${name}@${hash}`;

export interface RecoverBackOffInput {
  hashes: { readonly containers: ReadonlyMap<string, string> };
  options: { readonly maxBackOffMs: number };
  snapshot: PodSnapshot;
  exitedAtMs: SyncState["exitedAtMs"];
  now: Date;
  nowMs: number;
}

/**
 * Back-off of containers that an earlier process started, from their labels: a restart of the kubelet neither shortens
 * nor prolongs it.
 */
export function recoverBackOff(input: RecoverBackOffInput): Map<string, BackOffEntry> {
  const { hashes, options, snapshot, exitedAtMs, now, nowMs } = input;
  const backOff = new Map<string, BackOffEntry>();
  for (const [name, hash] of hashes.containers) {
    const newest = attemptsOf(snapshot, name)[0];
    if (newest?.hash !== hash || newest.backOffMs === undefined) continue;
    const ranForMs = (newest.finishedAt ?? now).getTime() - (newest.startedAt ?? newest.createdAt).getTime();
    const endedAtMs = exitedAtMs.get(newest.id) ?? nowMs;
    const delayMs = Math.min(newest.backOffMs, options.maxBackOffMs);
    backOff.set(backOffKey(name, hash), { delayMs, updatedAtMs: endedAtMs - ranForMs });
  }
  return backOff;
}
