import {
  type BlockIoStats,
  type CgroupSpec,
  type CpuStats,
  computeWorkingSetBytes,
  keyedValue,
  type MemoryStats,
  singleValue,
  times,
  toLimit,
} from "./cgroup-stats.ts";

/** Texts of cgroup v2 files; undefined for one that is missing. */
type V2Text = string | undefined;

/** undefined when `cpu.stat` is gone: the cgroup was removed. */
export function parseV2Cpu(stat: V2Text): CpuStats | undefined {
  if (stat === undefined) return undefined;
  const usage = keyedValue(stat, "usage_usec");
  if (usage === undefined) return undefined;
  return {
    usageNanoseconds: usage * 1000,
    userNanoseconds: times(keyedValue(stat, "user_usec"), 1000),
    systemNanoseconds: times(keyedValue(stat, "system_usec"), 1000),
    // Only there while the cpu controller is enabled for the cgroup.
    periods: keyedValue(stat, "nr_periods"),
    throttledPeriods: keyedValue(stat, "nr_throttled"),
    throttledNanoseconds: times(keyedValue(stat, "throttled_usec"), 1000),
  };
}

/**
 * undefined when the cgroup is gone. The root has no `memory.current`: its usage is what `/proc/meminfo` says is not
 * free. Source: runc's `rootStatsFromMeminfo`.
 */
export function parseV2Memory(files: {
  current: V2Text;
  stat: V2Text;
  peak: V2Text;
  swapCurrent: V2Text;
  events: V2Text;
  /** Only for the root. */
  meminfo?: V2Text;
}): MemoryStats | undefined {
  const { stat, events } = files;
  const usageBytes = singleValue(files.current) ?? usedBytes(files.meminfo);
  if (usageBytes === undefined || stat === undefined) return undefined;
  const pageFaults = keyedValue(stat, "pgfault") ?? 0;
  const majorPageFaults = keyedValue(stat, "pgmajfault") ?? 0;
  return {
    usageBytes,
    maxUsageBytes: singleValue(files.peak),
    workingSetBytes: computeWorkingSetBytes(usageBytes, keyedValue(stat, "inactive_file") ?? 0),
    rssBytes: keyedValue(stat, "anon") ?? 0,
    cacheBytes: keyedValue(stat, "file") ?? 0,
    swapBytes: singleValue(files.swapCurrent) ?? usedSwapBytes(files.meminfo) ?? 0,
    mappedFileBytes: keyedValue(stat, "file_mapped") ?? 0,
    failCount: keyedValue(events, "max"),
    pageFaults,
    majorPageFaults,
    hierarchicalPageFaults: pageFaults,
    hierarchicalMajorPageFaults: majorPageFaults,
    oomKills: keyedValue(events, "oom_kill"),
  };
}

function usedBytes(meminfo: V2Text): number | undefined {
  return meminfo === undefined ? undefined : difference(meminfo, "MemTotal", "MemFree");
}

function usedSwapBytes(meminfo: V2Text): number | undefined {
  return meminfo === undefined ? undefined : difference(meminfo, "SwapTotal", "SwapFree");
}

function difference(meminfo: string, total: string, free: string): number | undefined {
  const [totalBytes, freeBytes] = [meminfoBytes(meminfo, total), meminfoBytes(meminfo, free)];
  return totalBytes === undefined || freeBytes === undefined ? undefined : totalBytes - freeBytes;
}

/** One line of `/proc/meminfo`, in bytes. */
export function meminfoBytes(meminfo: string, name: string): number | undefined {
  const match = new RegExp(`^${name}:\\s+(\\d+)( kB)?`, "m").exec(meminfo);
  if (!match) return undefined;
  return Number(match[1]) * (match[2] ? 1024 : 1);
}

/** `io.stat`, e.g. `8:0 rbytes=90112 wbytes=0 rios=11 wios=0 dbytes=0 dios=0`. */
export function parseV2BlockIo(stat: V2Text): BlockIoStats[] {
  const devices: BlockIoStats[] = [];
  for (const line of (stat ?? "").split("\n")) {
    const [name = "", ...fields] = line.split(" ");
    const [major, minor] = name.split(":").map(Number);
    // The kernel lists unused devices without counters.
    if (minor === undefined || !fields.some((field) => field.includes("="))) continue;
    const field = (key: string) =>
      Number(fields.find((text) => text.startsWith(`${key}=`))?.slice(key.length + 1) ?? 0);
    devices.push({
      major: major!,
      minor,
      readBytes: field("rbytes"),
      writeBytes: field("wbytes"),
      reads: field("rios"),
      writes: field("wios"),
    });
  }
  return devices;
}

export function parseV2Spec(files: {
  weight: V2Text;
  /** `cpu.max`: quota (or `max`) and period. */
  cpuMax: V2Text;
  cpus: V2Text;
  memoryMax: V2Text;
  memoryLow: V2Text;
  swapMax: V2Text;
  pidsMax: V2Text;
}): CgroupSpec {
  const [quota, period] = (files.cpuMax ?? "").trim().split(" ");
  const weight = singleValue(files.weight);
  return {
    cpuShares: weight === undefined ? undefined : toShares(weight),
    cpuQuotaMicroseconds: toLimit(singleValue(quota)),
    cpuPeriodMicroseconds: singleValue(period),
    cpuMask: files.cpus?.trim() ?? "",
    memoryLimitBytes: toLimit(singleValue(files.memoryMax)),
    memoryReservationBytes: singleValue(files.memoryLow) || undefined,
    swapLimitBytes: toLimit(singleValue(files.swapMax)),
    pidsMax: toLimit(singleValue(files.pidsMax)),
  };
}

/** `cpu.weight` (1-10000) as v1's shares (2-262144): the inverse of what the runtime did. Source: runc's conversion. */
const toShares = (weight: number) => 2 + Math.floor(((weight - 1) * 262_142) / 9_999);
