import type { WorkloadKind } from "../base/model/desired-object.ts";
import type { PodFacts } from "./controller.ts";
import type { PodRecord, WorkloadRecord } from "./workload-record.ts";

/** Inputs of a workload's status. */
export interface StatusInput {
  kind: WorkloadKind;
  record: WorkloadRecord;
  /** Facts of a pod by uid. */
  pod: (uid: string) => Pick<PodFacts, "isReady" | "readyForMs">;
  minReadySeconds: number | undefined;
  /** Reference to a Job of a CronJob. */
  jobOf: (name: string) => JobReference;
  /** Generation of the object the record follows; undefined while it follows an older one. */
  generation: number | undefined;
}

/** Source: core/v1 `ObjectReference`. */
export interface JobReference {
  apiVersion: "batch/v1";
  kind: "Job";
  namespace: string;
  name: string;
  uid: string;
}

type Condition = {
  type: string;
  status: "True" | "False";
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
};

/** Jobs whose end was not seen yet are active, as upstream counts them. */
function cronJobStatus({ cron }: WorkloadRecord, jobOf: StatusInput["jobOf"]): object {
  const active = (cron?.jobs ?? []).filter(({ isSeen }) => !isSeen).map(({ name }) => jobOf(name));
  return {
    ...(active.length > 0 && { active }),
    ...(cron?.lastScheduleTime !== undefined && { lastScheduleTime: cron.lastScheduleTime }),
    ...(cron?.lastSuccessfulTime !== undefined && { lastSuccessfulTime: cron.lastSuccessfulTime }),
  };
}

/** The `status` of a workload as the API shows it. Source: apps/v1 and batch/v1. */
export function computeWorkloadStatus(input: StatusInput): object {
  const { kind, record, generation, minReadySeconds = 0 } = input;
  const pods = record.pods.filter(({ leaving }) => !leaving);
  const facts = pods.map(({ uid }) => input.pod(uid)).filter(({ isReady }) => isReady);
  const ready = facts.length;
  const available = facts.filter(({ readyForMs }) => readyForMs >= minReadySeconds * 1000).length;
  const newest = Object.entries(record.revisions).sort(([, a], [, b]) => b.revision - a.revision)[0]?.[0];
  const updated = pods.filter(({ revision }) => revision === newest).length;
  const observed = generation !== undefined && { observedGeneration: generation };
  switch (kind) {
    case "Deployment": {
      // Pods wanted of all ReplicaSets. Source: `calculateStatus`.
      const total = Object.values(record.revisions).reduce((sum, revision) => sum + revision.replicas, 0);
      const ofTemplate = pods.filter(({ revision }) => revision === record.updateRevision).length;
      return {
        ...observed,
        ...(pods.length > 0 && { replicas: pods.length }),
        ...(ofTemplate > 0 && { updatedReplicas: ofTemplate }),
        ...(ready > 0 && { readyReplicas: ready }),
        ...(available > 0 && { availableReplicas: available }),
        ...(available < total && { unavailableReplicas: total - available }),
        conditions: record.conditions ?? [],
      };
    }
    case "StatefulSet": {
      const revisionName = (key: string | undefined) => key && `${record.revisions[key]?.name}-${key}`;
      return {
        ...observed,
        replicas: pods.length,
        readyReplicas: ready,
        availableReplicas: available,
        updatedReplicas: updated,
        currentReplicas: pods.filter(({ revision }) => revision === (record.currentRevision ?? newest)).length,
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
        numberAvailable: available,
        ...(available < pods.length && { numberUnavailable: pods.length - available }),
        updatedNumberScheduled: updated,
      };
    case "Job":
      return jobStatus(record, pods, ready);
    case "CronJob":
      return cronJobStatus(record, input.jobOf);
    default:
      return {
        ...observed,
        replicas: pods.length,
        fullyLabeledReplicas: pods.length,
        readyReplicas: ready,
        availableReplicas: available,
      };
  }
}

/** The `status` of a Job. @param pods those that are not being removed */
export function jobStatus({ job }: WorkloadRecord, pods: readonly PodRecord[], ready: number): object {
  const countOf = (phase: "Succeeded" | "Failed") => pods.filter((pod) => pod.ended?.phase === phase).length;
  const succeeded = job?.expired?.succeeded ?? countOf("Succeeded");
  const active = pods.filter((pod) => !pod.ended).length;
  const { finished, startTime } = job ?? {};
  const failed = (job?.expired?.failed ?? countOf("Failed")) + (finished?.stopped ?? 0);
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
    ...(succeeded > 0 && { succeeded }),
    ...(failed > 0 && { failed }),
    ...(finished?.type === "Complete" && { completionTime: finished.at }),
    ...(conditions.length > 0 && { conditions }),
  };
}
