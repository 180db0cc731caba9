import { withoutUndefined } from "../stats/summary.ts";
import type { CadvisorFacts } from "./cadvisor-facts.ts";
import {
  containerDisk,
  cpuSpec,
  cpuStats,
  diskIo,
  hugetlb,
  interfaceStats,
  memorySpec,
  memoryStats,
  processes,
  shownLabels,
  taskStats,
} from "./container-info.ts";
import type { MeasuredCgroup } from "./measured-cgroup.ts";
import { NO_TCP_STATS } from "./no-tcp-stats.ts";

/** Spec of a cgroup in cAdvisor's API 2.x. */
export function toContainerSpecV2(measured: MeasuredCgroup, facts: CadvisorFacts): object {
  const { container, cgroup, isRoot } = measured;
  return {
    creation_time: (container?.facts.createdAt ?? cgroup.createdAt).toISOString(),
    ...(container && {
      aliases: [container.facts.dockerName, container.facts.id],
      namespace: "docker",
      labels: shownLabels(container.facts.labels),
    }),
    has_cpu: true,
    cpu: cpuSpec(cgroup.spec),
    has_memory: true,
    memory: memorySpec(measured, facts),
    has_hugetlb: cgroup.stats.hugetlb.length > 0,
    has_custom_metrics: false,
    has_processes: !isRoot,
    processes: withoutUndefined({ limit: cgroup.spec.pidsMax }),
    has_network: measured.interfaces.length > 0,
    has_filesystem: isRoot || container !== undefined,
    has_diskio: true,
    ...(container && { image: container.facts.image }),
  };
}

/** Figures of a cgroup at one instant in cAdvisor's API 2.x. */
export function toContainerStatsV2(measured: MeasuredCgroup, facts: CadvisorFacts): object {
  const { cgroup, interfaces } = measured;
  const used = containerDisk(measured, facts);
  const rate = cgroup.usageNanoCores;
  return {
    timestamp: measured.at.toISOString(),
    cpu: cpuStats(measured),
    // Nanoseconds per second; the kernel gives rates of the whole only.
    ...(rate !== undefined && { cpu_inst: { usage: { total: rate, user: 0, system: 0 } } }),
    diskio: diskIo(measured, facts),
    memory: memoryStats(measured),
    ...(cgroup.stats.hugetlb.length > 0 && { hugetlb: hugetlb(measured) }),
    ...(interfaces.length > 0 && { network: { interfaces: interfaces.map(interfaceStats), ...NO_TCP_STATS } }),
    processes: processes(measured),
    ...(used && {
      filesystem: {
        totalUsageBytes: used.totalBytes,
        baseUsageBytes: used.baseBytes,
        containterInodeUsage: used.inodes, // Spelt so in the API.
      },
    }),
    load_stats: taskStats(measured),
  };
}

/**
 * Usage in short. Percentiles are `present: false`: they would need samples of the last minute, hour and day, which
 * nobody takes while nobody asks.
 */
export function toSummaryV2({ at, cgroup }: MeasuredCgroup): object {
  const absent = { present: false, mean: 0, max: 0, fifty: 0, ninety: 0, ninetyfive: 0 };
  const usage = { percent_complete: 0, cpu: absent, memory: absent };
  return {
    timestamp: at.toISOString(),
    latest_usage: {
      // Thousandths of a core.
      cpu: Math.round((cgroup.usageNanoCores ?? 0) / 1e6),
      memory: cgroup.stats.memory.workingSetBytes ?? 0,
    },
    minute_usage: usage,
    hour_usage: usage,
    day_usage: usage,
  };
}

/** File systems of the node in cAdvisor's API 2.x. */
export function toStorageV2({ filesystems, engineFs }: CadvisorFacts, at: Date): object[] {
  return filesystems.map(({ device, mountPoint, capacity }) => ({
    timestamp: at.toISOString(),
    device,
    mountpoint: mountPoint,
    capacity: capacity.capacityBytes,
    available: capacity.availableBytes,
    usage: capacity.usedBytes,
    labels: [...(mountPoint === "/" ? ["root"] : []), ...(device === engineFs?.device ? ["docker-images"] : [])],
    ...(capacity.inodes > 0 && { inodes: capacity.inodes, inodes_free: capacity.inodesFree }),
  }));
}

/** The machine in short in cAdvisor's API 2.x. */
export function toAttributesV2({ machine, kernelVersion, osVersion, engineVersion }: CadvisorFacts): object {
  const { timestamp, num_physical_cores, num_sockets, memory_by_type, nvm, ...shared } = machine;
  return {
    kernel_version: kernelVersion,
    container_os_version: osVersion,
    docker_version: engineVersion,
    docker_api_version: "",
    cadvisor_version: "",
    ...shared,
  };
}
