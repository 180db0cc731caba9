import { meminfoBytes } from "../../base/host/proc.ts";
import type { CgroupDirectories } from "./cgroup-layout.ts";
import { readText } from "./kernel-files.ts";

/** Everything read of one cgroup at one instant. A member the kernel does not offer is undefined, never a made-up 0. */
export interface CgroupStats {
  cpu: CpuStats;
  memory: MemoryStats;
  /** Processes in this very cgroup, not those below it. With `basics` only those of containers are read. */
  processIds: readonly string[];
  /** `current`: tasks, threads included. */
  pids?: { current: number } | undefined;
  blockIo: readonly BlockIoStats[];
  /** One for each page size, in bytes. */
  hugetlb: readonly HugetlbStats[];
  pressure?: CgroupPressure | undefined;
}

/** Nanoseconds and counts since the cgroup was made. */
interface CpuStats {
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
interface PressureLine {
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

type CgroupPressure = Partial<Record<"cpu" | "memory" | "io", Pressure>>;

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

/** Text of a file in one of the cgroup's directories; undefined when either is not there. */
type ReadFile = (controller: keyof CgroupDirectories, name: string) => string | undefined;

/** A figure is read with its hierarchy's own version: on a hybrid machine a cgroup has directories of both. */
const isV1 = (directories: CgroupDirectories, controller: keyof CgroupDirectories) =>
  directories[controller]?.version === 1;

/** v1 reports `cpuacct.stat` in ticks of 1/100 s to user space, on every architecture Docker runs on. */
const NANOSECONDS_PER_TICK = 10_000_000;

/** undefined when the cgroup is gone. @param hasQuota without one throttling is not read on v1 */
export function readCpu(
  directories: CgroupDirectories,
  read: ReadFile,
  { all, hasQuota }: { all: boolean; hasQuota: boolean },
): CpuStats | undefined {
  const { cpu, cpuacct } = directories;
  if (isV1(directories, "cpuacct")) {
    const usageNanoseconds = singleValue(read("cpuacct", "cpuacct.usage"));
    if (usageNanoseconds === undefined) return undefined;
    const times = all ? read("cpuacct", "cpuacct.stat") : undefined;
    const throttling = all && hasQuota && isV1(directories, "cpu") ? read("cpu", "cpu.stat") : undefined;
    return {
      usageNanoseconds,
      userNanoseconds: keyedValue(times, "user", NANOSECONDS_PER_TICK),
      systemNanoseconds: keyedValue(times, "system", NANOSECONDS_PER_TICK),
      ...throttlingOf(throttling, "throttled_time"),
    };
  }
  // cpu.stat is there without the cpu controller too.
  const stat = read(cpu ? "cpu" : cpuacct ? "cpuacct" : "unified", "cpu.stat");
  const usageNanoseconds = keyedValue(stat, "usage_usec", 1000);
  if (usageNanoseconds === undefined) return undefined;
  return {
    usageNanoseconds,
    userNanoseconds: keyedValue(stat, "user_usec", 1000),
    systemNanoseconds: keyedValue(stat, "system_usec", 1000),
    // Only there while the cpu controller is enabled for the cgroup.
    ...throttlingOf(stat, "throttled_usec", 1000),
  };
}

const throttlingOf = (stat: string | undefined, timeName: string, unit = 1) => ({
  periods: keyedValue(stat, "nr_periods"),
  throttledPeriods: keyedValue(stat, "nr_throttled"),
  throttledNanoseconds: keyedValue(stat, timeName, unit),
});

/** Nothing is known when the usage or `memory.stat` is gone. @param all peak and counts of events too: each is a file of its own */
export function readMemory(
  directories: CgroupDirectories,
  read: ReadFile,
  { all, meminfo }: { all: boolean; meminfo: () => string | undefined },
): MemoryStats {
  return (isV1(directories, "memory") ? readV1Memory(read, all) : readV2Memory(read, all, meminfo)) ?? {};
}

function readV1Memory(read: ReadFile, all: boolean): MemoryStats | undefined {
  const usageBytes = singleValue(read("memory", "memory.usage_in_bytes"));
  const stat = read("memory", "memory.stat");
  if (usageBytes === undefined || stat === undefined) return undefined;
  // The `total_` lines cover the cgroup and everything below it; hierarchies without them (use_hierarchy 0) have none.
  const hierarchical = (name: string) => keyedValue(stat, `total_${name}`) ?? keyedValue(stat, name) ?? 0;
  return {
    usageBytes,
    maxUsageBytes: all ? singleValue(read("memory", "memory.max_usage_in_bytes")) : undefined,
    workingSetBytes: computeWorkingSetBytes(usageBytes, hierarchical("inactive_file")),
    rssBytes: hierarchical("rss"),
    cacheBytes: hierarchical("cache"),
    swapBytes: hierarchical("swap"),
    mappedFileBytes: hierarchical("mapped_file"),
    failCount: all ? singleValue(read("memory", "memory.failcnt")) : undefined,
    pageFaults: keyedValue(stat, "pgfault") ?? 0,
    majorPageFaults: keyedValue(stat, "pgmajfault") ?? 0,
    hierarchicalPageFaults: hierarchical("pgfault"),
    hierarchicalMajorPageFaults: hierarchical("pgmajfault"),
    oomKills: all ? keyedValue(read("memory", "memory.oom_control"), "oom_kill") : undefined,
  };
}

/** The root has no `memory.current`: its usage is what `/proc/meminfo` says is not free. Source: runc's `rootStatsFromMeminfo`. */
function readV2Memory(read: ReadFile, all: boolean, readMeminfo: () => string | undefined): MemoryStats | undefined {
  const current = singleValue(read("memory", "memory.current"));
  const stat = read("memory", "memory.stat");
  const meminfo = current === undefined && stat !== undefined ? (readMeminfo() ?? "") : "";
  const used = (total: string, free: string) => {
    const [totalBytes, freeBytes] = [meminfoBytes(meminfo, total), meminfoBytes(meminfo, free)];
    return totalBytes === undefined || freeBytes === undefined ? undefined : totalBytes - freeBytes;
  };
  const usageBytes = current ?? used("MemTotal", "MemFree");
  if (usageBytes === undefined || stat === undefined) return undefined;
  const text = all ? read("memory", "memory.events") : undefined;
  const pageFaults = keyedValue(stat, "pgfault") ?? 0;
  const majorPageFaults = keyedValue(stat, "pgmajfault") ?? 0;
  return {
    usageBytes,
    maxUsageBytes: all ? singleValue(read("memory", "memory.peak")) : undefined,
    workingSetBytes: computeWorkingSetBytes(usageBytes, keyedValue(stat, "inactive_file") ?? 0),
    rssBytes: keyedValue(stat, "anon") ?? 0,
    cacheBytes: keyedValue(stat, "file") ?? 0,
    swapBytes: singleValue(read("memory", "memory.swap.current")) ?? used("SwapTotal", "SwapFree") ?? 0,
    mappedFileBytes: keyedValue(stat, "file_mapped") ?? 0,
    failCount: keyedValue(text, "max"),
    pageFaults,
    majorPageFaults,
    hierarchicalPageFaults: pageFaults,
    hierarchicalMajorPageFaults: majorPageFaults,
    oomKills: keyedValue(text, "oom_kill"),
  };
}

/** Bytes and operations of each device. v1 counts everything below the cgroup too since Linux 4.17, in files of their own. */
export function readBlockIo(directories: CgroupDirectories, read: ReadFile): BlockIoStats[] {
  if (!isV1(directories, "blkio")) return parseV2BlockIo(read("blkio", "io.stat") ?? "");
  const file = (name: string) => read("blkio", `${name}_recursive`) ?? read("blkio", name) ?? "";
  const devices = new Map<string, BlockIoStats>();
  for (const [text, reads, writes] of [
    [file("blkio.throttle.io_service_bytes"), "readBytes", "writeBytes"],
    [file("blkio.throttle.io_serviced"), "reads", "writes"],
  ] as const) {
    for (const line of text.split("\n")) {
      const [name = "", operation, value] = line.split(" ");
      if (value === undefined) continue; // The last line is only `Total <n>`.
      const device = devices.getOrInsertComputed(name, toDevice);
      if (operation === "Read") device[reads] = Number(value);
      if (operation === "Write") device[writes] = Number(value);
    }
  }
  return [...devices.values()];
}

/** `io.stat`, e.g. `8:0 rbytes=90112 wbytes=0 rios=11 wios=0 dbytes=0 dios=0`. */
const parseV2BlockIo = (stat: string): BlockIoStats[] =>
  stat.split("\n").flatMap((line) => {
    const [name = "", ...fields] = line.split(" ");
    // The kernel lists unused devices without counters.
    if (!name.includes(":") || !fields.some((field) => field.includes("="))) return [];
    const field = (key: string) =>
      Number(fields.find((text) => text.startsWith(`${key}=`))?.slice(key.length + 1) ?? 0);
    const counts = { readBytes: field("rbytes"), writeBytes: field("wbytes"), reads: field("rios") };
    return [{ ...toDevice(name), ...counts, writes: field("wios") }];
  });

/** @param name `8:0` */
function toDevice(name: string): BlockIoStats {
  const [major = 0, minor = 0] = name.split(":").map(Number);
  return { major, minor, readBytes: 0, writeBytes: 0, reads: 0, writes: 0 };
}

/** @param names such as `hugetlb.2MB`; a size that this cgroup has no files of is left out */
export const readHugetlb = (directories: CgroupDirectories, read: ReadFile, names: readonly string[]): HugetlbStats[] =>
  names.flatMap((name) => {
    const v1 = isV1(directories, "hugetlb");
    const pageSizeBytes = parsePageSize(name);
    const usageBytes = singleValue(read("hugetlb", `${name}.${v1 ? "usage_in_bytes" : "current"}`));
    if (pageSizeBytes === undefined || usageBytes === undefined) return [];
    const failures = read("hugetlb", `${name}.${v1 ? "failcnt" : "events"}`)?.replace(/^max /, "");
    const maxUsageBytes = v1 ? singleValue(read("hugetlb", `${name}.max_usage_in_bytes`)) : undefined;
    return [{ pageSizeBytes, usageBytes, maxUsageBytes, failCount: singleValue(failures) ?? 0 }];
  });

/** Page size of a name such as `hugetlb.2MB`, in bytes. */
export function parsePageSize(name: string): number | undefined {
  const match = /^hugetlb\.(\d+)([KMG])B$/.exec(name);
  if (!match) return undefined;
  return Number(match[1]) * { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }[match[2] as "K" | "M" | "G"];
}

export function readSpec(directories: CgroupDirectories, read: ReadFile): CgroupSpec {
  const file = (controller: keyof CgroupDirectories, v1: string, v2: string) =>
    read(controller, isV1(directories, controller) ? v1 : v2);
  const limit = (controller: keyof CgroupDirectories, v1: string, v2: string) =>
    toLimit(singleValue(file(controller, v1, v2)));
  const shares = singleValue(file("cpu", "cpu.shares", "cpu.weight"));
  const reservation = singleValue(file("memory", "memory.soft_limit_in_bytes", "memory.low"));
  // v2: quota (or `max`) and period in one file.
  const [quota, period] = isV1(directories, "cpu")
    ? [read("cpu", "cpu.cfs_quota_us"), read("cpu", "cpu.cfs_period_us")]
    : (read("cpu", "cpu.max") ?? "").trim().split(" ");
  return {
    cpuShares: shares === undefined || isV1(directories, "cpu") ? shares : toShares(shares),
    cpuQuotaMicroseconds: toLimit(singleValue(quota)),
    cpuPeriodMicroseconds: singleValue(period),
    cpuMask: file("cpuset", "cpuset.cpus", "cpuset.cpus.effective")?.trim() ?? "",
    memoryLimitBytes: limit("memory", "memory.limit_in_bytes", "memory.max"),
    memoryReservationBytes: isV1(directories, "memory") ? toLimit(reservation) : reservation || undefined,
    swapLimitBytes: limit("memory", "memory.memsw.limit_in_bytes", "memory.swap.max"),
    pidsMax: limit("pids", "pids.max", "pids.max"),
  };
}

/** `cpu.weight` (1-10000) as v1's shares (2-262144): the inverse of what the runtime did. Source: runc's conversion. */
const toShares = (weight: number) => 2 + Math.floor(((weight - 1) * 262_142) / 9_999);

/**
 * Memory the kernel cannot easily reclaim. Never below 0. Source: cAdvisor's working set, shown by the kubelet.
 * @param usageBytes `memory.current`; on cgroup v1 `memory.usage_in_bytes`.
 * @param inactiveFileBytes `inactive_file` of `memory.stat`; on v1 `total_inactive_file`.
 */
export const computeWorkingSetBytes = (usageBytes: number, inactiveFileBytes: number) =>
  Math.max(0, usageBytes - inactiveFileBytes);

/** A "no limit" of the kernel as undefined: `max`, -1, or v1's largest number. Source: cAdvisor takes all above 2^62 as unlimited. */
export function toLimit(value: number | undefined): number | undefined {
  return value === undefined || value < 0 || value >= 2 ** 62 ? undefined : value;
}

/** Number after `name ` at the start of a line, times `unit`. The fast way for big files that are read often. */
export function keyedValue(text: string | undefined, name: string, unit = 1): number | undefined {
  if (text === undefined) return undefined;
  const key = `${name} `;
  const at = text.startsWith(key) ? 0 : text.indexOf(`\n${key}`) + 1;
  if (at === 0 && !text.startsWith(key)) return undefined;
  const start = at + key.length;
  const end = text.indexOf("\n", start);
  const value = Number(end < 0 ? text.slice(start) : text.slice(start, end));
  return Number.isFinite(value) ? value * unit : undefined;
}

/** A file that holds one number; `max` is Infinity. undefined when the file is missing or holds something else. */
export function singleValue(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const word = text.trim();
  if (word === "max") return Number.POSITIVE_INFINITY;
  const value = Number(word);
  return word === "" || Number.isNaN(value) ? undefined : value;
}

/** Pressure of a cgroup, as far as the kernel reports it. */
export function readPressure(read: ReadFile): CgroupPressure {
  const pressure: CgroupPressure = {};
  for (const resource of ["cpu", "memory", "io"] as const) {
    const parsed = parsePressure(read("unified", `${resource}.pressure`));
    if (parsed) pressure[resource] = parsed;
  }
  return pressure;
}

/** Share of the last ten seconds in which some task of the machine waited, in per cent; undefined where that is not reported. */
export function readMachinePressure(procRoot = "/proc"): { cpu: number; memory: number; io: number } | undefined {
  const [cpu, memory, io] = ["cpu", "memory", "io"].map(
    (resource) => parsePressure(readText(`${procRoot}/pressure/${resource}`))?.some.avg10,
  );
  return cpu === undefined || memory === undefined || io === undefined ? undefined : { cpu, memory, io };
}

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
