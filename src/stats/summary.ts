import type {
  ContainerSummary,
  CpuSummary,
  FsSummary,
  InterfaceSummary,
  IoSummary,
  MemorySummary,
  NetworkSummary,
  NodeSummary,
  PodSummary,
  PsiSummary,
  Summary,
  SwapSummary,
  VolumeSummary,
} from "../base/api/stats-summary.ts";
import type { InterfaceCounters } from "../base/host/proc.ts";
import { toApiTime } from "../base/text/api-time.ts";
import type { MemoryStats, Pressure } from "./cgroups/cgroup-figures.ts";
import type { DirectoryUsage, FsCapacity } from "./disk-usage.ts";
import { type CgroupSample, type ContainerSample, logDirectory, type NodeSample, type PodSample } from "./sampler.ts";

/** Facts of a summary in addition to the sample. */
export interface SummaryFacts {
  nodeName: string;
  bootTime: Date;
  /** Capacity of the machine. */
  memoryCapacityBytes: number;
  swapCapacityBytes: number;
  defaultInterface: string;
  /** File system of the kubelet's root directory. */
  nodeFs: FsCapacity | undefined;
  /** File system of the engine's root directory, and what its images take. */
  imageFs: FsCapacity | undefined;
  imageBytes: number | undefined;
  /** Largest pid, and tasks there are. */
  maxPid: number | undefined;
  taskCount: number | undefined;
  /** Results of the last scan, by directory. */
  disk: ReadonlyMap<string, DirectoryUsage>;
}

/** `/stats/summary`, without pods that have no live sandbox. Source: kubelet's `stats/v1alpha1` and the responses recorded from 1.20. */
export function toSummary(sample: NodeSample, facts: SummaryFacts, onlyCpuAndMemory: boolean): Summary {
  const time = toApiTime(sample.at);
  return {
    node: nodeSummary(sample, facts, time, onlyCpuAndMemory),
    pods: sample.pods.map((pod) => podSummary(pod, facts, time, onlyCpuAndMemory)),
  };
}

function nodeSummary(sample: NodeSample, facts: SummaryFacts, time: string, onlyCpuAndMemory: boolean): NodeSummary {
  const { root, kubepods, system } = sample;
  const { memoryCapacityBytes, nodeFs, imageFs } = facts;
  const node: NodeSummary = { nodeName: facts.nodeName, startTime: toApiTime(facts.bootTime) };
  const systemContainers = [...(kubepods ? [["pods", kubepods] as const] : []), ...system].map(([name, cgroup]) => {
    const limit = cgroup.spec.memoryLimitBytes ?? (name === "pods" ? memoryCapacityBytes : undefined);
    return { name, startTime: toApiTime(cgroup.createdAt), ...usage(cgroup, time, limit) };
  });
  if (systemContainers.length > 0) node.systemContainers = systemContainers;
  if (root) Object.assign(node, usage(root, time, memoryCapacityBytes));
  if (onlyCpuAndMemory) return node;
  node.network = networkSummary(sample.interfaces, facts.defaultInterface, time);
  if (nodeFs) node.fs = fsSummary(nodeFs, time, nodeFs.usedBytes, inodesInUse(nodeFs));
  if (imageFs) node.runtime = { imageFs: fsSummary(imageFs, time, facts.imageBytes, inodesInUse(imageFs)) };
  node.rlimit = withoutUndefined({ time, maxpid: facts.maxPid, curproc: facts.taskCount });
  if (root) {
    const swapAvailableBytes = Math.max(0, facts.swapCapacityBytes - (root.stats.memory.swapBytes ?? 0));
    if (facts.swapCapacityBytes > 0) node.swap = { ...swapSummary(root, time), swapAvailableBytes };
    Object.assign(node, io(root, time));
  }
  return node;
}

function podSummary(pod: PodSample, facts: SummaryFacts, time: string, onlyCpuAndMemory: boolean): PodSummary {
  const { name, namespace, uid, startTime } = pod.facts;
  const containers = pod.containers.toSorted((a, b) => (a.facts.name < b.facts.name ? -1 : 1));
  const summary: PodSummary = {
    podRef: { name, namespace, uid },
    startTime: toApiTime(startTime),
    containers:
      containers.length === 0
        ? null
        : containers.map((container) => containerSummary(container, facts, time, onlyCpuAndMemory)),
    ...(pod.cgroup ? usage(pod.cgroup, time, pod.cgroup.spec.memoryLimitBytes) : sumOfContainers(containers, time)),
  };
  if (onlyCpuAndMemory) return summary;
  if (!pod.facts.hostNetwork && pod.interfaces.length > 0) {
    summary.network = networkSummary(pod.interfaces, "eth0", time);
  }
  const volumes = pod.facts.volumes.flatMap(({ name: volumeName, path, isFileSystem, pvcName }): VolumeSummary[] => {
    const found = facts.disk.get(path);
    if (!found) return [];
    const pvcRef = pvcName === undefined ? {} : { pvcRef: { name: pvcName, namespace } };
    return [{ ...volumeUsage(found, isFileSystem), name: volumeName, ...pvcRef }];
  });
  if (volumes.length > 0) summary.volume = volumes;
  const ephemeral = ephemeralStorage(pod, facts, time);
  if (ephemeral) summary["ephemeral-storage"] = ephemeral;
  const processCount = pod.containers.reduce((sum, { cgroup }) => sum + cgroup.stats.processIds.length, 0);
  summary.process_stats = { process_count: processCount };
  if (pod.cgroup) Object.assign(summary, swapOf(pod.cgroup, time, facts), io(pod.cgroup, time));
  return summary;
}

function containerSummary(
  { facts: container, cgroup }: ContainerSample,
  facts: SummaryFacts,
  time: string,
  onlyCpuAndMemory: boolean,
): ContainerSummary {
  const summary: ContainerSummary = {
    name: container.name,
    startTime: toApiTime(container.startedAt),
    ...usage(cgroup, time, cgroup.spec.memoryLimitBytes),
  };
  if (onlyCpuAndMemory) return summary;
  const { imageFs } = facts;
  const layer = facts.disk.get(container.writableLayerPath);
  if (layer && imageFs) summary.rootfs = fsSummary(imageFs, time, layer.usedBytes, layer.inodesUsed);
  const logs = facts.disk.get(logDirectory(container));
  // Inodes of the whole file system, as upstream.
  if (logs && imageFs) summary.logs = fsSummary(imageFs, time, logs.usedBytes, inodesInUse(imageFs));
  return Object.assign(summary, swapOf(cgroup, time, facts), io(cgroup, time));
}

/** CPU and memory of a cgroup. @param memoryLimitBytes undefined: no limit, so nothing is known to be available. */
function usage(
  { stats, usageNanoCores }: CgroupSample,
  time: string,
  memoryLimitBytes?: number,
): { cpu: CpuSummary; memory: MemorySummary } {
  const { cpu, memory, pressure } = stats;
  const availableBytes =
    memoryLimitBytes === undefined || memory.workingSetBytes === undefined
      ? undefined
      : Math.max(0, memoryLimitBytes - memory.workingSetBytes);
  return {
    cpu: withoutUndefined({
      time,
      usageNanoCores,
      usageCoreNanoSeconds: cpu.usageNanoseconds,
      psi: psi(pressure?.cpu),
    }),
    memory: withoutUndefined({
      time,
      availableBytes,
      usageBytes: memory.usageBytes,
      workingSetBytes: memory.workingSetBytes,
      rssBytes: memory.rssBytes,
      // Not those of the cgroups below on v1: that is what the kubelet shows.
      pageFaults: memory.pageFaults,
      majorPageFaults: memory.majorPageFaults,
      psi: psi(pressure?.memory),
    }),
  };
}

/** For pods without a cgroup of their own. */
function sumOfContainers(containers: readonly ContainerSample[], time: string) {
  const samples = containers.map(({ cgroup }) => cgroup);
  if (samples.length === 0) return {};
  const sum = (value: (sample: CgroupSample) => number) => samples.reduce((total, sample) => total + value(sample), 0);
  /** undefined when it is not known of all. */
  const sumOfKnown = (name: keyof MemoryStats) => {
    const values = samples.map(({ stats }) => stats.memory[name]);
    return values.includes(undefined) ? undefined : values.reduce<number>((total, known) => total + (known ?? 0), 0);
  };
  const hasRate = samples.every(({ usageNanoCores }) => usageNanoCores !== undefined);
  const cpu: CpuSummary = withoutUndefined({
    time,
    usageNanoCores: hasRate ? sum(({ usageNanoCores }) => usageNanoCores!) : undefined,
    usageCoreNanoSeconds: sum(({ stats }) => stats.cpu.usageNanoseconds),
  });
  const memory: MemorySummary = withoutUndefined({
    time,
    usageBytes: sumOfKnown("usageBytes"),
    workingSetBytes: sumOfKnown("workingSetBytes"),
    rssBytes: sumOfKnown("rssBytes"),
    pageFaults: sumOfKnown("pageFaults"),
    majorPageFaults: sumOfKnown("majorPageFaults"),
  });
  return { cpu, memory };
}

/** The counters of the default interface are used for the whole network, as upstream; all interfaces follow. */
function networkSummary(
  interfaces: readonly InterfaceCounters[],
  defaultInterface: string,
  time: string,
): NetworkSummary {
  const all: InterfaceSummary[] = interfaces.map(({ name, rxBytes, rxErrors, txBytes, txErrors }) => {
    return { name, rxBytes, rxErrors, txBytes, txErrors };
  });
  return { time, ...(all.find(({ name }) => name === defaultInterface) ?? { name: "" }), interfaces: all };
}

/** Writable layers, logs and the volumes that count, on the engine's file system. */
function ephemeralStorage(pod: PodSample, { disk, imageFs }: SummaryFacts, time: string): FsSummary | undefined {
  if (!imageFs) return undefined;
  const layers = pod.containers.map(({ facts }) => disk.get(facts.writableLayerPath));
  const logs = pod.containers.map(({ facts }) => disk.get(logDirectory(facts)));
  const volumes = pod.facts.volumes.filter(({ ephemeral }) => ephemeral).map(({ path }) => disk.get(path));
  const bytes = [...layers, ...logs, ...volumes].filter((found) => found !== undefined);
  const inodes = [...layers, ...volumes].filter((found) => found !== undefined);
  if (bytes.length === 0) return fsSummary(imageFs, time);
  const usedBytes = bytes.reduce((sum, found) => sum + found.usedBytes, 0);
  return fsSummary(
    imageFs,
    time,
    usedBytes,
    inodes.reduce((sum, { inodesUsed = 0 }) => sum + inodesUsed, 0),
  );
}

/** A file system, of which one user wrote `usedBytes` and made `inodesUsed`; by default all that is used. */
function fsSummary(fs: FsCapacity, time: string, usedBytes?: number, inodesUsed?: number): FsSummary {
  const { capacityBytes, availableBytes, inodes, inodesFree } = fs;
  return withoutUndefined({ time, availableBytes, capacityBytes, usedBytes, inodesFree, inodes, inodesUsed });
}

const inodesInUse = ({ inodes, inodesFree }: FsCapacity) => inodes - inodesFree;

function volumeUsage({ usedBytes, inodesUsed, fs, at }: DirectoryUsage, isFileSystem: boolean): FsSummary {
  const time = toApiTime(at);
  if (!fs) return withoutUndefined({ time, usedBytes, inodesUsed });
  return isFileSystem ? fsSummary(fs, time, fs.usedBytes, inodesInUse(fs)) : fsSummary(fs, time, usedBytes, inodesUsed);
}

const swapSummary = ({ stats }: CgroupSample, time: string): SwapSummary =>
  withoutUndefined({ time, swapUsageBytes: stats.memory.swapBytes });

/** Nothing on a machine without swap. */
const swapOf = (sample: CgroupSample, time: string, { swapCapacityBytes }: SummaryFacts) =>
  swapCapacityBytes > 0 ? { swap: swapSummary(sample, time) } : {};

function io({ stats }: CgroupSample, time: string): { io?: IoSummary } {
  const pressure = psi(stats.pressure?.io);
  return pressure ? { io: { time, psi: pressure } } : {};
}

function psi(pressure: Pressure | undefined): PsiSummary | undefined {
  if (!pressure) return undefined;
  const none = { avg10: 0, avg60: 0, avg300: 0, totalMicroseconds: 0 };
  const [full, some] = [pressure.full ?? none, pressure.some].map(({ totalMicroseconds, ...averages }) => {
    return { total: totalMicroseconds * 1000, ...averages };
  });
  return { full: full!, some: some! };
}

/** The object without members that are undefined: JSON has no such thing, and the type says "absent". */
export function withoutUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  // A loop: a summary is made of a thousand of these, and lists of entries would take half of its time.
  const kept: Record<string, unknown> = {};
  for (const name in value) if (value[name] !== undefined) kept[name] = value[name];
  return kept as never;
}
