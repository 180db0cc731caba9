import type { ReplicaSet, ReplicationController } from "../base/api/workload.ts";
import { type ControllerWorld, Draft } from "./controller.ts";
import type { WorkloadRecord } from "./workload-record.ts";

/**
 * The next state of a ReplicaSet or ReplicationController: as many pods as it wants. An edited template holds for new
 * pods only. Pure. Source: `pkg/controller/replicaset` of 1.20.
 */
export function reconcileReplicaSet(
  kind: "ReplicaSet" | "ReplicationController",
  { metadata, spec }: ReplicaSet | ReplicationController,
  objectRevision: string,
  known: WorkloadRecord | undefined,
  world: ControllerWorld,
): Draft {
  const draft = new Draft(world, kind, metadata, objectRevision, known);
  const current = draft.findRevision(spec.template) ?? draft.addRevision(spec.template, "as-owner");
  const live = draft.livePods();
  for (let count = live.length; count < spec.replicas; count++) {
    const { name } = draft.makePod(current);
    draft.recordEvent("SuccessfulCreate", `Created pod: ${name}`);
  }
  for (const pod of draft.leastMissed(live).slice(0, Math.max(0, live.length - spec.replicas))) {
    draft.remove(pod);
    draft.recordEvent("SuccessfulDelete", `Deleted pod: ${pod.name}`);
  }
  draft.dropUnusedRevisions(current);
  return draft;
}
