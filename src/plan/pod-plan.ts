import type { Pod } from "../base/api/pod.ts";
import type { ContainerId, ContainerLimits, PodSnapshot } from "../base/model/pod-snapshot.ts";
import type { BackOffEntry } from "./restart-policy.ts";
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
  /** Crash-loop back-off by `backOffKey`. */
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
