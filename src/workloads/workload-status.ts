import type { PodStatus } from "../api/pod-status.ts";
import type { WorkloadKind } from "../model/desired-object.ts";
import type { PodRecord, WorkloadRecord } from "./workload-record.ts";

/** Inputs of a workload's status. */
export interface StatusInput {
  kind: WorkloadKind;
  record: WorkloadRecord;
  /** Statuses of the pods, by UID. */
  statuses: ReadonlyMap<string, PodStatus | undefined>;
  /** `spec.replicas`; 1 where the kind has none. */
  replicas: number;
  /** Generation of the object the record follows; undefined while it follows an older one. */
  generation: number | undefined;
}

type Condition = {
  type: string;
  status: "True" | "False";
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
};

const hasCondition = (status: PodStatus | undefined, type: string) =>
  status?.conditions?.some((condition) => condition.type === type && condition.status === "True") ?? false;

/** The `status` of a workload as the API shows it. Source: apps/v1 and batch/v1. */
export function computeWorkloadStatus({ kind, record, statuses, replicas, generation }: StatusInput): object {
  const pods = record.pods.filter(({ leaving }) => !leaving);
  const isReady = ({ uid }: PodRecord) => hasCondition(statuses.get(uid), "Ready");
  const ready = pods.filter(isReady).length;
  const newest = Object.entries(record.revisions).sort(([, a], [, b]) => b.revision - a.revision)[0]?.[0];
  const updated = pods.filter(({ revision }) => revision === newest).length;
  const observed = generation !== undefined && { observedGeneration: generation };
  switch (kind) {
    case "Deployment":
      return {
        ...observed,
        replicas: pods.length,
        updatedReplicas: updated,
        readyReplicas: ready,
        availableReplicas: ready,
        ...(ready < replicas && { unavailableReplicas: replicas - ready }),
        conditions: deploymentConditions(record, ready, replicas, updated === replicas && pods.length === replicas),
      };
    case "StatefulSet": {
      const revisionName = (key: string | undefined) => key && record.revisions[key]?.name;
      return {
        ...observed,
        replicas: pods.length,
        readyReplicas: ready,
        availableReplicas: ready,
        updatedReplicas: updated,
        currentReplicas: pods.length,
        currentRevision: revisionName(record.currentRevision ?? newest),
        updateRevision: revisionName(newest),
      };
    }
    case "DaemonSet":
      return {
        ...observed,
        currentNumberScheduled: pods.length,
        desiredNumberScheduled: pods.length,
        numberMisscheduled: 0,
        numberReady: ready,
        numberAvailable: ready,
        updatedNumberScheduled: updated,
      };
    case "Job":
      return jobStatus(record, pods, ready);
    case "CronJob":
      return {
        ...(record.cron?.lastScheduleTime !== undefined && { lastScheduleTime: record.cron.lastScheduleTime }),
      };
    default:
      return {
        ...observed,
        replicas: pods.length,
        fullyLabeledReplicas: pods.length,
        readyReplicas: ready,
        availableReplicas: ready,
      };
  }
}

function deploymentConditions(
  record: WorkloadRecord,
  ready: number,
  replicas: number,
  isComplete: boolean,
): Condition[] {
  const isAvailable = ready >= replicas;
  const available: Condition = isAvailable
    ? {
        type: "Available",
        status: "True",
        reason: "MinimumReplicasAvailable",
        message: "Deployment has minimum availability.",
      }
    : {
        type: "Available",
        status: "False",
        reason: "MinimumReplicasUnavailable",
        message: "Deployment does not have minimum availability.",
      };
  const progressing: Condition = record.progressDeadlineExceeded
    ? {
        type: "Progressing",
        status: "False",
        reason: "ProgressDeadlineExceeded",
        message: "the rollout has exceeded its progress deadline",
      }
    : {
        type: "Progressing",
        status: "True",
        reason: isComplete && isAvailable ? "NewReplicaSetAvailable" : "ReplicaSetUpdated",
        message: isComplete && isAvailable ? "the rollout is complete" : "the rollout is progressing",
      };
  return [available, progressing];
}

function jobStatus({ job }: WorkloadRecord, pods: readonly PodRecord[], ready: number): object {
  const ended = (phase: "Succeeded" | "Failed") => pods.filter((pod) => pod.ended?.phase === phase).length;
  const active = pods.filter((pod) => !pod.ended).length;
  const { finished, startTime } = job ?? {};
  const conditions: Condition[] = [];
  if (finished) {
    const { type, reason, message, at } = finished;
    conditions.push({
      type,
      status: "True",
      ...(reason && { reason }),
      ...(message && { message }),
      lastTransitionTime: at,
    });
  } else if (job?.isSuspended)
    conditions.push({ type: "Suspended", status: "True", reason: "JobSuspended", message: "Job suspended" });
  return {
    ...(startTime && { startTime }),
    ...(active > 0 && !finished && { active, ready }),
    ...(ended("Succeeded") > 0 && { succeeded: ended("Succeeded") }),
    ...(ended("Failed") > 0 && { failed: ended("Failed") }),
    ...(finished?.type === "Complete" && { completionTime: finished.at }),
    ...(conditions.length > 0 && { conditions }),
  };
}
