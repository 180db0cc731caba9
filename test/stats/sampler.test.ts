import { describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CgroupReader } from "../../src/stats/cgroups/cgroup-reader.ts";
import { countKeptFiles } from "../../src/stats/cgroups/kernel-files.ts";
import type { PodFacts } from "../../src/stats/pod-facts.ts";
import { appendReading, type CpuReading, computeUsageNanoCores, decayLoad, Sampler } from "../../src/stats/sampler.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { CONTAINER_PATHS, layTree, podOf, type TreeName } from "./lay-tree.ts";

const makeDirectory = tempDirs();

// Copying a tree costs more than all the rest: tests that change nothing share one.
const shared = {
  "cgroup-v1": layTree("cgroup-v1", makeDirectory()),
  "cgroup-v2": layTree("cgroup-v2", makeDirectory()),
};

/** On a tree of its own, to be changed. */
function setUpOwn(name: TreeName) {
  const tree = layTree(name, makeDirectory());
  const again = () => setUp(name, [podOf(name)], tree);
  return { ...again(), again };
}

function setUp(name: TreeName, pods: readonly PodFacts[] = [podOf(name)], tree = shared[name], keepsFilesOpen = false) {
  const { roots, cgroup } = tree;
  const clock = new FakeClock();
  const reader = new CgroupReader(roots.proc);
  const sampler = new Sampler(reader, clock, { podFacts: () => pods }, roots.proc, new Map(), keepsFilesOpen);
  return { clock, reader, sampler, cgroup, proc: roots.proc };
}

const busy = { avg10: 47.88, avg60: 46.1, avg300: 30.2 };
const pressure = (totalMicroseconds: number, averages = { avg10: 0, avg60: 0, avg300: 0 }) => ({
  ...averages,
  totalMicroseconds,
});

describe("cgroup v2", () => {
  test("all of a container", () => {
    const { sampler } = setUp("cgroup-v2");
    const [pod] = sampler.sample("all").pods;
    const container = pod!.containers[0]!.cgroup;
    expect(container.path).toBe(CONTAINER_PATHS["cgroup-v2"]);
    expect(container.stats).toEqual({
      cpu: {
        usageNanoseconds: 40_981_100_000,
        userNanoseconds: 40_091_207_000,
        systemNanoseconds: 889_893_000,
        periods: 820,
        throttledPeriods: 811,
        throttledNanoseconds: 38_444_121_000,
      },
      memory: {
        usageBytes: 160_129_024,
        maxUsageBytes: 199_327_744,
        workingSetBytes: 108_408_832,
        rssBytes: 105_222_144,
        cacheBytes: 52_518_912,
        swapBytes: 0,
        mappedFileBytes: 798_720,
        failCount: 7,
        pageFaults: 41_200,
        majorPageFaults: 8,
        hierarchicalPageFaults: 41_200,
        hierarchicalMajorPageFaults: 8,
        oomKills: 1,
      },
      pressure: {
        cpu: { some: pressure(18_222_001, busy), full: pressure(17_999_123, busy) },
        memory: { some: pressure(204), full: pressure(190) },
        io: { some: pressure(8815), full: pressure(8207) },
      },
      processIds: ["1002", "1003", "1004"],
      pids: { current: 3 },
      blockIo: [{ major: 259, minor: 0, readBytes: 90_112, writeBytes: 52_428_800, reads: 11, writes: 50 }],
      hugetlb: [{ pageSizeBytes: 2_097_152, usageBytes: 2_097_152, maxUsageBytes: undefined, failCount: 3 }],
    });
    expect(container.spec).toMatchObject({
      cpuQuotaMicroseconds: 50_000,
      memoryLimitBytes: 268_435_456,
      cpuMask: "0-3",
      pidsMax: 4096,
    });
    const states = { sleeping: 1, running: 1, stopped: 0, uninterruptible: 1 };
    expect(container.processes).toEqual({ fds: 3, sockets: 1, ...states });
    expect(container.openFilesLimit).toEqual({ soft: 1_048_576, hard: 1_048_576 });
  });

  test("the node, the pods together, the pod, its sandbox and its network, with systemd's names", () => {
    const { sampler } = setUp("cgroup-v2");
    const sample = sampler.sample("all");
    expect(sample.root?.stats.cpu.usageNanoseconds).toBe(9_120_033_119_000);
    expect(sample.root?.stats.memory.usageBytes).toBe((16_268_196 - 10_123_456) * 1024);
    expect(sample.kubepods?.path).toBe("/kubepods.slice");
    expect(sample.groups.map(({ path }) => path)).toEqual(["/kubepods.slice/kubepods-burstable.slice"]);
    expect(sample.interfaces.map(({ name }) => name)).toEqual(["ens5"]);
    const [pod] = sample.pods;
    expect(pod!.cgroup?.path).toEndWith("/kubepods-burstable-pod6f1c0d2e_8a4b_4c1d_9e7f_0a1b2c3d4e5f.slice");
    expect(pod!.sandbox?.cgroup.stats.pids?.current).toBe(1);
    expect(pod!.interfaces[0]).toMatchObject({ name: "eth0", txBytes: 52_538_332 });
  });

  test("a kernel without memory.peak, pressure, io and hugetlb", () => {
    const { cgroup, proc, again } = setUpOwn("cgroup-v2");
    const directory = join(cgroup, CONTAINER_PATHS["cgroup-v2"]);
    for (const file of ["memory.peak", "memory.events", "memory.swap.current", "io.stat", "pids.current"]) {
      rmSync(join(directory, file));
    }
    rmSync(join(proc, "pressure"), { recursive: true });
    const { sampler } = again();
    const { stats } = sampler.sample("all").pods[0]!.containers[0]!.cgroup;
    expect(stats.memory).toMatchObject({ maxUsageBytes: undefined, oomKills: undefined, swapBytes: 0 });
    expect(stats).toMatchObject({ pids: undefined, blockIo: [], pressure: undefined });
  });
});

test("a kernel without a memory controller: CPU is reported, memory is not", () => {
  const { cgroup, again } = setUpOwn("cgroup-v2");
  writeFileSync(join(cgroup, "cgroup.controllers"), "cpuset cpu io pids\n");
  const [pod] = again().sampler.sample("all").pods;
  const { stats } = pod!.containers[0]!.cgroup;
  expect(stats.cpu.usageNanoseconds).toBe(40_981_100_000);
  expect(stats.memory).toEqual({});
  expect(pod!.cgroup?.stats.cpu.usageNanoseconds).toBe(41_002_113_000);
});

describe("cgroup v1 and hybrid", () => {
  test("all of a container, each figure from its own hierarchy", () => {
    const { sampler } = setUp("cgroup-v1");
    const { cgroup } = sampler.sample("all").pods[0]!.containers[0]!;
    expect(cgroup).toMatchObject({
      path: CONTAINER_PATHS["cgroup-v1"],
      stats: {
        cpu: {
          usageNanoseconds: 4_417_372_970,
          userNanoseconds: 4_110_000_000,
          systemNanoseconds: 300_000_000,
          periods: 124,
          throttledPeriods: 47,
          throttledNanoseconds: 2_512_849_813,
        },
        memory: { usageBytes: 54_419_456, workingSetBytes: 1_990_656, rssBytes: 155_648, cacheBytes: 52_441_088 },
        pids: { current: 3 },
      },
      spec: {
        cpuShares: 1024,
        cpuQuotaMicroseconds: 50_000,
        memoryLimitBytes: 268_435_456,
        swapLimitBytes: 536_870_912,
        memoryReservationBytes: undefined,
      },
    });
    expect(cgroup.stats.memory.pageFaults).toBe(1599);
    expect(cgroup.stats.pressure?.cpu?.some.totalMicroseconds).toBeGreaterThan(0);
  });

  test("basics leave out what a summary does not show", () => {
    const { sampler, cgroup } = setUpOwn("cgroup-v1");
    writeFileSync(join(cgroup, "memory/cgroup.procs"), "1\n2\n");
    const { pods, root } = sampler.sample("basics");
    expect(root!.stats.processIds).toEqual([]);
    const [pod] = pods;
    const { stats } = pod!.containers[0]!.cgroup;
    expect(stats).toMatchObject({ pids: undefined, blockIo: [], pressure: undefined });
    expect(stats.processIds).not.toEqual([]);
    expect(stats.cpu).toMatchObject({ usageNanoseconds: 4_417_372_970, userNanoseconds: undefined });
    expect(pod!.sandbox).toBeUndefined();
  });
});

test("two samples make a rate, a counter that goes back makes none", async () => {
  const { sampler, clock, cgroup } = setUpOwn("cgroup-v1");
  const usage = join(cgroup, "cpuacct", CONTAINER_PATHS["cgroup-v1"], "cpuacct.usage");
  const rate = () => sampler.sample("basics").pods[0]!.containers[0]!.cgroup.usageNanoCores;
  expect(rate()).toBeUndefined();
  await clock.advance(10_000);
  writeFileSync(usage, String(4_417_372_970 + 5e9));
  expect(rate()).toBe(500_000_000);
  await clock.advance(10_000);
  writeFileSync(usage, "17");
  expect(rate()).toBeUndefined();
  await clock.advance(10_000);
  writeFileSync(usage, String(17 + 2e9));
  expect(rate()).toBe(200_000_000);
});

test("a container that dies between two samples is left out", async () => {
  const { sampler, clock, cgroup, proc } = setUpOwn("cgroup-v2");
  expect(sampler.sample("all").pods[0]!.containers).toHaveLength(1);
  await clock.advance(2_000);
  rmSync(join(cgroup, CONTAINER_PATHS["cgroup-v2"]), { recursive: true });
  rmSync(join(proc, "1002"), { recursive: true });
  const [pod] = sampler.sample("all").pods;
  expect(pod!.containers).toEqual([]);
  expect(pod!.cgroup).toBeDefined();
});

test("a pod whose processes are gone is found by the name of its cgroup, or not at all", () => {
  const gone = { ...podOf("cgroup-v1").sandbox, pid: 0 };
  const byName = setUp("cgroup-v1", [podOf("cgroup-v1", { sandbox: gone, containers: [] })]);
  expect(byName.sampler.sample("all").pods[0]!.cgroup?.path).toBe(podOf("cgroup-v1").cgroupParent);
  const slice = setUp("cgroup-v2", [podOf("cgroup-v2", { sandbox: gone, containers: [] })]);
  expect(slice.sampler.sample("all").pods[0]!.cgroup).toBeUndefined();
});

test.each([
  { when: "without a cgroup of its own has none", over: { cgroupParent: "" }, want: { cgroup: undefined } },
  { when: "on the node's network has no interfaces", over: { hostNetwork: true }, want: { interfaces: [] } },
])("a pod $when", ({ over, want }) => {
  const [pod] = setUp("cgroup-v1", [podOf("cgroup-v1", over)]).sampler.sample("all").pods;
  expect(pod).toMatchObject(want);
  expect(pod!.containers).toHaveLength(1);
});

test("within a second all requests get the same sample, unless it lacks details", async () => {
  const { sampler, clock } = setUp("cgroup-v2");
  const first = sampler.sample("basics");
  await clock.advance(900);
  expect(sampler.sample("basics")).toBe(first);
  const all = sampler.sample("all");
  expect(all).not.toBe(first);
  expect(sampler.sample("basics")).toBe(all);
  await clock.advance(1_000);
  expect(sampler.sample("basics")).not.toBe(all);
});

test.each(["cgroup-v1", "cgroup-v2"] as const)(
  "files of a container of %s are closed when it is gone",
  async (name) => {
    const pods = [podOf(name)];
    const { sampler, clock } = setUp(name, pods, shared[name], true);
    const before = countKeptFiles();
    sampler.sample("all");
    const withPod = countKeptFiles();
    await clock.advance(2_000);
    sampler.sample("all");
    expect(countKeptFiles()).toBe(withPod);
    pods.length = 0;
    await clock.advance(2_000);
    sampler.sample("all");
    expect(countKeptFiles()).toBeWithin(before + 1, withPod);
    await clock.advance(180_000);
    expect(countKeptFiles()).toBe(before);
  },
);

test("rates begin again after 90 s without a request, and no timer is left after 180 s", async () => {
  const { sampler, clock } = setUp("cgroup-v2");
  expect(clock.pendingTimers).toBe(0);
  sampler.sample("basics");
  await clock.advance(60_000);
  sampler.sample("basics");
  expect(sampler.isCold("basics")).toBe(false);
  await clock.advance(200_000);
  expect(sampler.isCold("basics")).toBe(true);
  expect(clock.pendingTimers).toBe(0);
});

test("after a pause known cgroups are not looked for again", async () => {
  const { sampler, clock, proc } = setUpOwn("cgroup-v1");
  sampler.sample("basics");
  rmSync(join(proc, "1002", "cgroup"));
  await clock.advance(200_000);
  expect(sampler.sample("basics").pods[0]!.containers).toHaveLength(1);
});

test("any cgroup can be measured once; one that does not exist is undefined", () => {
  const { sampler } = setUp("cgroup-v2");
  expect(sampler.measureOnce("/kubepods.slice")?.stats.memory.usageBytes).toBe(160_432_128);
  expect(sampler.measureOnce("/nowhere.slice")).toBeUndefined();
});

test("processes are counted again when the container used CPU", async () => {
  const { sampler, clock, proc, cgroup } = setUpOwn("cgroup-v2");
  const fds = async () => {
    await clock.advance(15_000);
    return sampler.sample("all").pods[0]!.containers[0]!.cgroup.processes!.fds;
  };
  const stat = join(cgroup, CONTAINER_PATHS["cgroup-v2"], "cpu.stat");
  const open = (fd: number) => writeFileSync(join(proc, "1002", "fd", String(fd)), "");
  expect(await fds()).toBe(3);
  open(3);
  expect(await fds()).toBe(3);
  writeFileSync(stat, readFileSync(stat, "utf8").replace("usage_usec 40981100", "usage_usec 40981101"));
  expect(await fds()).toBe(4);
});

test("a sample keeps no earlier one in memory", async () => {
  const { sampler, clock, cgroup } = setUpOwn("cgroup-v1");
  const usage = join(cgroup, "cpuacct", CONTAINER_PATHS["cgroup-v1"], "cpuacct.usage");
  const taken: WeakRef<object>[] = [];
  for (let index = 0; index < 40; index++) {
    writeFileSync(usage, `${1_000_000 * index}\n`);
    taken.push(new WeakRef(sampler.sampleNow("all").pods[0]!.containers[0]!.cgroup.stats));
    // Objects that a job of the event loop uses live until it ends.
    await clock.advance(15_000);
    await Bun.sleep(0);
  }
  Bun.gc(true);
  await Bun.sleep(0);
  // The last two are kept, and the collector may take a word on the stack for one more.
  expect(taken.filter((reference) => reference.deref()).length).toBeLessThan(10);
});

/** Half a core, read at these seconds. */
const halfCore = (...seconds: number[]) =>
  seconds.reduce<CpuReading[]>(
    (kept, second) => appendReading(kept, { atMs: second * 1000, usageNanoseconds: second * 5e8 }),
    [],
  );

test.each<[when: string, readings: CpuReading[], kept: number[], rate: number | undefined]>([
  ["nothing was read", [], [], undefined],
  ["there is one reading", halfCore(0), [0], undefined],
  ["there are two", halfCore(0, 15), [0, 15], 500_000_000],
  ["two are within a throttling period", halfCore(0, 0.05), [0, 0.05], undefined],
  ["each second: over the last ten", halfCore(...Array(30).keys()), [19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29], 5e8],
  ["asked each minute: over that minute", halfCore(0, 60, 120), [60, 120], 5e8],
  ["the last one is from long ago", halfCore(0, 3600), [3600], undefined],
  ["the counter went back", appendReading(halfCore(0, 10), { atMs: 20_000, usageNanoseconds: 7 }), [20], undefined],
])("the rate when %s", (_, readings, kept, rate) => {
  expect(readings.map(({ atMs }) => atMs / 1000)).toEqual(kept);
  expect(computeUsageNanoCores(readings)).toBe(rate as number);
});

test("load moves towards what there is now, half the way in 7 s", () => {
  expect(decayLoad(undefined, 0, 3)).toBe(3);
  expect(decayLoad(4, 6931, 0)).toBeCloseTo(2, 3);
  expect(decayLoad(0, 1e6, 2)).toBeCloseTo(2);
});
