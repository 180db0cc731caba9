import type { Kubelet } from "../../kubelet/kubelet.ts";
import { WorkloadManager } from "../../workloads/workload-manager.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { WorkloadsSchema } from "./state-schemas.ts";

/** The controllers of workloads, between the sources and the kubelet. */
export function buildWorkloads(context: NodeContext, kubelet: Kubelet): WorkloadManager {
  const { clock, logger, node } = context;
  return new WorkloadManager({
    clock,
    logger,
    nodeName: node.name,
    file: openStateFile(context, "workloads", WorkloadsSchema, { durable: true }),
    kubelet,
    publish: (state, isComplete) => kubelet.setDesired(state, isComplete),
  });
}
