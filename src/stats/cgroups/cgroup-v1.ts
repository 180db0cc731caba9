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

/** Texts of cgroup v1 files; undefined for one that is missing. */
type V1Text = string | undefined;

/** The kernel reports `cpuacct.stat` in ticks of 1/100 s to user space, on every architecture Docker runs on. */
const NANOSECONDS_PER_TICK = 10_000_000;

/** undefined when `cpuacct.usage` is gone: the cgroup was removed. */
export function parseV1Cpu(files: { usage: V1Text; acctStat: V1Text; cpuStat: V1Text }): CpuStats | undefined {
  const usage = singleValue(files.usage);
  if (usage === undefined) return undefined;
  const { acctStat, cpuStat } = files;
  return {
    usageNanoseconds: usage,
    userNanoseconds: times(keyedValue(acctStat, "user"), NANOSECONDS_PER_TICK),
    systemNanoseconds: times(keyedValue(acctStat, "system"), NANOSECONDS_PER_TICK),
    periods: keyedValue(cpuStat, "nr_periods"),
    throttledPeriods: keyedValue(cpuStat, "nr_throttled"),
    throttledNanoseconds: keyedValue(cpuStat, "throttled_time"),
  };
}

/** undefined when `memory.usage_in_bytes` or `memory.stat` is gone. */
export function parseV1Memory(files: {
  usage: V1Text;
  stat: V1Text;
  maxUsage: V1Text;
  failcnt: V1Text;
  oomControl: V1Text;
}): MemoryStats | undefined {
  const usageBytes = singleValue(files.usage);
  const { stat } = files;
  if (usageBytes === undefined || stat === undefined) return undefined;
  // The `total_` lines cover the cgroup and everything below it; hierarchies without them (use_hierarchy 0) have none.
  const hierarchical = (name: string) => keyedValue(stat, `total_${name}`) ?? keyedValue(stat, name) ?? 0;
  return {
    usageBytes,
    maxUsageBytes: singleValue(files.maxUsage),
    workingSetBytes: computeWorkingSetBytes(usageBytes, hierarchical("inactive_file")),
    rssBytes: hierarchical("rss"),
    cacheBytes: hierarchical("cache"),
    swapBytes: hierarchical("swap"),
    mappedFileBytes: hierarchical("mapped_file"),
    failCount: singleValue(files.failcnt),
    pageFaults: keyedValue(stat, "pgfault") ?? 0,
    majorPageFaults: keyedValue(stat, "pgmajfault") ?? 0,
    hierarchicalPageFaults: hierarchical("pgfault"),
    hierarchicalMajorPageFaults: hierarchical("pgmajfault"),
    oomKills: keyedValue(files.oomControl, "oom_kill"),
  };
}

/** From `blkio.throttle.io_service_bytes[_recursive]` and `blkio.throttle.io_serviced[_recursive]`. */
export function parseV1BlockIo(serviceBytes: V1Text, serviced: V1Text): BlockIoStats[] {
  const devices = new Map<string, BlockIoStats>();
  const each = (text: V1Text, take: (device: BlockIoStats, operation: string, value: number) => void) => {
    for (const line of (text ?? "").split("\n")) {
      const [name = "", operation, value] = line.split(" ");
      if (value === undefined) continue; // The last line is only `Total <n>`.
      let device = devices.get(name);
      if (!device) {
        const [major, minor] = name.split(":").map(Number);
        device = { major: major ?? 0, minor: minor ?? 0, readBytes: 0, writeBytes: 0, reads: 0, writes: 0 };
        devices.set(name, device);
      }
      take(device, operation ?? "", Number(value));
    }
  };
  each(serviceBytes, (device, operation, value) => {
    if (operation === "Read") device.readBytes = value;
    if (operation === "Write") device.writeBytes = value;
  });
  each(serviced, (device, operation, value) => {
    if (operation === "Read") device.reads = value;
    if (operation === "Write") device.writes = value;
  });
  return [...devices.values()];
}

export function parseV1Spec(files: {
  shares: V1Text;
  quota: V1Text;
  period: V1Text;
  cpus: V1Text;
  memoryLimit: V1Text;
  softLimit: V1Text;
  memswLimit: V1Text;
  pidsMax: V1Text;
}): CgroupSpec {
  return {
    cpuShares: singleValue(files.shares),
    cpuQuotaMicroseconds: toLimit(singleValue(files.quota)),
    cpuPeriodMicroseconds: singleValue(files.period),
    cpuMask: files.cpus?.trim() ?? "",
    memoryLimitBytes: toLimit(singleValue(files.memoryLimit)),
    memoryReservationBytes: toLimit(singleValue(files.softLimit)),
    swapLimitBytes: toLimit(singleValue(files.memswLimit)),
    pidsMax: toLimit(singleValue(files.pidsMax)),
  };
}
