import type { Container, Pod, QOSClass, ResourceList, ResourceRequirements } from "../base/api/pod.ts";
import { formatBytes, formatMillis, quantityToMilli, quantityToWhole } from "../base/api/quantity.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { containersOf, mapContainers } from "../base/model/pod.ts";
import type { ContainerLimits } from "../base/model/pod-snapshot.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { isSidecar } from "./restart-policy.ts";

/** Thousandths of a CPU that a list names; 0 when it does not. */
export const cpuMillisOf = (list: ResourceList | undefined) => quantityToMilli(list?.cpu ?? "0");

/** Bytes of memory that a list names; 0 when it does not. */
export const memoryBytesOf = (list: ResourceList | undefined) => quantityToWhole(list?.memory ?? "0");

/** Names of the huge page sizes in a list, e.g. `hugepages-2Mi`. */
export const hugePageNamesOf = (list: ResourceList | undefined) =>
  Object.keys(list ?? {}).filter((name) => name.startsWith("hugepages-"));

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
    if (isSidecar(container)) sidecars += needOf(container);
    highestInit = Math.max(highestInit, sidecars + (isSidecar(container) ? 0 : needOf(container)));
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

/** Source: upstream's SystemCriticalPriority: pods of this priority and above are critical. */
export const CRITICAL_PRIORITY = 2_000_000_000;

/** The classes every cluster has; others cannot be defined. Source: scheduling's SystemPriorityClasses. */
const CLASS_PRIORITIES: ReadonlyMap<string, number> = new Map([
  ["system-cluster-critical", CRITICAL_PRIORITY],
  ["system-node-critical", CRITICAL_PRIORITY + 1000],
]);

/** `spec.priority`, else the value of its priority class, else 0. */
export const computePodPriority = ({ spec }: Pod): number =>
  spec.priority ?? CLASS_PRIORITIES.get(spec.priorityClassName ?? "") ?? 0;

/** Decided by priority class: upstream calls every static pod critical, which would leave nothing to evict here. */
export const isCriticalPod = ({ spec }: Pod) => CLASS_PRIORITIES.has(spec.priorityClassName ?? "");

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

type ResourceSettings = Pick<KubeletOptions, "cpuCfsQuota" | "cpuCfsQuotaPeriodMs" | "memorySwap">;

interface ResourceInput {
  pod: Pod;
  container: Container;
  node: NodeInfo;
  settings: ResourceSettings;
}

/** CPU and memory of a container by requests and limits. Source: kubelet and dockershim 1.20; swap: KEP-2400. */
export function computeContainerLimits(input: ResourceInput): ContainerLimits {
  const { requests, limits } = input.container.resources;
  const { settings } = input;
  const cpuRequest = cpuMillisOf(requests);
  const cpuLimit = cpuMillisOf(limits);
  const periodUs = settings.cpuCfsQuotaPeriodMs * 1000;
  return {
    cpuShares: toCpuShares(cpuRequest === 0 ? cpuLimit : cpuRequest),
    cpuPeriodUs: settings.cpuCfsQuota ? periodUs : 0,
    cpuQuotaUs: settings.cpuCfsQuota ? toCpuQuotaUs(cpuLimit, periodUs) : 0,
    ...computeMemory(input),
  };
}

/** The engine reads an int64; of the numbers that JSON carries exactly the largest below its end, in whole KiB. */
const MOST_BYTES = 2 ** 63 - 1024;

/** LimitedSwap: a Burstable container whose request is below its limit gets a share of the node's swap. */
function computeMemory({
  pod,
  container,
  node,
  settings,
}: ResourceInput): Pick<ContainerLimits, "memoryBytes" | "memorySwapBytes"> {
  const request = memoryBytesOf(container.resources.requests);
  const limit = Math.min(memoryBytesOf(container.resources.limits), MOST_BYTES);
  const maySwap =
    settings.memorySwap === "LimitedSwap" &&
    computeQosClass(pod) === "Burstable" &&
    !isCriticalPod(pod) &&
    request > 0 &&
    request !== limit;
  const swap = maySwap ? Math.floor((request / node.memoryBytes) * (node.swapBytes ?? 0)) : 0;
  if (limit > 0) return { memoryBytes: limit, memorySwapBytes: limit + swap };
  // The engine takes a bound on swap only together with one on memory: all of the node's memory is equal to no bound.
  if (settings.memorySwap === "LimitedSwap")
    return { memoryBytes: node.memoryBytes, memorySwapBytes: node.memoryBytes + swap };
  return { memoryBytes: 0, memorySwapBytes: 0 };
}

/** Limits to change in a running container; undefined: none. The removal of a memory limit changes the hash instead. */
export function computeLimitsUpdate(
  have: ContainerLimits,
  want: ContainerLimits,
): Partial<ContainerLimits> | undefined {
  const update: Partial<ContainerLimits> = {};
  if (have.cpuShares !== want.cpuShares) update.cpuShares = want.cpuShares;
  if (have.cpuPeriodUs !== want.cpuPeriodUs && want.cpuQuotaUs > 0) update.cpuPeriodUs = want.cpuPeriodUs;
  // Engines show "no limit" as 0 or as -1.
  if (Math.max(0, have.cpuQuotaUs) !== want.cpuQuotaUs) update.cpuQuotaUs = want.cpuQuotaUs;
  const hasOtherMemory = have.memoryBytes !== want.memoryBytes || have.memorySwapBytes !== want.memorySwapBytes;
  if (want.memoryBytes > 0 && hasOtherMemory) {
    update.memoryBytes = want.memoryBytes;
    update.memorySwapBytes = want.memorySwapBytes;
  }
  return Object.keys(update).length === 0 ? undefined : update;
}

/** Requests and limits that a pod was admitted with, by container name; "" is the pod itself. */
export type PodAllocation = Readonly<Record<string, ResourceRequirements>>;

/** An edit of resources that the node cannot satisfy now. Source: the kubelet's condition PodResizePending (KEP-1287). */
export interface PendingResize {
  /** `Infeasible`: more than the node has. `Deferred`: other pods hold what it needs. */
  reason: "Infeasible" | "Deferred";
  message: string;
  /** The pod with the resources it keeps. */
  pod: Pod;
}

/** Resources that this pod holds when it is admitted. */
export const allocationOf = ({ spec }: Pod): PodAllocation =>
  Object.fromEntries([
    ...containersOf(spec).map(({ name, resources }) => [name, resources]),
    ...(spec.resources ? [["", spec.resources]] : []),
  ]);

/** Whether it names any request or limit. */
export const hasResources = (allocation: PodAllocation): boolean =>
  Object.values(allocation).some(({ requests, limits }) => !isEmpty(requests) || !isEmpty(limits));

/** The pod with the resources it was admitted with; a container that was added since keeps what it asks for. */
export function withAllocation(pod: Pod, allocation: PodAllocation): Pod {
  const wanted = allocationOf(pod);
  const isSame = Object.keys(wanted).every(
    (name) => allocation[name] === undefined || Bun.deepEquals(allocation[name], wanted[name]),
  );
  if (isSame) return pod;
  const toAllocated = <T extends Container>(container: T): T => ({
    ...container,
    resources: allocation[container.name] ?? container.resources,
  });
  const spec = { ...mapContainers(pod.spec, toAllocated), ...(allocation[""] && { resources: allocation[""] }) };
  return { ...pod, spec };
}

/**
 * `resources` of a status: the allocated ones, with amounts in force in place of those that are not yet. Source: the
 * kubelet's convertContainerStatusResources.
 * @param inForce undefined when it does not run
 */
export function computeActualResources(
  allocated: ResourceRequirements,
  inForce: ContainerLimits | undefined,
  wanted: ContainerLimits | undefined,
): ResourceRequirements {
  if (!inForce || !wanted || !computeLimitsUpdate(inForce, wanted)) return allocated;
  const { cpuShares, cpuPeriodUs, cpuQuotaUs, memoryBytes } = inForce;
  const requests: ResourceList = {};
  const limits: ResourceList = {};
  if (cpuShares !== wanted.cpuShares) requests.cpu = formatMillis(Math.ceil((cpuShares * 1000) / 1024));
  if (cpuQuotaUs > 0 && cpuPeriodUs > 0 && cpuQuotaUs !== wanted.cpuQuotaUs) {
    limits.cpu = formatMillis(Math.round((cpuQuotaUs * 1000) / cpuPeriodUs));
  }
  if (memoryBytes > 0 && memoryBytes !== wanted.memoryBytes) limits.memory = formatBytes(memoryBytes);
  return {
    ...allocated,
    ...(allocated.requests && { requests: withAmounts(allocated.requests, requests) }),
    ...(allocated.limits && { limits: withAmounts(allocated.limits, limits) }),
  };
}

/** Amounts of resources that the list does not name are left out. */
const withAmounts = (list: ResourceList, amounts: ResourceList): ResourceList =>
  Object.fromEntries(Object.entries(list).map(([name, amount]) => [name, amounts[name] ?? amount]));

const isEmpty = (list: ResourceList | undefined) => Object.keys(list ?? {}).length === 0;
