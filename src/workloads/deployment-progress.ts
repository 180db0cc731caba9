import type { DeploymentSpec } from "../api/workload.ts";
import type { DeploymentCounts } from "./deployment.ts";

/** No deadline, as `extensions/v1beta1` writes it. */
export const NO_DEADLINE = 2147483647;

/** When a rollout last got further; kept in memory. */
export interface ProgressMemory {
  kind: "Deployment";
  counts: DeploymentCounts;
  generation: number;
  /** Monotonic. */
  sinceMs: number;
}

export interface ProgressVerdict {
  memory: ProgressMemory;
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
  before: ProgressMemory | undefined,
  wasExceeded: boolean,
  nowMs: number,
): ProgressVerdict {
  const hasMoved = !before || before.generation !== generation || isFurther(before.counts, counts);
  const memory: ProgressMemory = { kind: "Deployment", counts, generation, sinceMs: hasMoved ? nowMs : before.sinceMs };
  const { paused, progressDeadlineSeconds = NO_DEADLINE } = spec;
  if (isRolloutComplete(spec, counts) || paused || progressDeadlineSeconds === NO_DEADLINE) {
    return { memory, hasMoved, isExceeded: false };
  }
  // A restart of kubelet-ts is not progress.
  if (wasExceeded && (!before || !hasMoved)) return { memory, hasMoved, isExceeded: true };
  const leftMs = memory.sinceMs + progressDeadlineSeconds * 1000 - nowMs;
  if (leftMs > 0) return { memory, hasMoved, isExceeded: false, wakeInMs: leftMs };
  return { memory, hasMoved, isExceeded: true };
}

/** Every pod is of the present template and available. Source: `deploymentutil.DeploymentComplete`. */
export const isRolloutComplete = ({ replicas }: DeploymentSpec, counts: DeploymentCounts): boolean =>
  counts.updatedReplicas === replicas && counts.replicas === replicas && counts.availableReplicas === replicas;

const isFurther = (before: DeploymentCounts, now: DeploymentCounts): boolean =>
  now.updatedReplicas > before.updatedReplicas ||
  now.replicas - now.updatedReplicas < before.replicas - before.updatedReplicas ||
  now.readyReplicas > before.readyReplicas ||
  now.availableReplicas > before.availableReplicas;
