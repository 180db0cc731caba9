import type { DeploymentSpec } from "../base/api/workload.ts";
import type { DeploymentCounts } from "./deployment.ts";

/** No deadline, as `extensions/v1beta1` writes it. */
export const NO_DEADLINE = 2147483647;

/** The last progress of a rollout; not persisted. */
export interface ProgressState {
  kind: "Deployment";
  counts: DeploymentCounts;
  generation: number;
  /** Monotonic. */
  sinceMs: number;
}

export interface ProgressVerdict {
  state: ProgressState;
  isExceeded: boolean;
  /** It progressed since the last pass, or was edited. */
  hasMoved: boolean;
  /** The deadline, when it is yet to come. */
  wakeInMs?: number;
}

/**
 * Whether a rollout makes progress. Source: `deploymentutil.DeploymentProgressing`, `DeploymentTimedOut`.
 * @param wasExceeded an earlier verdict holds until something moves
 */
export function judgeProgress(
  spec: DeploymentSpec,
  counts: DeploymentCounts,
  generation: number,
  before: ProgressState | undefined,
  wasExceeded: boolean,
  nowMs: number,
): ProgressVerdict {
  const hasMoved = !before || before.generation !== generation || isFurther(before.counts, counts);
  const state: ProgressState = { kind: "Deployment", counts, generation, sinceMs: hasMoved ? nowMs : before.sinceMs };
  const { paused, progressDeadlineSeconds = NO_DEADLINE } = spec;
  if (isRolloutComplete(spec, counts) || paused || progressDeadlineSeconds === NO_DEADLINE) {
    return { state, hasMoved, isExceeded: false };
  }
  // A restart of kubelet-ts is not progress.
  if (wasExceeded && (!before || !hasMoved)) return { state, hasMoved, isExceeded: true };
  const leftMs = state.sinceMs + progressDeadlineSeconds * 1000 - nowMs;
  if (leftMs > 0) return { state, hasMoved, isExceeded: false, wakeInMs: leftMs };
  return { state, hasMoved, isExceeded: true };
}

/** Every pod is of the present template and available. Source: `deploymentutil.DeploymentComplete`. */
export const isRolloutComplete = ({ replicas }: DeploymentSpec, counts: DeploymentCounts): boolean =>
  counts.updatedReplicas === replicas && counts.replicas === replicas && counts.availableReplicas === replicas;

const isFurther = (before: DeploymentCounts, now: DeploymentCounts): boolean =>
  now.updatedReplicas > before.updatedReplicas ||
  now.replicas - now.updatedReplicas < before.replicas - before.updatedReplicas ||
  now.readyReplicas > before.readyReplicas ||
  now.availableReplicas > before.availableReplicas;
