import type { Pod } from "../base/api/pod.ts";
import type { DaemonSet, ReplicaSet, ReplicationController } from "../base/api/workload.ts";
import type { DesiredWorkload } from "../base/model/desired-object.ts";
import { matchesNode } from "../plan/node-affinity.ts";
import { type ControllerWorld, Draft, type WorkloadEvent } from "./controller.ts";
import { type JobLookup, reconcileCronJob } from "./cron-job.ts";
import { reconcileDeployment, scaledValue } from "./deployment.ts";
import { reconcileJob } from "./job.ts";
import { reconcileStatefulSet } from "./stateful-set.ts";
import type { ControllerState, WorkloadRecord } from "./workload-records.ts";

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

/**
 * The next state of a ReplicaSet or ReplicationController: as many pods as it wants. An edited template holds for new
 * pods only. Source: `pkg/controller/replicaset` of 1.20.
 */
function reconcileReplicaSet(draft: Draft, { template, replicas }: (ReplicaSet | ReplicationController)["spec"]): void {
  const current = draft.findRevision(template) ?? draft.addRevision(template, "as-owner");
  draft.fitPods(current, draft.livePods(), replicas);
  draft.limitHistory(0, [current.hash]);
}

/** The next state of a DaemonSet: one pod, if it may run on this node. Source: `pkg/controller/daemon` of 1.20. */
function reconcileDaemonSet(draft: Draft, spec: DaemonSet["spec"]): void {
  const update = draft.takeUpRevision(spec.template, "as-owner");
  const live = draft.livePods();
  const newest = live.find(({ revision }) => revision === update.hash);
  const others = live.filter((pod) => pod !== newest);
  if (!matchesNode(spec.template as Pod, draft.world.nodeName, draft.world.nodeLabels)) {
    for (const pod of live) draft.deletePod(pod);
  } else if (live.length === 0) {
    // The pod before it must be gone: there is one daemon on a node.
    if (draft.record.pods.length === 0) draft.createPod(update);
  } else if (spec.updateStrategy.type === "RollingUpdate") {
    const { maxSurge = 0 } = spec.updateStrategy.rollingUpdate ?? {};
    const mayOverlap = scaledValue(maxSurge, 1, "up") > 0;
    const isNewestUp = newest !== undefined && draft.isAvailable(newest, spec.minReadySeconds);
    const isOldUp = others.some((pod) => draft.isAvailable(pod, spec.minReadySeconds));
    if (others.length > 0 && mayOverlap && !newest && isOldUp) draft.createPod(update);
    if (isNewestUp || !mayOverlap || !isOldUp) for (const pod of others) draft.deletePod(pod);
  }
  draft.limitHistory(spec.revisionHistoryLimit, [update.hash]);
}
