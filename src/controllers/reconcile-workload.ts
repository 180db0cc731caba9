import type { DesiredWorkload } from "../base/model/desired-object.ts";
import type { ControllerWorld, WorkloadEvent } from "./controller.ts";
import { type JobLookup, reconcileCronJob } from "./cron-job.ts";
import { reconcileDaemonSet } from "./daemon-set.ts";
import { type ProgressState, reconcileDeployment } from "./deployment.ts";
import { type JobState, reconcileJob } from "./job.ts";
import { reconcileReplicaSet } from "./replica-set.ts";
import { reconcileStatefulSet } from "./stateful-set.ts";
import type { WorkloadRecord } from "./workload-record.ts";

/** State that a controller keeps between reconciliations, in this process. */
export type ControllerState = ProgressState | JobState;

interface Outcome {
  record: WorkloadRecord;
  events: readonly WorkloadEvent[];
  state?: ControllerState;
  /** Time until the next reconciliation, at the latest. */
  wakeInMs?: number;
}

/** The next state of any workload. Pure. */
export function reconcileWorkload(
  desired: DesiredWorkload,
  known: WorkloadRecord | undefined,
  world: ControllerWorld,
  state: ControllerState | undefined,
  jobOf: JobLookup,
): Outcome {
  const { revision } = desired;
  switch (desired.kind) {
    case "Deployment": {
      const progress = state?.kind === "Deployment" ? state : undefined;
      const { draft, state: next } = reconcileDeployment(desired.object, revision, known, world, progress);
      return toOutcome(draft, next);
    }
    case "ReplicaSet":
    case "ReplicationController":
      return toOutcome(reconcileReplicaSet(desired.kind, desired.object, revision, known, world));
    case "StatefulSet":
      return toOutcome(reconcileStatefulSet(desired.object, revision, known, world));
    case "DaemonSet":
      return toOutcome(reconcileDaemonSet(desired.object, revision, known, world));
    case "Job": {
      const jobState = state?.kind === "Job" ? state : undefined;
      const { draft, state: next } = reconcileJob(desired.object, revision, known, world, jobState);
      return toOutcome(draft, next);
    }
    case "CronJob":
      return toOutcome(reconcileCronJob(desired.object, revision, known, world, jobOf));
    default:
      return desired satisfies never;
  }
}

function toOutcome(
  { record, events, wakeInMs }: { record: WorkloadRecord; events: WorkloadEvent[]; wakeInMs: number | undefined },
  state?: ControllerState,
): Outcome {
  return { record, events, ...(state && { state }), ...(wakeInMs !== undefined && { wakeInMs }) };
}
