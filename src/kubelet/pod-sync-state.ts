import type { ContainerId } from "../base/model/pod-snapshot.ts";
import type { BackOffEntry } from "../plan/back-off.ts";
import { type RecoverBackOffInput, recoverBackOff, type SyncState, type WaitingReason } from "../plan/pod-plan.ts";
import type { PodRevision } from "./edit-rules.ts";

/** The writable side of {@link SyncState}: one per worker, dropped with it. */
export class PodSyncState implements SyncState {
  /** The desired revision; it may change while an action is under way. */
  revision: PodRevision | undefined;
  readonly starting = new Set<string>();
  readonly killing = new Set<ContainerId>();
  readonly removing = new Set<ContainerId>();
  readonly resizing = new Set<ContainerId>();
  /** The last update of limits sent for each container. */
  readonly resizedBy = new Map<ContainerId, string>();
  /** The last update of limits that failed for each container, and why. */
  readonly resizeErrors = new Map<ContainerId, { requested: string; message: string }>();
  sandboxBusy = false;
  replacedSandbox?: ContainerId;
  readonly backOff = new Map<string, BackOffEntry>();
  readonly retryAtMs = new Map<string, number>();
  sandboxRetryAtMs?: number;
  readonly postStartPending = new Set<ContainerId>();
  readonly postStartFailed = new Set<ContainerId>();
  readonly killedToRestart = new Map<ContainerId, number | undefined>();
  stoppingSinceMs?: number;
  readonly exitedAtMs: ReadonlyMap<ContainerId, number>;

  /** Reasons why the last start of a container failed, by container name. */
  readonly startErrors = new Map<string, WaitingReason>();
  /** Why there is no sandbox; every container waits for it. */
  sandboxError: WaitingReason | undefined;
  /** Consecutive failures of the same action, by container name or `sandbox`. */
  readonly failures = new Map<string, number>();
  readonly terminationMessages = new Map<ContainerId, string>();
  /** Revision whose ConfigMap, Secret and metadata files are written. */
  objectsRevision: string | undefined;
  /** The volumes were removed with the end of the pod. */
  areVolumesReleased = false;
  /** Images whose names were asked for. */
  readonly learning = new Set<string>();
  /** Dead containers whose termination message is being read. */
  readonly reading = new Set<ContainerId>();

  constructor(exitedAtMs: ReadonlyMap<ContainerId, number>) {
    this.exitedAtMs = exitedAtMs;
  }

  get isIdle(): boolean {
    return !this.sandboxBusy && this.starting.size + this.killing.size + this.removing.size === 0;
  }

  recoverBackOff(input: Omit<RecoverBackOffInput, "exitedAtMs">): void {
    const recovered = recoverBackOff({ ...input, exitedAtMs: this.exitedAtMs });
    for (const [key, entry] of recovered) this.backOff.set(key, entry);
  }

  prune(ids: ReadonlySet<ContainerId>): void {
    for (const set of [this.postStartPending, this.postStartFailed]) {
      for (const id of set) if (!ids.has(id)) set.delete(id);
    }
    for (const map of [this.terminationMessages, this.resizedBy, this.resizeErrors, this.killedToRestart]) {
      for (const id of map.keys()) if (!ids.has(id)) map.delete(id);
    }
  }

  /** Allows an immediate retry of everything that failed: its cause may be gone. */
  forgetFailures(): void {
    this.retryAtMs.clear();
    this.failures.clear();
    delete this.sandboxRetryAtMs;
  }
}
