import type { Kubelet } from "../../kubelet/kubelet.ts";
import type { PodRuntimeManager } from "../../kubelet/pod-runtime-manager.ts";
import { computeNodeLabels } from "../../plan/node-affinity.ts";
import type { ServiceHosts } from "../../workloads/service-hosts.ts";
import { WorkloadManager } from "../../workloads/workload-manager.ts";
import { type NodeContext, openStateFile } from "./node-context.ts";
import { WorkloadsSchema } from "./state-schemas.ts";

/** The controllers of workloads, between the sources and the kubelet. */
export function buildWorkloads(
  context: NodeContext,
  kubelet: Kubelet,
  runtime: PodRuntimeManager,
  services: ServiceHosts,
): WorkloadManager {
  const { clock, logger, node, options } = context;
  return new WorkloadManager({
    clock,
    logger,
    nodeName: node.name,
    nodeLabels: computeNodeLabels(node.name, process.arch === "x64" ? "amd64" : process.arch, options.nodeLabels),
    file: openStateFile(context, "workloads", WorkloadsSchema, { durable: true }),
    kubelet,
    services,
    rewriteHosts: (pod, podIps) => runtime.rewriteHostsFile(pod, podIps),
    publish: (state, isComplete) => kubelet.setDesired(state, isComplete),
  });
}
