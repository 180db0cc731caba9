import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  computeWorkingSetBytes,
  keyedValue,
  meminfoBytes,
  parsePageSize,
  parsePressure,
  readBlockIo,
  readCpu,
  readMachinePressure,
  readMemory,
  readSpec,
  singleValue,
  toLimit,
  UNKNOWN_MEMORY,
} from "../../../src/stats/cgroups/cgroup-figures.ts";
import type { CgroupDirectories } from "../../../src/stats/cgroups/cgroup-layout.ts";

import { tempDirs } from "../../support/temp-dir.ts";

const makeDirectory = tempDirs();

type Files = Readonly<Record<string, string>>;

/** A cgroup of one version whose files hold these texts. */
const cgroup = (
  version: 1 | 2,
  files: Files,
): [CgroupDirectories, (controller: string, name: string) => string | undefined] => {
  const directory = { version, path: "/" };
  const v1 = {
    cpu: directory,
    cpuacct: directory,
    cpuset: directory,
    memory: directory,
    pids: directory,
    blkio: directory,
  };
  return [version === 1 ? v1 : { ...v1, unified: directory }, (_, name) => files[name]];
};
const cpuOf = (version: 1 | 2, files: Files) => readCpu(...cgroup(version, files), { all: true, hasQuota: true });
const memoryOf = (version: 1 | 2, files: Files, meminfo?: string) =>
  readMemory(...cgroup(version, files), { all: true, meminfo: () => meminfo });

test.each([
  { name: "cache", want: 1 },
  { name: "rss", want: 2 },
  { name: "total_cache", want: 3 },
  { name: "last", want: 4 },
  { name: "missing", want: undefined },
  { name: "ss", want: undefined },
])("a keyed file has $want for $name", ({ name, want }) => {
  expect(keyedValue("cache 1\nrss 2\ntotal_cache 3\nlast 4", name)).toBe(want as number);
});

test("a value that is not a number, and a file that is not there, are not known", () => {
  expect(keyedValue("usage lots\n", "usage")).toBeUndefined();
  expect(keyedValue(undefined, "usage")).toBeUndefined();
});

test.each([
  { text: "4096\n", want: 4096 },
  { text: "max\n", want: Number.POSITIVE_INFINITY },
  { text: "", want: undefined },
  { text: "\n", want: undefined },
  { text: "what", want: undefined },
  { text: undefined, want: undefined },
])("a file that holds $text means $want", ({ text, want }) => {
  expect(singleValue(text)).toBe(want as number);
});

test.each([
  { value: -1, want: undefined },
  { value: 9_223_372_036_854_771_000, want: undefined },
  { value: Number.POSITIVE_INFINITY, want: undefined },
  { value: 0, want: 0 },
  { value: 33_554_432, want: 33_554_432 },
])("a limit of $value is $want", ({ value, want }) => {
  expect(toLimit(value)).toBe(want as number);
});

test("the working set leaves inactive file pages out and never goes below 0", () => {
  expect(computeWorkingSetBytes(100, 30)).toBe(70);
  expect(computeWorkingSetBytes(30, 100)).toBe(0);
});

test("pressure is read with and without its second line", () => {
  const some = "some avg10=1.17 avg60=3.03 avg300=1.50 total=17971086\n";
  const full = "full avg10=0.10 avg60=0.00 avg300=0.00 total=12\n";
  expect(parsePressure(some + full)).toEqual({
    some: { avg10: 1.17, avg60: 3.03, avg300: 1.5, totalMicroseconds: 17_971_086 },
    full: { avg10: 0.1, avg60: 0, avg300: 0, totalMicroseconds: 12 },
  });
  expect(parsePressure(some)?.full).toBeUndefined();
});

test.each(["", undefined, "nonsense\n", "some\n"])("%p is not pressure", (text) => {
  expect(parsePressure(text)).toBeUndefined();
});

test("v1 counts CPU in nanoseconds and ticks", () => {
  const files = {
    "cpuacct.usage": "25667227\n",
    "cpuacct.stat": "user 1\nsystem 3\n",
    "cpu.stat": "nr_periods 32\nnr_throttled 5\nthrottled_time 1234\n",
  };
  expect(cpuOf(1, files)).toEqual({
    usageNanoseconds: 25_667_227,
    userNanoseconds: 10_000_000,
    systemNanoseconds: 30_000_000,
    periods: 32,
    throttledPeriods: 5,
    throttledNanoseconds: 1234,
  });
});

test("CPU of a cgroup that is gone is not known, and what a kernel lacks is not made up", () => {
  expect(cpuOf(1, { "cpuacct.stat": "user 1\n" })).toBeUndefined();
  expect(cpuOf(2, {})).toBeUndefined();
  const cpu = cpuOf(1, { "cpuacct.usage": "5" });
  expect(cpu).toMatchObject({ usageNanoseconds: 5, userNanoseconds: undefined, throttledPeriods: undefined });
});

test("v1 memory is that of the whole subtree, faults both ways", () => {
  const files = {
    "memory.usage_in_bytes": "47153152",
    "memory.stat":
      "cache 0\nrss 0\npgfault 7\ntotal_cache 44937216\ntotal_rss 143360\ntotal_inactive_file 44937216\ntotal_pgfault 3190\n",
    "memory.max_usage_in_bytes": "50000000",
    "memory.failcnt": "2",
    "memory.oom_control": "oom_kill 1\n",
  };
  expect(memoryOf(1, files)).toMatchObject({
    usageBytes: 47_153_152,
    workingSetBytes: 2_215_936,
    rssBytes: 143_360,
    cacheBytes: 44_937_216,
    pageFaults: 7,
    hierarchicalPageFaults: 3190,
    failCount: 2,
    oomKills: 1,
  });
});

test("v1 without use_hierarchy falls back to the cgroup's own lines", () => {
  const files = { "memory.usage_in_bytes": "10", "memory.stat": "rss 4\ninactive_file 3\n" };
  expect(memoryOf(1, files)).toMatchObject({ rssBytes: 4, workingSetBytes: 7, maxUsageBytes: undefined });
});

test("memory of a cgroup that went between two reads is not known", () => {
  expect(memoryOf(1, { "memory.usage_in_bytes": "10" })).toEqual(UNKNOWN_MEMORY);
  expect(memoryOf(1, { "memory.stat": "rss 4" })).toEqual(UNKNOWN_MEMORY);
  expect(memoryOf(2, { "memory.stat": "anon 4" })).toEqual(UNKNOWN_MEMORY);
});

test("v1 block I/O by device, bytes and operations, of everything below where the kernel counts that", () => {
  const bytes =
    "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 0\n8:0 Total 12288\n254:1 Read 512\n254:1 Write 0\nTotal 12800\n";
  const serviced = "8:0 Read 1\n8:0 Write 2\nTotal 3\n";
  for (const suffix of ["", "_recursive"]) {
    const files = {
      [`blkio.throttle.io_service_bytes${suffix}`]: bytes,
      [`blkio.throttle.io_serviced${suffix}`]: serviced,
    };
    expect(readBlockIo(...cgroup(1, files))).toEqual([
      { major: 8, minor: 0, readBytes: 4096, writeBytes: 8192, reads: 1, writes: 2 },
      { major: 254, minor: 1, readBytes: 512, writeBytes: 0, reads: 0, writes: 0 },
    ]);
  }
  expect(readBlockIo(...cgroup(1, { "blkio.throttle.io_service_bytes": "Total 0\n" }))).toEqual([]);
});

test("v1 limits, where -1 and the largest number are none", () => {
  const files = {
    "cpu.shares": "102",
    "cpu.cfs_quota_us": "20000",
    "cpu.cfs_period_us": "100000",
    "cpuset.cpus": "0-1\n",
    "pids.max": "max",
    "memory.limit_in_bytes": "33554432",
    "memory.soft_limit_in_bytes": "9223372036854771712",
    "memory.memsw.limit_in_bytes": "33554432",
  };
  expect(readSpec(...cgroup(1, files))).toEqual({
    cpuShares: 102,
    cpuQuotaMicroseconds: 20_000,
    cpuPeriodMicroseconds: 100_000,
    cpuMask: "0-1",
    memoryLimitBytes: 33_554_432,
    memoryReservationBytes: undefined,
    swapLimitBytes: 33_554_432,
    pidsMax: undefined,
  });
  expect(readSpec(...cgroup(1, { "cpu.cfs_quota_us": "-1\n" })).cpuQuotaMicroseconds).toBeUndefined();
});

test("v2 CPU in microseconds; throttling only where the controller is on", () => {
  expect(cpuOf(2, { "cpu.stat": "usage_usec 1000\nuser_usec 600\nsystem_usec 400\n" })).toEqual({
    usageNanoseconds: 1_000_000,
    userNanoseconds: 600_000,
    systemNanoseconds: 400_000,
    periods: undefined,
    throttledPeriods: undefined,
    throttledNanoseconds: undefined,
  });
  const throttled = { "cpu.stat": "usage_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 5\n" };
  expect(cpuOf(2, throttled)).toMatchObject({ periods: 10, throttledPeriods: 4, throttledNanoseconds: 5000 });
});

const V2_STAT = "anon 1000\nfile 2000\nfile_mapped 300\ninactive_file 500\npgfault 11\npgmajfault 2\n";

test("v2 memory, with the peak and the kills", () => {
  const files = {
    "memory.current": "4000\n",
    "memory.stat": V2_STAT,
    "memory.peak": "9000\n",
    "memory.swap.current": "64\n",
    "memory.events": "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n",
  };
  expect(memoryOf(2, files)).toEqual({
    usageBytes: 4000,
    maxUsageBytes: 9000,
    workingSetBytes: 3500,
    rssBytes: 1000,
    cacheBytes: 2000,
    swapBytes: 64,
    mappedFileBytes: 300,
    failCount: 7,
    pageFaults: 11,
    majorPageFaults: 2,
    hierarchicalPageFaults: 11,
    hierarchicalMajorPageFaults: 2,
    oomKills: 1,
  });
});

test("v2 on an older kernel has no peak, and the root takes its usage from meminfo", () => {
  expect(memoryOf(2, { "memory.current": "1", "memory.stat": V2_STAT }).maxUsageBytes).toBeUndefined();
  const meminfo = "MemTotal: 100 kB\nMemFree: 40 kB\nSwapTotal: 10 kB\nSwapFree: 7 kB\n";
  const root = memoryOf(2, { "memory.stat": V2_STAT }, meminfo);
  expect(root).toMatchObject({ usageBytes: 60 * 1024, swapBytes: 3 * 1024, oomKills: undefined, failCount: undefined });
});

test("v2 block I/O, also with unused devices and fields of other controllers", () => {
  const stat =
    "259:0 rbytes=90112 wbytes=52428800 rios=11 wios=50 dbytes=0 dios=0\n8:16 \n253:1 rbytes=1 cost.usage=3\n";
  expect(readBlockIo(...cgroup(2, { "io.stat": stat }))).toEqual([
    { major: 259, minor: 0, readBytes: 90_112, writeBytes: 52_428_800, reads: 11, writes: 50 },
    { major: 253, minor: 1, readBytes: 1, writeBytes: 0, reads: 0, writes: 0 },
  ]);
});

test("v2 limits in v1's terms", () => {
  const files = {
    "cpu.weight": "4",
    "cpu.max": "50000 100000\n",
    "cpuset.cpus.effective": "0-3",
    "memory.max": "max",
    "memory.low": "0",
    "memory.swap.max": "0",
    "pids.max": "4096",
  };
  expect(readSpec(...cgroup(2, files))).toEqual({
    cpuShares: 80,
    cpuQuotaMicroseconds: 50_000,
    cpuPeriodMicroseconds: 100_000,
    cpuMask: "0-3",
    memoryLimitBytes: undefined,
    memoryReservationBytes: undefined,
    swapLimitBytes: 0,
    pidsMax: 4096,
  });
  expect(readSpec(...cgroup(2, { "cpu.max": "max 100000" })).cpuQuotaMicroseconds).toBeUndefined();
  expect(readSpec(...cgroup(2, {})).cpuPeriodMicroseconds).toBeUndefined();
});

test("the pressure of the machine is that of the last ten seconds; a kernel without PSI has none", () => {
  const proc = makeDirectory();
  expect(readMachinePressure(proc)).toBeUndefined();
  mkdirSync(join(proc, "pressure"));
  const write = (name: string, avg10: string) =>
    writeFileSync(join(proc, "pressure", name), `some avg10=${avg10} avg60=3.03 avg300=1.50 total=17971086\n`);
  write("cpu", "97.58");
  write("memory", "0.00");
  expect(readMachinePressure(proc)).toBeUndefined();
  write("io", "1.17");
  expect(readMachinePressure(proc)).toEqual({ cpu: 97.58, memory: 0, io: 1.17 });
});

test("meminfo lines with and without a unit", () => {
  expect(meminfoBytes("MemTotal:  10 kB\nHugePages_Total:   8\n", "MemTotal")).toBe(10_240);
  expect(meminfoBytes("HugePages_Total:   8\n", "HugePages_Total")).toBe(8);
  expect(meminfoBytes("", "MemTotal")).toBeUndefined();
});

test("page sizes of hugetlb file names", () => {
  expect([parsePageSize("hugetlb.2MB"), parsePageSize("hugetlb.1GB"), parsePageSize("hugetlb.64KB")]).toEqual([
    2_097_152, 1_073_741_824, 65_536,
  ]);
  expect(parsePageSize("hugetlb.big")).toBeUndefined();
});
