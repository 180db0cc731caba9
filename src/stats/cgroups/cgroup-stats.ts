/** Everything read of one cgroup at one instant. A member the kernel does not offer is undefined, never a made-up 0. */
export interface CgroupStats {
  cpu: CpuStats;
  memory: MemoryStats;
  /** Processes in this very cgroup, not those below it. */
  processIds: readonly string[];
  /** `current`: tasks, threads included. */
  pids?: { current: number } | undefined;
  blockIo: readonly BlockIoStats[];
  /** One for each page size, in bytes. */
  hugetlb: readonly HugetlbStats[];
  pressure?: CgroupPressure | undefined;
}

/** Nanoseconds and counts since the cgroup was made. */
export interface CpuStats {
  usageNanoseconds: number;
  userNanoseconds?: number | undefined;
  systemNanoseconds?: number | undefined;
  /** Enforcement periods that passed while the cgroup was runnable, and how many of them it was throttled in. */
  periods?: number | undefined;
  throttledPeriods?: number | undefined;
  throttledNanoseconds?: number | undefined;
}

/** Bytes and counts. Kernels may be started without a memory controller, as on small boards: then nothing is known. */
export interface MemoryStats {
  usageBytes?: number | undefined;
  /** Highest usage so far; kernels before 5.19 (cgroup v2) do not report it. */
  maxUsageBytes?: number | undefined;
  workingSetBytes?: number | undefined;
  /** Anonymous memory. */
  rssBytes?: number | undefined;
  cacheBytes?: number | undefined;
  swapBytes?: number | undefined;
  mappedFileBytes?: number | undefined;
  /** Times the limit was hit. */
  failCount?: number | undefined;
  /** v1 counts this cgroup alone, v2 everything below it, too. */
  pageFaults?: number | undefined;
  majorPageFaults?: number | undefined;
  hierarchicalPageFaults?: number | undefined;
  hierarchicalMajorPageFaults?: number | undefined;
  /** Processes the OOM killer ended here; undefined where the kernel does not count them. */
  oomKills?: number | undefined;
}

export interface BlockIoStats {
  major: number;
  minor: number;
  readBytes: number;
  writeBytes: number;
  reads: number;
  writes: number;
}

export interface HugetlbStats {
  pageSizeBytes: number;
  usageBytes: number;
  maxUsageBytes: number | undefined;
  failCount: number;
}

/** Stall times. Source: kernel, Documentation/accounting/psi.rst. */
export interface PressureLine {
  /** Per cent of the last 10, 60 and 300 seconds. */
  avg10: number;
  avg60: number;
  avg300: number;
  totalMicroseconds: number;
}

/** `some`: at least one task waited. `full`: all of them did; old kernels have no `full` for cpu. */
export interface Pressure {
  some: PressureLine;
  full?: PressureLine | undefined;
}

export type CgroupPressure = Partial<Record<"cpu" | "memory" | "io", Pressure>>;

/** Limits of a cgroup; undefined is "no limit" or "not known". */
export interface CgroupSpec {
  /** In v1's terms; on v2 computed from `cpu.weight`. */
  cpuShares: number | undefined;
  cpuQuotaMicroseconds: number | undefined;
  cpuPeriodMicroseconds: number | undefined;
  /** e.g. `0-1`. */
  cpuMask: string;
  memoryLimitBytes: number | undefined;
  memoryReservationBytes: number | undefined;
  /** Memory and swap together on v1, swap alone on v2. */
  swapLimitBytes: number | undefined;
  pidsMax: number | undefined;
}
