import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { meminfoBytes } from "../../../src/base/host/proc.ts";
import {
  computeWorkingSetBytes,
  keyedValue,
  parsePageSize,
  parsePressure,
  readBlockIo,
  readCpu,
  readMachinePressure,
  readMemory,
  readSpec,
  singleValue,
  toLimit,
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

const KEYED = "cache 1\nrss 2\ntotal_cache 3\nlast 4";
const SOME = "some avg10=1.17 avg60=3.03 avg300=1.50 total=17971086\n";
const FULL = "full avg10=0.10 avg60=0.00 avg300=0.00 total=12\n";
const SOME_LINE = { avg10: 1.17, avg60: 3.03, avg300: 1.5, totalMicroseconds: 17_971_086 };
const FULL_LINE = { avg10: 0.1, avg60: 0, avg300: 0, totalMicroseconds: 12 };
const V2 = { "memory.stat": "anon 1000\nfile 2000\nfile_mapped 300\ninactive_file 500\npgfault 11\npgmajfault 2\n" };

/** A row per rule: what is read, and what it must be. */
test.each<[rule: string, found: unknown, want: unknown]>([
  ["the first line of a keyed file", keyedValue(KEYED, "cache"), 1],
  ["another line", keyedValue(KEYED, "rss"), 2],
  ["a name that begins like another", keyedValue(KEYED, "total_cache"), 3],
  ["the last line, without an end", keyedValue(KEYED, "last"), 4],
  ["a name that is not there", keyedValue(KEYED, "missing"), undefined],
  ["the end of a name", keyedValue(KEYED, "ss"), undefined],
  ["a value that is not a number", keyedValue("usage lots\n", "usage"), undefined],
  ["a file that is not there", keyedValue(undefined, "usage"), undefined],
  ["a file with one number", singleValue("4096\n"), 4096],
  ["a file with max", singleValue("max\n"), Number.POSITIVE_INFINITY],
  ["an empty file", singleValue(""), undefined],
  ["a file with an empty line", singleValue("\n"), undefined],
  ["a file with a word", singleValue("what"), undefined],
  ["no such file", singleValue(undefined), undefined],
  ["the limit -1", toLimit(-1), undefined],
  ["the largest limit of v1", toLimit(9_223_372_036_854_771_000), undefined],
  ["the limit max", toLimit(Number.POSITIVE_INFINITY), undefined],
  ["the limit 0", toLimit(0), 0],
  ["a limit", toLimit(33_554_432), 33_554_432],
  ["the working set without inactive file pages", computeWorkingSetBytes(100, 30), 70],
  ["a working set below 0", computeWorkingSetBytes(30, 100), 0],
  ["meminfo with a unit", meminfoBytes("MemTotal:  10 kB\nHugePages_Total:   8\n", "MemTotal"), 10_240],
  ["meminfo without a unit", meminfoBytes("HugePages_Total:   8\n", "HugePages_Total"), 8],
  ["meminfo without the line", meminfoBytes("", "MemTotal"), undefined],
  ["huge pages of 2 MB", parsePageSize("hugetlb.2MB"), 2_097_152],
  ["huge pages of 1 GB", parsePageSize("hugetlb.1GB"), 1_073_741_824],
  ["huge pages of 64 KB", parsePageSize("hugetlb.64KB"), 65_536],
  ["huge pages of no size", parsePageSize("hugetlb.big"), undefined],
  ["pressure of two lines", parsePressure(SOME + FULL), { some: SOME_LINE, full: FULL_LINE }],
  ["pressure without its second line", parsePressure(SOME)?.full, undefined],
  ["pressure of an empty file", parsePressure(""), undefined],
  ["pressure without a file", parsePressure(undefined), undefined],
  ["pressure of another text", parsePressure("nonsense\n"), undefined],
  ["pressure that is cut", parsePressure("some\n"), undefined],
  ["v1 CPU of a cgroup that is gone", cpuOf(1, { "cpuacct.stat": "user 1\n" }), undefined],
  ["v2 CPU of a cgroup that is gone", cpuOf(2, {}), undefined],
  ["v1 memory without its counters", memoryOf(1, { "memory.usage_in_bytes": "10" }), {}],
  ["v1 memory without its usage", memoryOf(1, { "memory.stat": "rss 4" }), {}],
  ["v2 memory without its usage", memoryOf(2, { "memory.stat": "anon 4" }), {}],
  ["v2 memory on a kernel without the peak", memoryOf(2, { "memory.current": "1", ...V2 }).maxUsageBytes, undefined],
  ["v1 block I/O of nothing", readBlockIo(...cgroup(1, { "blkio.throttle.io_service_bytes": "Total 0\n" })), []],
  ["a v1 quota of none", readSpec(...cgroup(1, { "cpu.cfs_quota_us": "-1\n" })).cpuQuotaMicroseconds, undefined],
  ["a v2 quota of none", readSpec(...cgroup(2, { "cpu.max": "max 100000" })).cpuQuotaMicroseconds, undefined],
  ["a v2 period without a file", readSpec(...cgroup(2, {})).cpuPeriodMicroseconds, undefined],
])("%s", (_, found, want) => expect(found).toEqual(want));

/** Figures of whole cgroups are tested with recorded trees, in sampler.test.ts. */
test.each<[rule: string, found: object | undefined, want: object]>([
  [
    "v1 CPU without what the kernel lacks",
    cpuOf(1, { "cpuacct.usage": "5" }),
    { usageNanoseconds: 5, userNanoseconds: undefined, throttledPeriods: undefined },
  ],
  [
    "v2 throttling where the controller is on",
    cpuOf(2, { "cpu.stat": "usage_usec 1\nnr_periods 10\nnr_throttled 4\nthrottled_usec 5\n" }),
    { usageNanoseconds: 1000, userNanoseconds: undefined, periods: 10, throttledNanoseconds: 5000 },
  ],
  [
    "v1 memory of the whole subtree, faults both ways",
    memoryOf(1, {
      "memory.usage_in_bytes": "47153152",
      "memory.stat": "cache 0\nrss 0\npgfault 7\ntotal_cache 9\ntotal_rss 143360\ntotal_pgfault 3190\n",
      "memory.failcnt": "2",
      "memory.oom_control": "oom_kill 1\n",
    }),
    { rssBytes: 143_360, cacheBytes: 9, pageFaults: 7, hierarchicalPageFaults: 3190, failCount: 2, oomKills: 1 },
  ],
  [
    "v1 memory without use_hierarchy",
    memoryOf(1, { "memory.usage_in_bytes": "10", "memory.stat": "rss 4\ninactive_file 3\n" }),
    { rssBytes: 4, workingSetBytes: 7, maxUsageBytes: undefined },
  ],
  [
    "v2 memory of the root, from meminfo",
    memoryOf(2, V2, "MemTotal: 100 kB\nMemFree: 40 kB\nSwapTotal: 10 kB\nSwapFree: 7 kB\n"),
    { usageBytes: 60 * 1024, swapBytes: 3 * 1024, oomKills: undefined, failCount: undefined },
  ],
])("%s", (_, found, want) => expect(found).toMatchObject(want));

test("v1 block I/O by device, bytes and operations, of everything below where the kernel counts that", () => {
  const bytes =
    "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 0\n8:0 Total 12288\n254:1 Read 512\n254:1 Write 0\nTotal 12800\n";
  for (const suffix of ["", "_recursive"]) {
    const files = {
      [`blkio.throttle.io_service_bytes${suffix}`]: bytes,
      [`blkio.throttle.io_serviced${suffix}`]: "8:0 Read 1\n8:0 Write 2\nTotal 3\n",
    };
    expect(readBlockIo(...cgroup(1, files))).toEqual([
      { major: 8, minor: 0, readBytes: 4096, writeBytes: 8192, reads: 1, writes: 2 },
      { major: 254, minor: 1, readBytes: 512, writeBytes: 0, reads: 0, writes: 0 },
    ]);
  }
});

test("v2 block I/O, also with unused devices and fields of other controllers", () => {
  const stat =
    "259:0 rbytes=90112 wbytes=52428800 rios=11 wios=50 dbytes=0 dios=0\n8:16 \n253:1 rbytes=1 cost.usage=3\n";
  expect(readBlockIo(...cgroup(2, { "io.stat": stat }))).toEqual([
    { major: 259, minor: 0, readBytes: 90_112, writeBytes: 52_428_800, reads: 11, writes: 50 },
    { major: 253, minor: 1, readBytes: 1, writeBytes: 0, reads: 0, writes: 0 },
  ]);
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
