import type { Pod } from "../base/api/pod.ts";
import type { DaemonSet } from "../base/api/workload.ts";
import { matchesNode } from "../plan/node-affinity.ts";
import type { Draft } from "./controller.ts";
import { scaledValue } from "./deployment.ts";

/** The next state of a DaemonSet: one pod, if it may run on this node. Source: `pkg/controller/daemon` of 1.20. */
export function reconcileDaemonSet(draft: Draft, spec: DaemonSet["spec"]): void {
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
