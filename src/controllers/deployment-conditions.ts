import type { DeploymentSpec } from "../base/api/workload.ts";
import { computeFenceposts, type DeploymentCounts } from "./deployment.ts";
import { isRolloutComplete, NO_DEADLINE, type ProgressVerdict } from "./deployment-progress.ts";
import type { ConditionRecord } from "./workload-record.ts";

interface ConditionInput {
  spec: DeploymentSpec;
  counts: DeploymentCounts;
  /** Name of the ReplicaSet of the present template, once there is one. */
  replicaSet: string | undefined;
  verdict: ProgressVerdict;
  /** Conditions so far. */
  before: readonly ConditionRecord[];
  /** RFC 3339. */
  now: string;
}

type Finding = Pick<ConditionRecord, "status" | "reason" | "message">;

const COMPLETE = "NewReplicaSetAvailable";
const EXCEEDED = "ProgressDeadlineExceeded";
const PAUSED = "DeploymentPaused";

/** The conditions Available and Progressing. Source: `syncRolloutStatus`, `calculateStatus`, `checkPausedConditions`. */
export function computeDeploymentConditions(input: ConditionInput): ConditionRecord[] {
  const { spec, before, now } = input;
  const find = (type: string) => before.find((condition) => condition.type === type);
  const hasDeadline = (spec.progressDeadlineSeconds ?? NO_DEADLINE) !== NO_DEADLINE;
  const progress = hasDeadline ? computeProgress(input, find("Progressing")) : undefined;
  return [
    withTimes("Available", computeAvailability(input), find("Available"), now),
    ...(progress ? [withTimes("Progressing", progress, find("Progressing"), now)] : []),
  ];
}

function computeAvailability({ spec, counts }: ConditionInput): Finding {
  const { unavailable } = computeFenceposts(spec);
  return counts.availableReplicas >= spec.replicas - unavailable
    ? { status: "True", reason: "MinimumReplicasAvailable", message: "Deployment has minimum availability." }
    : {
        status: "False",
        reason: "MinimumReplicasUnavailable",
        message: "Deployment does not have minimum availability.",
      };
}

function computeProgress(input: ConditionInput, before: ConditionRecord | undefined): Finding {
  const { spec, counts, verdict, replicaSet } = input;
  const subject = `ReplicaSet "${replicaSet ?? ""}"`;
  if (spec.paused) {
    if (before?.reason === EXCEEDED) return before;
    return { status: "Unknown", reason: PAUSED, message: "Deployment is paused" };
  }
  const complete: Finding = { status: "True", reason: COMPLETE, message: `${subject} has successfully progressed.` };
  // A change of replicas is not a rollout.
  const wasComplete = before?.reason === COMPLETE && before.message === complete.message;
  if (isRolloutComplete(spec, counts) || (wasComplete && counts.replicas === counts.updatedReplicas)) return complete;
  if (verdict.isExceeded) {
    return { status: "False", reason: EXCEEDED, message: `${subject} has timed out progressing.` };
  }
  if (verdict.hasMoved || !before || before.reason === PAUSED) {
    return { status: "True", reason: "ReplicaSetUpdated", message: `${subject} is progressing.` };
  }
  return before;
}

/** Source: `SetDeploymentCondition`: the same status and reason is the same condition. */
function withTimes(type: string, found: Finding, before: ConditionRecord | undefined, now: string): ConditionRecord {
  if (before && before.status === found.status && before.reason === found.reason && before.message === found.message) {
    return before;
  }
  const lastTransitionTime = before?.status === found.status ? before.lastTransitionTime : now;
  const { status, reason, message } = found;
  return { type, status, reason, message, lastUpdateTime: now, lastTransitionTime };
}
