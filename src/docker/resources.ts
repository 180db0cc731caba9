import type { Container, Pod } from "../base/api/pod.ts";
import { quantityToWhole } from "../base/api/quantity.ts";
import type { ContainerLimits } from "../base/model/container-limits.ts";
import type { EngineInfo, NodeInfo } from "../base/model/node.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import { MIN_CPU_SHARES, toCpuQuotaUs, toCpuShares } from "../plan/cpu-shares.ts";
import { computePodTotal, cpuMillisOf, memoryBytesOf } from "../plan/pod-resources.ts";
import { computeQosClass, isCriticalPod } from "../plan/qos-class.ts";
import type { DeviceRequest } from "./engine/container-create-body.ts";
import { UnsupportedError } from "./mapping-error.ts";

export type ResourceSettings = Pick<
  KubeletOptions,
  "cpuCfsQuota" | "cpuCfsQuotaPeriodMs" | "podPidsLimit" | "memorySwap"
>;

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
    CpuShares: toCpuShares(cpuRequest === 0 ? cpuLimit : cpuRequest),
    CpuPeriod: settings.cpuCfsQuota ? periodUs : 0,
    CpuQuota: settings.cpuCfsQuota ? toCpuQuotaUs(cpuLimit, periodUs) : 0,
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
}: ResourceInput): Pick<ContainerLimits, "Memory" | "MemorySwap"> {
  const request = memoryBytesOf(container.resources.requests);
  const limit = Math.min(memoryBytesOf(container.resources.limits), MOST_BYTES);
  const maySwap =
    settings.memorySwap === "LimitedSwap" &&
    computeQosClass(pod) === "Burstable" &&
    !isCriticalPod(pod) &&
    request > 0 &&
    request !== limit;
  const swap = maySwap ? Math.floor((request / node.memoryBytes) * (node.swapBytes ?? 0)) : 0;
  if (limit > 0) return { Memory: limit, MemorySwap: limit + swap };
  // The engine takes a bound on swap only together with one on memory: all of the node's memory is equal to no bound.
  if (settings.memorySwap === "LimitedSwap") return { Memory: node.memoryBytes, MemorySwap: node.memoryBytes + swap };
  return { Memory: 0, MemorySwap: 0 };
}

/** Docker's `PidsLimit` of one container: no more than the whole pod may have. Undefined: no limit. */
export const computePidsLimit = ({ podPidsLimit }: ResourceSettings) => (podPidsLimit > 0 ? podPidsLimit : undefined);

/** OOM score of pause: it goes last, for all containers live in its namespaces. Source: dockershim. */
export const SANDBOX_OOM_SCORE_ADJ = -998;
/** CPU shares of pause. Source: dockershim. */
export const SANDBOX_CPU_SHARES = MIN_CPU_SHARES;

const GUARANTEED_OOM_SCORE_ADJ = -997;
const BEST_EFFORT_OOM_SCORE_ADJ = 1000;

/**
 * OOM score by QoS class: a Burstable container loses 10 points for each per cent of the node's memory it requests, so
 * that one that uses more than it requested goes first. Source: kubelet's GetContainerOOMScoreAdjust.
 */
export function computeOomScoreAdj(pod: Pod, container: Container, nodeMemoryBytes: number): number {
  const qosClass = computeQosClass(pod);
  if (isCriticalPod(pod) || qosClass === "Guaranteed") return GUARANTEED_OOM_SCORE_ADJ;
  if (qosClass === "BestEffort") return BEST_EFFORT_OOM_SCORE_ADJ;

  const extra = computeUnassignedRequest(pod);
  const scoreOf = (one: Container) => {
    const request = memoryBytesOf(one.resources.requests) + extra;
    const score = 1000 - Math.floor((1000 * request) / nodeMemoryBytes);
    return Math.min(BEST_EFFORT_OOM_SCORE_ADJ - 1, Math.max(1000 + GUARANTEED_OOM_SCORE_ADJ, score));
  };
  const score = scoreOf(container);
  // A sidecar must not die before the containers it serves.
  const isSidecar =
    container.restartPolicy === "Always" && pod.spec.initContainers?.some(({ name }) => name === container.name);
  return isSidecar ? Math.min(score, ...pod.spec.containers.map(scoreOf)) : score;
}

/** The pod-level memory request in excess of its containers' requests, divided among them. */
function computeUnassignedRequest(pod: Pod): number {
  const own = memoryBytesOf(pod.spec.resources?.requests);
  if (own === 0) return 0;
  const { resources: _, ...spec } = pod.spec;
  const assigned = computePodTotal({ ...pod, spec }, "requests", memoryBytesOf);
  return Math.max(0, Math.floor((own - assigned) / pod.spec.containers.length));
}

/** A negative score needs CAP_SYS_RESOURCE; where the kernel refuses it, 0 is the closest there is. */
export const clampOomScoreAdj = (score: number, engine: EngineInfo) =>
  engine.negativeOomScores ? score : Math.max(0, score);

/**
 * GPUs and CDI devices by resource name: `nvidia.com/gpu: 2` becomes what `docker run --gpus 2` sends; any other
 * `vendor/class: n` takes the first n CDI devices of that kind that the engine has discovered. Unknown names have no
 * effect, as upstream.
 */
export function computeDeviceRequests(container: Container, engine: EngineInfo): DeviceRequest[] {
  const requests: DeviceRequest[] = [];
  for (const [name, quantity] of Object.entries(container.resources.limits ?? {})) {
    const count = quantityToWhole(quantity);
    if (!name.includes("/") || count === 0) continue;
    const devices = (engine.cdiDevices ?? []).filter(
      (device) => device.startsWith(`${name}=`) && !device.endsWith("=all"),
    );
    if (devices.length > 0) {
      if (devices.length < count) {
        const message = `${count} wanted, the engine has ${devices.length}`;
        throw new UnsupportedError(`resources.limits["${name}"]`, message);
      }
      requests.push({ Driver: "cdi", DeviceIDs: devices.slice(0, count) });
    } else if (name === "nvidia.com/gpu") {
      requests.push({ Driver: "", Count: count, Capabilities: [["gpu"]] });
    }
  }
  return requests;
}
