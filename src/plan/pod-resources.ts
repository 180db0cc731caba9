import type { Container, Pod, QOSClass, ResourceList, ResourceRequirements } from "../base/api/pod.ts";
import { quantityToMilli, quantityToWhole } from "../base/api/quantity.ts";
import { containersOf } from "../base/model/pod-containers.ts";

/** Thousandths of a CPU that a list names; 0 when it does not. */
export const cpuMillisOf = (list: ResourceList | undefined) => quantityToMilli(list?.cpu ?? "0");

/** Bytes of memory that a list names; 0 when it does not. */
export const memoryBytesOf = (list: ResourceList | undefined) => quantityToWhole(list?.memory ?? "0");

/** Names of the huge page sizes in a list, e.g. `hugepages-2Mi`. */
export const hugePageNamesOf = (list: ResourceList | undefined) =>
  Object.keys(list ?? {}).filter((name) => name.startsWith("hugepages-"));

const isRestartable = (container: Container) => container.restartPolicy === "Always";

/**
 * Total of one resource: the sum of what runs at the same time, or more while an init container runs with the sidecars
 * before it. Resources of the pod itself take precedence, overhead is added. Source: upstream's PodRequests and
 * PodLimits.
 */
export function computePodTotal(
  pod: Pod,
  kind: "requests" | "limits",
  amountIn: (list: ResourceList | undefined) => number,
): number {
  const { initContainers = [], containers, resources, overhead } = pod.spec;
  const own = amountIn(resources?.[kind]);
  if (own > 0) return own + amountIn(overhead);

  const needOf = (container: Container) => amountIn(container.resources[kind]);
  let sidecars = 0;
  let highestInit = 0;
  for (const container of initContainers) {
    if (isRestartable(container)) sidecars += needOf(container);
    highestInit = Math.max(highestInit, sidecars + (isRestartable(container) ? 0 : needOf(container)));
  }
  const running = containers.reduce((sum, container) => sum + needOf(container), sidecars);
  const total = Math.max(running, highestInit);
  // A pod without any limit does not get one from its overhead.
  return kind === "limits" && total === 0 ? 0 : total + amountIn(overhead);
}

const COMPUTE_RESOURCES = [cpuMillisOf, memoryBytesOf] as const;

/** QoS class by cpu and memory of all containers, or of the pod itself where it names any. Source: ComputePodQOS. */
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

/** Decided by priority class: upstream calls every static pod critical, which would leave nothing to evict here. */
export const isCriticalPod = ({ spec }: Pod) => CRITICAL_PRIORITY_CLASSES.has(spec.priorityClassName ?? "");

/** The smallest weight the kernel takes, also what a container without a CPU request gets. */
export const MIN_CPU_SHARES = 2;
const MAX_CPU_SHARES = 262_144;
const SHARES_PER_CPU = 1024;
/** The kernel refuses shorter quotas. Microseconds. */
const MIN_CPU_QUOTA_US = 1000;

/** cgroup v1 `cpu.shares` and Docker's CpuShares of a CPU request in thousandths of a CPU. Source: kubelet. */
export const toCpuShares = (milliCpu: number) =>
  Math.min(MAX_CPU_SHARES, Math.max(MIN_CPU_SHARES, Math.floor((milliCpu * SHARES_PER_CPU) / 1000)));

/** CFS quota in microseconds per period; 0 when there is no limit. Source: kubelet. */
export const toCpuQuotaUs = (milliCpu: number, periodUs: number) =>
  milliCpu === 0 ? 0 : Math.max(MIN_CPU_QUOTA_US, Math.floor((milliCpu * periodUs) / 1000));

/** cgroup v2 `cpu.weight` (1…10000) of a v1 weight (2…262144). Source: runc and kubelet. */
export const toCpuWeight = (cpuShares: number) => 1 + Math.floor(((cpuShares - 2) * 9999) / 262_142);
