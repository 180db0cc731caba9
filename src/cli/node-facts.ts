import { hostname } from "node:os";
import type { KubeletOptions } from "../model/kubelet-options.ts";
import type { NodeInfo } from "../model/node.ts";
import { computeNodeLabels } from "../plan/node-affinity.ts";
import { computeNodeAllocatable } from "../plan/node-allocatable.ts";
import type { NodeObjectFacts } from "../stats/node-object.ts";
import { buildInfo } from "./version.ts";

/** What `/node` tells beside measurements. @param trouble of the kubelet; undefined while it does its work */
export function toNodeFacts(options: KubeletOptions, node: NodeInfo, trouble: string | undefined): NodeObjectFacts {
  const { podsPerCore, maxPods } = options;
  return {
    name: node.name,
    hostName: hostname(),
    ip: node.ip,
    labels: computeNodeLabels(node.name, process.arch === "x64" ? "amd64" : process.arch, options.nodeLabels),
    taints: options.nodeTaints,
    maxPods: podsPerCore > 0 ? Math.min(maxPods, podsPerCore * node.cpuCount) : maxPods,
    kubeletPort: options.port,
    kubeletVersion: buildInfo.version,
    allocatable: computeNodeAllocatable(node, options),
    evictionHard: options.evictionHard,
    pressureTransitionMs: options.evictionPressureTransitionMs,
    trouble,
  };
}
