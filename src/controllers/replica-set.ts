import type { ReplicaSet, ReplicationController } from "../base/api/workload.ts";
import type { Draft } from "./controller.ts";

/**
 * The next state of a ReplicaSet or ReplicationController: as many pods as it wants. An edited template holds for new
 * pods only. Source: `pkg/controller/replicaset` of 1.20.
 */
export function reconcileReplicaSet(
  draft: Draft,
  { template, replicas }: (ReplicaSet | ReplicationController)["spec"],
): void {
  const current = draft.findRevision(template) ?? draft.addRevision(template, "as-owner");
  draft.fitPods(current, draft.livePods(), replicas);
  draft.limitHistory(0, [current.hash]);
}
