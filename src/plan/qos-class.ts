import type { Pod, QOSClass, ResourceRequirements } from "../base/api/pod.ts";
import { containersOf } from "../base/model/pod-containers.ts";
import { cpuMillisOf, memoryBytesOf } from "./pod-resources.ts";

const COMPUTE_RESOURCES = [cpuMillisOf, memoryBytesOf] as const;

/**
 * QoS class by cpu and memory of all containers, init containers included; 0 counts as not set. Resources of the pod
 * itself decide alone when it names cpu or memory. Source: upstream's ComputePodQOS.
 */
export function computeQosClass({ spec }: Pod): QOSClass {
  const own = [spec.resources ?? {}];
  const parts: ResourceRequirements[] = own.some(namesAny) ? own : containersOf(spec).map(({ resources }) => resources);
  if (!parts.some(namesAny)) return "BestEffort";

  const everyPartLimited = parts.every(({ limits }) => COMPUTE_RESOURCES.every((amountIn) => amountIn(limits) > 0));
  const requestsAreLimits = COMPUTE_RESOURCES.every((amountIn) => {
    const sum = (kind: "requests" | "limits") => parts.reduce((total, part) => total + amountIn(part[kind]), 0);
    return sum("requests") === sum("limits");
  });
  return everyPartLimited && requestsAreLimits ? "Guaranteed" : "Burstable";
}

const namesAny = ({ requests, limits }: ResourceRequirements) =>
  COMPUTE_RESOURCES.some((amountIn) => amountIn(requests) > 0 || amountIn(limits) > 0);

const CRITICAL_PRIORITY_CLASSES = new Set(["system-node-critical", "system-cluster-critical"]);

/**
 * Critical pods keep the Guaranteed OOM score and are never evicted. Upstream calls every static pod critical; where
 * all pods are static that would leave nothing to evict, so only the priority class counts here (design.md).
 */
export const isCriticalPod = ({ spec }: Pod) => CRITICAL_PRIORITY_CLASSES.has(spec.priorityClassName ?? "");
