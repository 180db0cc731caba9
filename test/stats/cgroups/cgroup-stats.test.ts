import { expect, test } from "bun:test";
import {
  computeWorkingSetBytes,
  keyedValue,
  parsePressure,
  singleValue,
  toLimit,
} from "../../../src/stats/cgroups/cgroup-stats.ts";
import { parseV1BlockIo, parseV1Cpu, parseV1Memory, parseV1Spec } from "../../../src/stats/cgroups/cgroup-v1.ts";
import {
  meminfoBytes,
  parseV2BlockIo,
  parseV2Cpu,
  parseV2Memory,
  parseV2Spec,
} from "../../../src/stats/cgroups/cgroup-v2.ts";
import { parsePageSize } from "../../../src/stats/cgroups/open-cgroup.ts";

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
  const cpuStat = "nr_periods 32\nnr_throttled 5\nthrottled_time 1234\n";
  expect(parseV1Cpu({ usage: "25667227\n", acctStat: "user 1\nsystem 3\n", cpuStat })).toEqual({
    usageNanoseconds: 25_667_227,
    userNanoseconds: 10_000_000,
    systemNanoseconds: 30_000_000,
    periods: 32,
    throttledPeriods: 5,
    throttledNanoseconds: 1234,
  });
});

test("v1 CPU of a cgroup that is gone is not known, and what a kernel lacks is not made up", () => {
  expect(parseV1Cpu({ usage: undefined, acctStat: "user 1\n", cpuStat: "" })).toBeUndefined();
  const cpu = parseV1Cpu({ usage: "5", acctStat: undefined, cpuStat: undefined });
  expect(cpu).toMatchObject({ usageNanoseconds: 5, userNanoseconds: undefined, throttledPeriods: undefined });
});

test("v1 memory is that of the whole subtree, faults both ways (oracle 100)", () => {
  const stat =
    "cache 0\nrss 0\npgfault 7\ntotal_cache 44937216\ntotal_rss 143360\ntotal_inactive_file 44937216\ntotal_pgfault 3190\n";
  const files = { usage: "47153152", stat, maxUsage: "50000000", failcnt: "2", oomControl: "oom_kill 1\n" };
  expect(parseV1Memory(files)).toMatchObject({
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
  const files = {
    usage: "10",
    stat: "rss 4\ninactive_file 3\n",
    maxUsage: undefined,
    failcnt: undefined,
    oomControl: undefined,
  };
  expect(parseV1Memory(files)).toMatchObject({ rssBytes: 4, workingSetBytes: 7, maxUsageBytes: undefined });
});

test("v1 memory of a cgroup that went between two reads is not known", () => {
  const gone = { maxUsage: undefined, failcnt: undefined, oomControl: undefined };
  expect(parseV1Memory({ usage: "10", stat: undefined, ...gone })).toBeUndefined();
  expect(parseV1Memory({ usage: undefined, stat: "rss 4", ...gone })).toBeUndefined();
});

test("v1 block I/O by device, bytes and operations", () => {
  const bytes =
    "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 0\n8:0 Total 12288\n254:1 Read 512\n254:1 Write 0\nTotal 12800\n";
  const serviced = "8:0 Read 1\n8:0 Write 2\nTotal 3\n";
  expect(parseV1BlockIo(bytes, serviced)).toEqual([
    { major: 8, minor: 0, readBytes: 4096, writeBytes: 8192, reads: 1, writes: 2 },
    { major: 254, minor: 1, readBytes: 512, writeBytes: 0, reads: 0, writes: 0 },
  ]);
  expect(parseV1BlockIo("Total 0\n", undefined)).toEqual([]);
});

test("v1 limits, where -1 and the largest number are none", () => {
  const files = { shares: "102", quota: "20000", period: "100000", cpus: "0-1\n", pidsMax: "max" };
  const spec = parseV1Spec({
    ...files,
    memoryLimit: "33554432",
    softLimit: "9223372036854771712",
    memswLimit: "33554432",
  });
  expect(spec).toEqual({
    cpuShares: 102,
    cpuQuotaMicroseconds: 20_000,
    cpuPeriodMicroseconds: 100_000,
    cpuMask: "0-1",
    memoryLimitBytes: 33_554_432,
    memoryReservationBytes: undefined,
    swapLimitBytes: 33_554_432,
    pidsMax: undefined,
  });
  const unlimited = { ...files, quota: "-1\n", memoryLimit: undefined, softLimit: undefined, memswLimit: undefined };
  expect(parseV1Spec(unlimited).cpuQuotaMicroseconds).toBeUndefined();
});

test("v2 CPU in microseconds; throttling only where the controller is on", () => {
  expect(parseV2Cpu("usage_usec 1000\nuser_usec 600\nsystem_usec 400\n")).toEqual({
    usageNanoseconds: 1_000_000,
    userNanoseconds: 600_000,
    systemNanoseconds: 400_000,
    periods: undefined,
    throttledPeriods: undefined,
    throttledNanoseconds: undefined,
  });
  expect(parseV2Cpu("usage_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 5\n")).toMatchObject({
    periods: 10,
    throttledPeriods: 4,
    throttledNanoseconds: 5000,
  });
  expect(parseV2Cpu(undefined)).toBeUndefined();
});

const V2_STAT = "anon 1000\nfile 2000\nfile_mapped 300\ninactive_file 500\npgfault 11\npgmajfault 2\n";

test("v2 memory, with the peak and the kills", () => {
  const events = "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\n";
  const files = { current: "4000\n", stat: V2_STAT, peak: "9000\n", swapCurrent: "64\n", events };
  expect(parseV2Memory(files)).toEqual({
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
  const nothing = { peak: undefined, swapCurrent: undefined, events: undefined };
  expect(parseV2Memory({ current: "1", stat: V2_STAT, ...nothing })?.maxUsageBytes).toBeUndefined();
  const meminfo = "MemTotal: 100 kB\nMemFree: 40 kB\nSwapTotal: 10 kB\nSwapFree: 7 kB\n";
  const root = parseV2Memory({ current: undefined, stat: V2_STAT, ...nothing, meminfo });
  expect(root).toMatchObject({ usageBytes: 60 * 1024, swapBytes: 3 * 1024, oomKills: undefined, failCount: undefined });
  expect(parseV2Memory({ current: undefined, stat: V2_STAT, ...nothing })).toBeUndefined();
});

test("v2 block I/O, also with unused devices and fields of other controllers", () => {
  const stat =
    "259:0 rbytes=90112 wbytes=52428800 rios=11 wios=50 dbytes=0 dios=0\n8:16 \n253:1 rbytes=1 cost.usage=3\n";
  expect(parseV2BlockIo(stat)).toEqual([
    { major: 259, minor: 0, readBytes: 90_112, writeBytes: 52_428_800, reads: 11, writes: 50 },
    { major: 253, minor: 1, readBytes: 1, writeBytes: 0, reads: 0, writes: 0 },
  ]);
});

test("v2 limits in v1's terms", () => {
  const files = {
    weight: "4",
    cpuMax: "50000 100000\n",
    cpus: "0-3",
    memoryMax: "max",
    memoryLow: "0",
    swapMax: "0",
    pidsMax: "4096",
  };
  expect(parseV2Spec(files)).toEqual({
    cpuShares: 80,
    cpuQuotaMicroseconds: 50_000,
    cpuPeriodMicroseconds: 100_000,
    cpuMask: "0-3",
    memoryLimitBytes: undefined,
    memoryReservationBytes: undefined,
    swapLimitBytes: 0,
    pidsMax: 4096,
  });
  expect(parseV2Spec({ ...files, cpuMax: "max 100000" }).cpuQuotaMicroseconds).toBeUndefined();
  expect(parseV2Spec({ ...files, cpuMax: undefined }).cpuPeriodMicroseconds).toBeUndefined();
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
