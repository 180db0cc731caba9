import type { Container, Pod } from "../base/api/pod.ts";
import { quantityToWhole } from "../base/api/quantity.ts";
import type { EngineInfo } from "../base/model/node.ts";
import type { ContainerLimits } from "../base/model/pod-snapshot.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import {
  computePodTotal,
  computeQosClass,
  isCriticalPod,
  MIN_CPU_SHARES,
  memoryBytesOf,
} from "../plan/pod-resources.ts";
import type { DeviceRequest } from "./engine/container-create-body.ts";
import { unsupported } from "./mapping-error.ts";

/** Docker's resources of a container that is created. */
export const toResources = ({ cpuShares, cpuPeriodUs, cpuQuotaUs, memoryBytes, memorySwapBytes }: ContainerLimits) => ({
  CpuShares: cpuShares,
  CpuPeriod: cpuPeriodUs,
  CpuQuota: cpuQuotaUs,
  Memory: memoryBytes,
  MemorySwap: memorySwapBytes,
});

/** The body of `POST /containers/{id}/update`. What stays is left out. */
export const toUpdateBody = ({ cpuQuotaUs, ...others }: Partial<ContainerLimits>) =>
  // The engine takes 0 for "unchanged"; -1 removes the limit.
  toResources({ ...others, cpuQuotaUs: cpuQuotaUs === 0 ? -1 : cpuQuotaUs } as ContainerLimits);

/** Docker's `PidsLimit` of one container: no more than the whole pod may have. Undefined: no limit. */
export const computePidsLimit = ({ podPidsLimit }: Pick<KubeletOptions, "podPidsLimit">) =>
  podPidsLimit > 0 ? podPidsLimit : undefined;

/** OOM score of pause: it goes last, for all containers live in its namespaces. Source: dockershim. */
export const SANDBOX_OOM_SCORE_ADJ = -998;
/** CPU shares of pause. Source: dockershim. */
export const SANDBOX_CPU_SHARES = MIN_CPU_SHARES;

const GUARANTEED_OOM_SCORE_ADJ = -997;
const BEST_EFFORT_OOM_SCORE_ADJ = 1000;

/**
 * A Burstable container loses 10 points for each per cent of the node's memory it requests, so that one that uses more
 * than it requested goes first. Source: kubelet's GetContainerOOMScoreAdjust.
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
 * `nvidia.com/gpu: 2` becomes what `docker run --gpus 2` sends; any other `vendor/class: n` takes the first n CDI
 * devices of that kind. Unknown names have no effect, as upstream.
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
        throw unsupported(`resources.limits["${name}"]`, message);
      }
      requests.push({ Driver: "cdi", DeviceIDs: devices.slice(0, count) });
    } else if (name === "nvidia.com/gpu") {
      requests.push({ Driver: "", Count: count, Capabilities: [["gpu"]] });
    }
  }
  return requests;
}
