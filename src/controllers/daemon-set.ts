import type { Pod } from "../base/api/pod.ts";
import type { DaemonSet } from "../base/api/workload.ts";
import { matchesNode } from "../plan/node-affinity.ts";
import { type ControllerWorld, Draft } from "./controller.ts";
import { scaledValue } from "./deployment.ts";
import type { PodRecord, WorkloadRecord } from "./workload-record.ts";

/** The next state of a DaemonSet: one pod, if it may run on this node. Pure. Source: `pkg/controller/daemon` of 1.20. */
export function reconcileDaemonSet(
  { metadata, spec }: DaemonSet,
  objectRevision: string,
  known: WorkloadRecord | undefined,
  world: ControllerWorld,
): Draft {
  const draft = new Draft(world, "DaemonSet", metadata, objectRevision, known);
  const update = draft.takeUpRevision(spec.template, "as-owner");
  const live = draft.livePods();
  const newest = live.find(({ revision }) => revision === update.hash);
  const others = live.filter((pod) => pod !== newest);
  const create = () => {
    const { name } = draft.makePod(update);
    draft.recordEvent("SuccessfulCreate", `Created pod: ${name}`);
  };
  const remove = (pod: PodRecord) => {
    draft.remove(pod);
    draft.recordEvent("SuccessfulDelete", `Deleted pod: ${pod.name}`);
  };
  if (!matchesNode(spec.template as Pod, world.nodeName, world.nodeLabels)) {
    for (const pod of live) remove(pod);
  } else if (live.length === 0) {
    // The pod before it must be gone: there is one daemon on a node.
    if (draft.record.pods.length === 0) create();
  } else if (spec.updateStrategy.type === "RollingUpdate") {
    const { maxSurge = 0 } = spec.updateStrategy.rollingUpdate ?? {};
    const mayOverlap = scaledValue(maxSurge, 1, "up") > 0;
    const isNewestUp = newest !== undefined && draft.isAvailable(newest, spec.minReadySeconds);
    const isOldUp = others.some((pod) => draft.isAvailable(pod, spec.minReadySeconds));
    if (others.length > 0 && mayOverlap && !newest && isOldUp) create();
    if (isNewestUp || !mayOverlap || !isOldUp) {
      for (const pod of others) remove(pod);
    }
  }
  draft.limitHistory(spec.revisionHistoryLimit, [update.hash]);
  return draft;
}
