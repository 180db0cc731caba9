import type { Container, Pod } from "../base/api/pod.ts";
import type { ContainerLimits } from "../base/model/container-limits.ts";
import type { NodeInfo } from "../base/model/node.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { toCpuQuotaUs, toCpuShares } from "./cpu-shares.ts";
import { cpuMillisOf, memoryBytesOf } from "./pod-resources.ts";
import { computeQosClass, isCriticalPod } from "./qos-class.ts";

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

/**
 * NoSwap: memory and swap together may not exceed the memory limit. LimitedSwap: a Burstable container whose request
 * is below its limit gets a share of the node's swap in proportion to its memory request.
 */
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

/**
 * The limits that change when a running container is resized in place to those of its manifest; undefined when it has
 * them. Its hash does not contain resizable fields; that a limit of memory is taken away does change the hash.
 */
export function computeLimitsUpdate(
  have: ContainerLimits,
  want: ContainerLimits,
): Partial<ContainerLimits> | undefined {
  const update: Partial<ContainerLimits> = {};
  if (have.cpuShares !== want.cpuShares) update.cpuShares = want.cpuShares;
  if (have.cpuPeriodUs !== want.cpuPeriodUs && want.cpuPeriodUs > 0) update.cpuPeriodUs = want.cpuPeriodUs;
  // Engines show "no limit" as 0 or as -1.
  if (Math.max(0, have.cpuQuotaUs) !== want.cpuQuotaUs) update.cpuQuotaUs = want.cpuQuotaUs;
  const hasOtherMemory = have.memoryBytes !== want.memoryBytes || have.memorySwapBytes !== want.memorySwapBytes;
  if (want.memoryBytes > 0 && hasOtherMemory) {
    update.memoryBytes = want.memoryBytes;
    update.memorySwapBytes = want.memorySwapBytes;
  }
  return Object.keys(update).length === 0 ? undefined : update;
}
