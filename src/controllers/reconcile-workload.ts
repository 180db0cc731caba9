import type { DesiredWorkload } from "../base/model/desired-object.ts";
import { type ControllerWorld, Draft, type WorkloadEvent } from "./controller.ts";
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
  state: ControllerState | undefined;
  /** Time until the next reconciliation, at the latest. */
  wakeInMs: number | undefined;
}

/** The next state of any workload. Pure. */
export function reconcileWorkload(
  desired: DesiredWorkload,
  known: WorkloadRecord | undefined,
  world: ControllerWorld,
  before: ControllerState | undefined,
  jobOf: JobLookup,
): Outcome {
  const draft = new Draft(world, desired.kind, desired.object.metadata, desired.revision, known);
  let state: ControllerState | undefined;
  switch (desired.kind) {
    case "Deployment":
      state = reconcileDeployment(draft, desired.object.spec, before?.kind === "Deployment" ? before : undefined);
      break;
    case "ReplicaSet":
    case "ReplicationController":
      reconcileReplicaSet(draft, desired.object.spec);
      break;
    case "StatefulSet":
      reconcileStatefulSet(draft, desired.object.spec);
      break;
    case "DaemonSet":
      reconcileDaemonSet(draft, desired.object.spec);
      break;
    case "Job":
      state = reconcileJob(draft, desired.object.spec, before?.kind === "Job" ? before : undefined);
      break;
    case "CronJob":
      reconcileCronJob(draft, desired.object.spec, jobOf);
      break;
    default:
      desired satisfies never;
  }
  return { record: draft.record, events: draft.events, state, wakeInMs: draft.wakeInMs };
}
