import type { Pod } from "../base/api/pod.ts";
import { attemptsOf, type ContainerId, type ContainerLimits, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import type { WaitingReasonName } from "./waiting-reasons.ts";

/** Why a container is killed; `message` of the action is that of the `Killing` event. */
export type KillReason =
  | "SpecChanged"
  | "LivenessFailed"
  | "StartupFailed"
  | "PostStartFailed"
  | "SandboxChanged"
  | "RestartAllContainers"
  | "PodEnded"
  | "PodRemoved";

/** One action on the engine. Each may be repeated after a crash: "already so" is success. */
export type PodAction =
  | { kind: "create-sandbox"; attempt: number }
  | { kind: "stop-sandbox"; id: ContainerId; graceSeconds: number }
  | { kind: "remove-sandbox"; id: ContainerId }
  | {
      kind: "kill-container";
      id: ContainerId;
      name: string;
      reason: KillReason;
      message: string;
      /** Counts for the preStop hook and the wait after SIGTERM together. */
      graceSeconds: number;
    }
  | {
      kind: "start-container";
      name: string;
      restartCount: number;
      hash: string;
      /** Back-off to remember once the start begins. */
      backOff?: { key: string; entry: BackOffEntry };
    }
  | { kind: "resize-container"; id: ContainerId; name: string; update: Partial<ContainerLimits> }
  | { kind: "remove-container"; id: ContainerId; name: string };

/** A pod that will not run any more in this revision. */
export interface PodEnd {
  phase: "Succeeded" | "Failed";
  reason?: string;
  message?: string;
}

/** Why a container is not running although it should be, e.g. `CrashLoopBackOff` and its message. */
export interface WaitingReason {
  reason: WaitingReasonName;
  message: string;
}

export interface PodPlan {
  /** In the order they must begin; empty when nothing is to be done or everything waits. */
  actions: PodAction[];
  /** Plan again no later than this (monotonic milliseconds), even if nothing changes. */
  recheckAtMs?: number;
  /** Reasons why containers wait, by container name. */
  waiting: Map<string, WaitingReason>;
  /** Set when the pod has ended; the actions then only stop it. */
  end?: PodEnd;
}

/** Hashes of the parts of a manifest, to compare with the labels of what runs. */
export interface PodHashes {
  sandbox: string;
  /** Hash of the init containers without sidecars; absent: their edits are ignored. */
  init?: string;
  /** Hashes by container name, init containers included. */
  containers: ReadonlyMap<string, string>;
  /** CPU and memory as the engine should enforce them: edits of these need no restart. */
  limits: ReadonlyMap<string, ContainerLimits>;
}

/** Probe results of one container; `containerId` identifies the attempt. */
export interface ContainerProbeState {
  containerId: ContainerId;
  liveness?: "success" | "failure";
  startup?: "success" | "failure";
  /** Startup probe passed, or there is none. */
  started: boolean;
  /** Readiness probe passed, or there is none. */
  ready: boolean;
}

export interface PodPlanOptions {
  /** Longest crash-loop back-off. */
  maxBackOffMs: number;
  /** Dead containers kept per name, for their logs; -1 = all. */
  maxDeadPerContainer: number;
  /** A dead container is kept at least this long after its end. */
  minDeadTtlMs: number;
}

export interface PodPlanInput {
  pod: Pod;
  hashes: PodHashes;
  snapshot: PodSnapshot;
  /** Probe states by container name. */
  probes: ReadonlyMap<string, ContainerProbeState>;
  state: SyncState;
  nowMs: number;
  options: PodPlanOptions;
  /** When activeDeadlineSeconds runs out. */
  deadlineAtMs?: number;
  /** The pod already ended in this revision (also in an earlier process), or is halted. */
  end?: PodEnd;
  /** Nothing may start while nothing of the pod runs: it waits for another pod. */
  hold?: WaitingReason;
  /** Limits the grace period of a pod that is stopped. */
  maxGraceSeconds?: number;
}

/** Facts about a pod that the engine does not know. Owned by its worker. All times are monotonic milliseconds. */
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
   * Containers killed to start again do not wait like a crash; value: when the attempt before ended, undefined = none.
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

/** Back-off of an earlier process, from labels: a restart of the kubelet neither shortens nor prolongs it. */
export function recoverBackOff(input: RecoverBackOffInput): Map<string, BackOffEntry> {
  const { hashes, options, snapshot, exitedAtMs, now, nowMs } = input;
  const backOff = new Map<string, BackOffEntry>();
  for (const [name, hash] of hashes.containers) {
    const newest = attemptsOf(snapshot, name)[0];
    if (newest?.hash !== hash || newest.backOffMs === undefined) continue;
    // A clock that was set back meanwhile must not put the reset off for as long.
    const ranForMs = Math.max(
      0,
      (newest.finishedAt ?? now).getTime() - (newest.startedAt ?? newest.createdAt).getTime(),
    );
    const endedAtMs = exitedAtMs.get(newest.id) ?? nowMs;
    const delayMs = Math.min(newest.backOffMs, options.maxBackOffMs);
    backOff.set(backOffKey(name, hash), { delayMs, updatedAtMs: endedAtMs - ranForMs });
  }
  return backOff;
}

/** First wait after a crash, the longest wait, and the good run after which a container starts afresh. */
const INITIAL_BACK_OFF_MS = 10_000;
export const MAX_BACK_OFF_MS = 300_000;
const BACK_OFF_RESET_MS = 600_000;

/** One container's crash-loop back-off. Times are monotonic milliseconds. */
export interface BackOffEntry {
  /** Delay after the next exit. */
  delayMs: number;
  /** When the delay was last raised (the start that used it). */
  updatedAtMs: number;
}

const expired = (entry: BackOffEntry, exitedAtMs: number) => exitedAtMs - entry.updatedAtMs > BACK_OFF_RESET_MS;

/** Time that a container that exited at `exitedAtMs` still has to wait; 0 = none. Source: `IsInBackOffSince`. */
export function backOffRemainingMs(entry: BackOffEntry | undefined, exitedAtMs: number, nowMs: number): number {
  if (!entry || expired(entry, exitedAtMs)) return 0;
  return Math.max(0, exitedAtMs + entry.delayMs - nowMs);
}

/** The entry after one more start: 10 s at first, then doubled up to `maxMs`; afresh after ten minutes of good run. */
export function nextBackOff(
  entry: BackOffEntry | undefined,
  exitedAtMs: number,
  nowMs: number,
  maxMs: number,
): BackOffEntry {
  const initial = Math.min(INITIAL_BACK_OFF_MS, maxMs);
  if (!entry || expired(entry, exitedAtMs)) return { delayMs: initial, updatedAtMs: nowMs };
  return { delayMs: Math.min(entry.delayMs * 2, maxMs), updatedAtMs: nowMs };
}
