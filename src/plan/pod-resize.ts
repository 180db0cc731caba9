import type { Container, Pod, ResourceList, ResourceRequirements } from "../base/api/pod.ts";
import { formatQuantity } from "../base/api/quantity.ts";
import type { ContainerLimits } from "../base/model/container-limits.ts";
import { containersOf } from "../base/model/pod-containers.ts";
import { computeLimitsUpdate } from "./container-limits.ts";

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

/**
 * The pod with the resources it was admitted with; the same object when it asks for no others. A container that was added
 * since keeps what it asks for.
 */
export function withAllocation(pod: Pod, allocation: PodAllocation): Pod {
  const { spec } = pod;
  const wanted = allocationOf(pod);
  const isSame = Object.keys(wanted).every(
    (name) => allocation[name] === undefined || Bun.deepEquals(allocation[name], wanted[name]),
  );
  if (isSame) return pod;
  const toAllocated = <T extends Container>(container: T): T => ({
    ...container,
    resources: allocation[container.name] ?? container.resources,
  });
  return {
    ...pod,
    spec: {
      ...spec,
      containers: spec.containers.map(toAllocated),
      ...(spec.initContainers && { initContainers: spec.initContainers.map(toAllocated) }),
      ...(allocation[""] && { resources: allocation[""] }),
    },
  };
}

/**
 * `resources` of a container's status: the allocated ones, with the amounts that are in force in place of those that are
 * not yet. Source: the kubelet's convertContainerStatusResources.
 * @param inForce undefined when the container does not run
 * @param wanted limits that the allocated resources lead to
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
  if (cpuShares !== wanted.cpuShares) requests.cpu = toCpuQuantity(Math.ceil((cpuShares * 1000) / 1024));
  if (cpuQuotaUs > 0 && cpuPeriodUs > 0 && cpuQuotaUs !== wanted.cpuQuotaUs) {
    limits.cpu = toCpuQuantity(Math.round((cpuQuotaUs * 1000) / cpuPeriodUs));
  }
  if (memoryBytes > 0 && memoryBytes !== wanted.memoryBytes) limits.memory = toMemoryQuantity(memoryBytes);
  return {
    ...allocated,
    ...(allocated.requests && { requests: withAmounts(allocated.requests, requests) }),
    ...(allocated.limits && { limits: withAmounts(allocated.limits, limits) }),
  };
}

/** Amounts of resources that the list does not name are left out. */
const withAmounts = (list: ResourceList, amounts: ResourceList): ResourceList =>
  Object.fromEntries(Object.entries(list).map(([name, amount]) => [name, amounts[name] ?? amount]));

const toCpuQuantity = (millis: number) => formatQuantity({ unscaled: BigInt(millis), scale: -3, format: "DecimalSI" });

const toMemoryQuantity = (bytes: number) => formatQuantity({ unscaled: BigInt(bytes), scale: 0, format: "BinarySI" });

const isEmpty = (list: ResourceList | undefined) => Object.keys(list ?? {}).length === 0;
