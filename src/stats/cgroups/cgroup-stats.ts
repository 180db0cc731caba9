/** Everything read of one cgroup at one instant. A member the kernel does not offer is undefined, never a made-up 0. */
export interface CgroupStats {
  cpu: CpuStats;
  memory: MemoryStats;
  /** Processes in this very cgroup, not those below it. */
  processIds: readonly string[];
  pids?: PidsStats | undefined;
  /** Per block device. */
  blockIo: readonly BlockIoStats[];
  /** One for each page size, in bytes. */
  hugetlb: readonly HugetlbStats[];
  pressure?: CgroupPressure | undefined;
}

/** Nanoseconds and counts since the cgroup was made. */
export interface CpuStats {
  usageNanoseconds: number;
  userNanoseconds: number | undefined;
  systemNanoseconds: number | undefined;
  /** Enforcement periods that passed while the cgroup was runnable, and how many of them it was throttled in. */
  periods: number | undefined;
  throttledPeriods: number | undefined;
  throttledNanoseconds: number | undefined;
}

/** Bytes and counts. Kernels may be started without a memory controller, as on small boards: then nothing is known. */
export interface MemoryStats {
  usageBytes: number | undefined;
  /** Highest usage so far; kernels before 5.19 (cgroup v2) do not report it. */
  maxUsageBytes: number | undefined;
  workingSetBytes: number | undefined;
  /** Anonymous memory. */
  rssBytes: number | undefined;
  cacheBytes: number | undefined;
  swapBytes: number | undefined;
  mappedFileBytes: number | undefined;
  /** Times the limit was hit. */
  failCount: number | undefined;
  /** v1 counts this cgroup alone, v2 everything below it, too. */
  pageFaults: number | undefined;
  majorPageFaults: number | undefined;
  hierarchicalPageFaults: number | undefined;
  hierarchicalMajorPageFaults: number | undefined;
  /** Processes the OOM killer ended here; undefined where the kernel does not count them. */
  oomKills: number | undefined;
}

/** For a cgroup whose memory the kernel does not count. */
export const UNKNOWN_MEMORY: MemoryStats = {
  usageBytes: undefined,
  maxUsageBytes: undefined,
  workingSetBytes: undefined,
  rssBytes: undefined,
  cacheBytes: undefined,
  swapBytes: undefined,
  mappedFileBytes: undefined,
  failCount: undefined,
  pageFaults: undefined,
  majorPageFaults: undefined,
  hierarchicalPageFaults: undefined,
  hierarchicalMajorPageFaults: undefined,
  oomKills: undefined,
};

export interface PidsStats {
  /** Tasks, threads included. */
  current: number;
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

/**
 * Memory the kernel cannot easily reclaim. Never below 0. Source: cAdvisor's working set, shown by the kubelet.
 * @param usageBytes `memory.current`; on cgroup v1 `memory.usage_in_bytes`.
 * @param inactiveFileBytes `inactive_file` of `memory.stat`; on v1 `total_inactive_file`.
 */
export const computeWorkingSetBytes = (usageBytes: number, inactiveFileBytes: number) =>
  Math.max(0, usageBytes - inactiveFileBytes);

/**
 * A "no limit" of the kernel as undefined: `max`, -1, or v1's largest page-aligned number. Source: cAdvisor treats
 * everything above 2^62 as unlimited.
 */
export function toLimit(value: number | undefined): number | undefined {
  return value === undefined || value < 0 || value >= 2 ** 62 ? undefined : value;
}

/** Number after `name ` at the start of a line of a flat keyed file, or undefined. The fast way for big files read often. */
export function keyedValue(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const key = `${name} `;
  const at = text.startsWith(key) ? 0 : text.indexOf(`\n${key}`) + 1;
  if (at === 0 && !text.startsWith(key)) return undefined;
  const start = at + key.length;
  const end = text.indexOf("\n", start);
  const value = Number(end < 0 ? text.slice(start) : text.slice(start, end));
  return Number.isFinite(value) ? value : undefined;
}

/** A file that holds one number; `max` is Infinity. undefined when the file is missing or holds something else. */
export function singleValue(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const word = text.trim();
  if (word === "max") return Number.POSITIVE_INFINITY;
  const value = Number(word);
  return word === "" || Number.isNaN(value) ? undefined : value;
}

/** Multiplies a number that may be missing. */
export const times = (value: number | undefined, factor: number) => (value === undefined ? undefined : value * factor);

/** A `*.pressure` file; undefined when it is empty or not readable (PSI is off). */
export function parsePressure(text: string | undefined): Pressure | undefined {
  if (!text) return undefined;
  const some = pressureLine(text, "some");
  if (!some) return undefined;
  return { some, full: pressureLine(text, "full") };
}

function pressureLine(text: string, kind: "some" | "full"): PressureLine | undefined {
  const start = text.startsWith(kind) ? 0 : text.indexOf(`\n${kind}`) + 1;
  if (!text.startsWith(`${kind} `, start)) return undefined;
  const end = text.indexOf("\n", start);
  // `some avg10=1.17 avg60=3.03 avg300=1.50 total=17971086`
  const [avg10, avg60, avg300, total] = text
    .slice(start + kind.length + 1, end < 0 ? undefined : end)
    .split(" ")
    .map((field) => Number(field.slice(field.indexOf("=") + 1)));
  if (avg10 === undefined || avg60 === undefined || avg300 === undefined || total === undefined) return undefined;
  return { avg10, avg60, avg300, totalMicroseconds: total };
}
