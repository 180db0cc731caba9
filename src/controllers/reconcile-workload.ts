import type { DesiredWorkload } from "../base/model/desired-object.ts";
import type { ControllerWorld, WorkloadEvent } from "./controller.ts";
import { type JobLookup, reconcileCronJob } from "./cron-job.ts";
import { reconcileDaemonSet } from "./daemon-set.ts";
import { reconcileDeployment } from "./deployment.ts";
import { computeDeploymentConditions } from "./deployment-conditions.ts";
import { judgeProgress, type ProgressState } from "./deployment-progress.ts";
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
  /** Time until the next pass, at the latest. */
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
      const { draft, counts, current } = reconcileDeployment(desired.object, revision, known, world);
      const { record } = draft;
      const wasExceeded = record.progressDeadlineExceeded === true && known?.generation === record.generation;
      const { spec } = desired.object;
      const progress = state?.kind === "Deployment" ? state : undefined;
      const verdict = judgeProgress(spec, counts, record.generation, progress, wasExceeded, world.nowMs);
      if (verdict.wakeInMs !== undefined) draft.wakeIn(verdict.wakeInMs);
      delete record.progressDeadlineExceeded;
      if (verdict.isExceeded) record.progressDeadlineExceeded = true;
      if (verdict.isExceeded && !wasExceeded && current) {
        const message = `ReplicaSet "${current.name}" has timed out progressing`;
        draft.recordEvent("ProgressDeadlineExceeded", message, "Warning");
      }
      delete record.updateRevision;
      if (current) record.updateRevision = current.hash;
      const conditions = { spec, counts, replicaSet: current?.name, verdict, before: record.conditions ?? [] };
      record.conditions = computeDeploymentConditions({ ...conditions, now: draft.nowText });
      return toOutcome(draft, verdict.state);
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
