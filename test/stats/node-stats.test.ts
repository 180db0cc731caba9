import { describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileSlot } from "../../src/base/concurrency/worker-pool.ts";
import { CadvisorApi } from "../../src/stats/cadvisor/cadvisor-api.ts";
import { readMachineInfo } from "../../src/stats/cadvisor/cadvisor-facts.ts";
import { metricsText } from "../../src/stats/metrics/metric.ts";
import { type MeasuredEngine, NodeStats, type NodeStatsDeps } from "../../src/stats/node-stats.ts";
import type { PodFacts } from "../../src/stats/pod-facts.ts";
import recordedCadvisor from "../fixtures/oracle/stats/metrics-cadvisor.json";
import recordedResource from "../fixtures/oracle/stats/metrics-resource.json";
import recordedSpec from "../fixtures/oracle/stats/spec.json";
import recordedContainer from "../fixtures/oracle/stats/stats-container.json";
import recordedRoot from "../fixtures/oracle/stats/stats-root.json";
import recordedSummary from "../fixtures/oracle/stats/stats-summary.json";
import recordedUsage from "../fixtures/oracle/stats/stats-summary-only-cpu-and-memory.json";
import { FakeClock } from "../support/fake-clock.ts";
import { tempDirs } from "../support/temp-dir.ts";
import {
  aMeasuredEngine,
  CONTAINER_ID,
  CONTAINER_PATHS,
  type LaidTree,
  layTree,
  podOf,
  SANDBOX_ID,
  statsSettings,
  type TreeName,
} from "./lay-tree.ts";

const makeDirectory = tempDirs();

// No test here changes a tree, so one of each is enough.
const trees = {
  "cgroup-v1": layTree("cgroup-v1", makeDirectory()),
  "cgroup-v2": layTree("cgroup-v2", makeDirectory()),
};

/** Every path of keys in a JSON value; `[]` is any element, `*` a key that is data. */
function shapeOf(value: unknown, path = ""): string[] {
  if (Array.isArray(value)) return [...new Set(value.flatMap((element) => shapeOf(element, `${path}[]`)))];
  if (value === null) return [];
  if (typeof value !== "object") return [path];
  const keys = Object.entries(value).flatMap(([key, member]) =>
    shapeOf(member, /\.(labels|disk_map)$/.test(path) ? `${path}.*` : `${path}.${key}`),
  );
  return [...new Set([path, ...keys])];
}

const missing = (recorded: unknown, ours: unknown) => {
  const shape = new Set(shapeOf(ours));
  return shapeOf(recorded).filter((path) => !shape.has(path));
};

const withImages = aMeasuredEngine({ images: { inventory: async () => ({ bytes: 12_589_502 }) } });
const engineWith = (list: MeasuredEngine["others"]["list"]) => aMeasuredEngine({ others: { list } });

interface Case extends Partial<Pick<NodeStatsDeps, "engine">>, Partial<NodeStatsDeps["settings"]> {
  pods?: PodFacts[];
  /** Bytes and inodes by directory. */
  disk?: Record<string, [bytes: number, inodes: number]>;
  tree?: LaidTree;
}

function setUp(
  name: TreeName,
  { pods = [podOf(name)], disk = {}, tree = trees[name], engine, ...settings }: Case = {},
) {
  const { roots, cgroup } = tree;
  const clock = new FakeClock("2026-11-21T06:40:00.500Z");
  const asked: string[][] = [];
  const stats = new NodeStats({
    clock,
    roots,
    nodeName: "node1",
    view: { podFacts: () => pods },
    engine: engine ?? aMeasuredEngine(),
    settings: { ...statsSettings, ...settings },
    slot: new FileSlot(clock),
    measureDirectories: async (directories, what) => {
      if (what === "bytes") asked.push([...directories]);
      const known = directories.filter((directory) => directory in disk);
      return new Map(known.map((directory) => [directory, disk[directory]![what === "bytes" ? 0 : 1]]));
    },
  });
  /** A summary when rates and disk usage are known. */
  const summary = async (onlyCpuAndMemory = false) => {
    const first = stats.summary(onlyCpuAndMemory);
    await clock.advance(300);
    await first;
    await stats.disk.settled();
    await clock.advance(1_000);
    return stats.summary(onlyCpuAndMemory);
  };
  return { stats, clock, roots, cgroup, summary, asked, api: new CadvisorApi(stats) };
}

const LAYER = "/var/lib/docker/overlay2/app/diff";
const LOGS = `/var/lib/docker/containers/${CONTAINER_ID}`;
const VOLUME = "/var/lib/kubelet/pods/u/volumes/kubernetes.io~empty-dir/e";
const DISK: Case["disk"] = { [LAYER]: [10_493_952, 3], [LOGS]: [2_494_464, 5], [VOLUME]: [52_432_896, 2] };
const withVolume = (name: TreeName) => [
  podOf(name, { volumes: [{ name: "e", path: VOLUME, ephemeral: true, isFileSystem: false }] }),
];

describe("the summary", () => {
  test.each(["cgroup-v1", "cgroup-v2"] as const)("has every member upstream's has, on %s", async (name) => {
    const { summary } = setUp(name, { disk: DISK, engine: withImages });
    expect(missing(recordedSummary, await summary())).toEqual([]);
    expect(missing(recordedUsage, await summary(true))).toEqual([]);
  });

  test("with only CPU and memory it has nothing else", async () => {
    const { summary, asked } = setUp("cgroup-v2", { disk: DISK });
    const { node, pods } = await summary(true);
    expect(Object.keys(node).sort()).toEqual(["cpu", "memory", "nodeName", "startTime", "systemContainers"]);
    expect(Object.keys(pods[0]!).sort()).toEqual(["containers", "cpu", "memory", "podRef", "startTime"]);
    expect(Object.keys(pods[0]!.containers![0]!).sort()).toEqual(["cpu", "memory", "name", "startTime"]);
    expect(asked).toHaveLength(1);
  });

  test("a container's memory, of which its limit leaves some", async () => {
    const [pod] = (await setUp("cgroup-v1").summary()).pods;
    const memory = { usageBytes: 54_419_456, workingSetBytes: 1_990_656, rssBytes: 155_648 };
    const faults = { pageFaults: 1599, majorPageFaults: 0 };
    const availableBytes = 268_435_456 - memory.workingSetBytes;
    expect(pod!.podRef).toEqual({ name: "web-node1", namespace: "default", uid: podOf("cgroup-v1").uid });
    expect(pod!.containers![0]).toMatchObject({
      name: "app",
      startTime: "2026-11-21T06:36:01Z",
      memory: { time: "2026-11-21T06:40:01Z", availableBytes, ...memory, ...faults },
    });
    expect(pod!.memory).not.toHaveProperty("availableBytes");
  });

  test("disk usage as upstream reports it", async () => {
    const { summary } = setUp("cgroup-v2", { disk: DISK, pods: withVolume("cgroup-v2"), engine: withImages });
    const { pods, node } = await summary();
    const [pod] = pods;
    expect(pod!.containers![0]).toMatchObject({
      rootfs: { usedBytes: 10_493_952, inodesUsed: 3 },
      logs: { usedBytes: 2_494_464 },
    });
    expect(pod!["ephemeral-storage"]).toMatchObject({ usedBytes: 10_493_952 + 2_494_464 + 52_432_896, inodesUsed: 5 });
    expect(pod!.volume).toHaveLength(1);
    expect(pod!.volume![0]).toMatchObject({ name: "e", usedBytes: 52_432_896, inodesUsed: 2 });
    expect(node.runtime!.imageFs!.usedBytes).toBe(12_589_502);
  });

  test("a volume that is not a scratch space counts as nothing, and one behind a claim names it", async () => {
    const volumes = [{ name: "data", path: VOLUME, ephemeral: false, isFileSystem: false, pvcName: "claim" }];
    const { summary, stats } = setUp("cgroup-v2", { disk: DISK, pods: [podOf("cgroup-v2", { volumes })] });
    const [pod] = (await summary()).pods;
    expect(pod!["ephemeral-storage"]!.usedBytes).toBe(10_493_952 + 2_494_464);
    expect(pod!.volume![0]!.pvcRef).toEqual({ name: "claim", namespace: "default" });
    expect([...metricsText(stats.diskMetrics(), "prometheus")].join("")).toContain(
      'kubelet_volume_stats_used_bytes{namespace="default",persistentvolumeclaim="claim"} 52432896\n',
    );
  });

  test("the node with its own network interface, boot time, tasks and swap; pressure on cgroup v2", async () => {
    const { node, pods } = await setUp("cgroup-v2").summary();
    expect(node).toMatchObject({
      startTime: "2026-11-21T05:14:00Z",
      network: { name: "ens5", rxBytes: 1_029_974_580, interfaces: [{}] },
      rlimit: { maxpid: 4_194_304, curproc: 413 },
      swap: { swapUsageBytes: 0, swapAvailableBytes: 2_097_148 * 1024 },
      systemContainers: [{ name: "pods" }],
    });
    expect(pods[0]!.containers![0]).toMatchObject({
      cpu: { psi: { some: { total: 18_222_001_000, avg10: 47.88, avg60: 46.1, avg300: 30.2 } } },
      io: { psi: { full: { total: 8_207_000 } } },
    });
  });

  test("a pod without a running container, and one without a cgroup of its own", async () => {
    const of = (over: Partial<PodFacts>) => setUp("cgroup-v2", { pods: [podOf("cgroup-v2", over)] }).summary();
    const idle = await of({ containers: [] });
    expect(idle.pods[0]).toMatchObject({ containers: null, memory: { usageBytes: 160_432_128 } });
    const flat = await of({ cgroupParent: "" });
    expect(flat.pods[0]).toMatchObject({ memory: { usageBytes: 160_129_024 } });
    expect(flat.node.systemContainers).toBeUndefined();
  });

  test("the first request waits for rates, later ones get them at once", async () => {
    const { stats, clock } = setUp("cgroup-v2");
    const both = [1, 2].map(() => stats.summary(true));
    await clock.advance(299);
    expect(await Promise.race([...both, "waiting"])).toBe("waiting");
    await clock.advance(1);
    for (const { node } of await Promise.all(both)) expect(node.cpu!.usageNanoCores).toBe(0);
    await clock.advance(5_000);
    expect((await stats.summary(true)).node.cpu!.usageNanoCores).toBe(0);
  });

  test("cgroups of the system that options name are system containers", async () => {
    const { summary } = setUp("cgroup-v2", { systemCgroups: "/kubepods.slice", runtimeCgroups: "/nowhere.slice" });
    const { systemContainers } = (await summary()).node;
    const figures = { cpu: { usageNanoCores: 0 }, memory: { workingSetBytes: expect.any(Number) } };
    expect(systemContainers).toMatchObject([{ name: "pods" }, { name: "misc", ...figures }]);
    expect(systemContainers).toHaveLength(2);
  });

  test("a pod whose cgroup has a limit shows what is available", async () => {
    const directory = makeDirectory();
    const tree = layTree("cgroup-v2", directory);
    const { cgroupParent } = podOf("cgroup-v2");
    const cgroup = join(tree.cgroup, "kubepods.slice", "kubepods-burstable.slice", cgroupParent);
    const memory = async (limit: string) => {
      writeFileSync(join(cgroup, "memory.max"), `${limit}\n`);
      return (await setUp("cgroup-v2", { tree }).summary()).pods[0]!.memory!;
    };
    expect(await memory("max")).not.toHaveProperty("availableBytes");
    const { availableBytes, workingSetBytes } = await memory("536870912");
    expect(availableBytes).toBe(536_870_912 - workingSetBytes!);
  });

  test("without an answer of the engine the summary lacks only its images", async () => {
    const inventory = async () => {
      throw new Error("connect ENOENT");
    };
    const { stats, clock } = setUp("cgroup-v2", {
      engine: aMeasuredEngine({ infoIfKnown: undefined, images: { inventory } }),
    });
    const first = stats.summary(false);
    await clock.advance(300);
    expect((await first).node.runtime).toBeUndefined();
  });
});

describe("the machine", () => {
  test("processors, caches, disks, interfaces and the cloud named by DMI", () => {
    const machine = readMachineInfo(trees["cgroup-v2"].roots);
    expect(machine).toMatchObject({
      num_cores: 4,
      num_physical_cores: 2,
      num_sockets: 1,
      cpu_frequency_khz: 2_499_998,
      memory_capacity: 16_268_196 * 1024,
      machine_id: "3d1219c7c4c5404aaa1f6d2a48adfda4",
      system_uuid: "ec2a1b2c-3d4e-5f60-7182-93a4b5c6d7e8",
      boot_id: "4c9d3f4e-1f8e-4a63-b0f1-5a0c9f3c2b1a",
      cloud_provider: "AWS",
      instance_type: "m5.xlarge",
      instance_id: "i-0123456789abcdef0",
      hugepages: [
        { page_size: 1_048_576, num_pages: 0 },
        { page_size: 2048, num_pages: 8 },
      ],
      network_devices: [{ name: "ens5", mac_address: "06:1f:2b:3c:4d:5e", speed: -1, mtu: 9001 }],
    });
    expect(machine.disk_map).toEqual({
      "259:0": { name: "nvme0n1", major: 259, minor: 0, size: 104_857_600 * 512, scheduler: "none" },
    });
    const [node] = machine.topology;
    expect(node!.cores.map(({ core_id, thread_ids }) => ({ core_id, thread_ids }))).toEqual([
      { core_id: 0, thread_ids: [0, 2] },
      { core_id: 1, thread_ids: [1, 3] },
    ]);
    expect(node!.cores[0]!.caches).toHaveLength(3);
    expect(node!.caches).toEqual([{ size: 36_608 * 1024, type: "Unified", level: 3 }]);
  });

  test("facts for the Node object measure no disk usage, and agree with those of the metrics", async () => {
    const { api, asked, stats } = setUp("cgroup-v2", { disk: DISK });
    const { machine, ...versions } = api.facts.forNodeObject();
    await stats.disk.settled();
    expect(asked).toEqual([]);
    expect(api.facts.read()).toMatchObject({ ...versions, machine });
    await stats.disk.settled();
    expect(asked).toHaveLength(1);
  });

  test("a machine that shows almost nothing of itself is described, too", () => {
    const directory = makeDirectory();
    const nothing = { proc: `${directory}/proc`, sys: `${directory}/sys`, etc: `${directory}/etc` };
    expect(readMachineInfo(nothing)).toMatchObject({
      num_cores: 0,
      num_sockets: 1,
      memory_capacity: 0,
      topology: [],
      disk_map: {},
      cloud_provider: "Unknown",
      instance_id: "None",
    });
  });
});

describe("cAdvisor's resources", () => {
  test("of the machine, the node and a container have every member upstream's have", async () => {
    const { api, stats } = setUp("cgroup-v1", { disk: DISK });
    stats.diskMetrics();
    await stats.disk.settled();
    expect(missing(recordedSpec, readMachineInfo(trees["cgroup-v2"].roots))).toEqual([]);
    expect(missing(recordedRoot, api.container("/", { numStats: 0 }))).toEqual([]);
    const info = api.kubeletContainer({ namespace: "default", pod: "web-node1", container: "app" }, { numStats: 0 });
    expect(missing(recordedContainer, info)).toEqual([]);
    expect(info).toMatchObject({
      id: CONTAINER_ID,
      name: CONTAINER_PATHS["cgroup-v1"],
      namespace: "docker",
      spec: { memory: { limit: 268_435_456, swap_limit: 536_870_912 }, cpu: { quota: 50_000 } },
    });
  });

  test("labels never hold a copy of the manifest", () => {
    const { api } = setUp("cgroup-v1");
    expect(JSON.stringify([...api.containers("/kubepods", { numStats: 0 })])).not.toContain("last-applied");
  });

  test("a subtree by path, with the names below", () => {
    const { api } = setUp("cgroup-v2");
    const infos = [...api.containers("/kubepods.slice", { numStats: 1 })];
    expect(infos.map(({ name }) => name.split("/").at(-1))).toEqual([
      "kubepods.slice",
      "kubepods-burstable.slice",
      "kubepods-burstable-pod6f1c0d2e_8a4b_4c1d_9e7f_0a1b2c3d4e5f.slice",
      `docker-${SANDBOX_ID}.scope`,
      `docker-${CONTAINER_ID}.scope`,
    ]);
    expect(infos[2]!.subcontainers).toHaveLength(2);
    expect(api.container("/", { numStats: 1 })!.subcontainers!.map(({ name }) => name)).toEqual([
      "/init.scope",
      "/kubepods.slice",
      "/system.slice",
    ]);
  });

  test("two instants for clients that compute rates themselves, one if that is what they ask for", async () => {
    const { api, clock } = setUp("cgroup-v2");
    expect(api.container("/", { numStats: 0 })!.stats).toHaveLength(1);
    await clock.advance(10_000);
    expect(api.container("/", { numStats: 0 })!.stats).toHaveLength(2);
    expect(api.container("/", { numStats: 1 })!.stats).toHaveLength(1);
  });

  test.each(["/../../../../etc", "etc", "/kubepods.slice/../..", "/nowhere"])("%s names no cgroup", (path) => {
    const { api } = setUp("cgroup-v2");
    expect(api.container(path, { numStats: 0 })).toBeUndefined();
    expect([...api.containers(path, { numStats: 0 })]).toEqual([]);
  });

  test("other cgroups leave no descriptor open", () => {
    const { api } = setUp("cgroup-v2");
    const openFiles = () => readdirSync("/proc/self/fd").length;
    const texts = () => JSON.stringify([...api.containers("/", { numStats: 0 })]);
    texts();
    const before = openFiles();
    for (let i = 0; i < 100; i++) texts();
    expect(openFiles()).toBe(before);
  });

  test("containers by Docker name and id", () => {
    const { api } = setUp("cgroup-v2");
    const names = (name: string) => Array.from(api.dockerContainers(name, { numStats: 0 }), ({ id }) => id);
    expect(names("")).toEqual([SANDBOX_ID, CONTAINER_ID]);
    expect(names(CONTAINER_ID.slice(0, 12))).toEqual([CONTAINER_ID]);
    expect(names(podOf("cgroup-v2").containers[0]!.dockerName)).toEqual([CONTAINER_ID]);
    expect(names("2")).toEqual([]);
  });
});

type Recorded = Record<string, { type: string; help: string; labelSets: string[][]; hasTimestamps: boolean }>;

/** Families of a text with what can be reported of them. */
function readFamilies(text: string) {
  const families = new Map<string, { type: string; help: string; labels: Set<string>; timestamps: boolean }>();
  for (const [, name = "", help = "", type = ""] of text.matchAll(/^# HELP (\S+) (.*)\n# TYPE \S+ (.*)$/gm)) {
    families.set(name, { type, help, labels: new Set(), timestamps: false });
  }
  for (const [, name = "", labels = "", time] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+( \d{13})?$/gm)) {
    const family = families.get(name)!;
    family.labels.add(
      Array.from(labels.matchAll(/(\w+)="/g), ([, label]) => label)
        .sort()
        .join(),
    );
    family.timestamps ||= time !== undefined;
  }
  return families;
}

const expectFamilies = (text: string, recorded: Recorded) => {
  const ours = readFamilies(text);
  for (const [name, want] of Object.entries(recorded)) {
    const family = ours.get(name);
    expect({ name, ...family, labels: [...(family?.labels ?? [])] }).toEqual({
      name,
      type: want.type,
      help: want.help,
      labels: want.labelSets.map((labels) => labels.toSorted().join()),
      timestamps: want.hasTimestamps,
    });
  }
};

const NOW = "1795243200500";
const cadvisorText = (api: CadvisorApi) => [...api.metrics("prometheus")].join("");

describe("the metrics", () => {
  test.each(["cgroup-v1", "cgroup-v2"] as const)(
    "have upstream's names, types, texts and labels on %s",
    async (name) => {
      const { stats, api } = setUp(name, { disk: DISK });
      stats.diskMetrics();
      await stats.disk.settled();
      expectFamilies(cadvisorText(api), recordedCadvisor as Recorded);
      expectFamilies(stats.resourceMetrics("prometheus"), recordedResource as Recorded);
    },
  );

  test("figures of a container, with the time they were taken; later no timer is left", async () => {
    const { api, clock } = setUp("cgroup-v2", { disk: DISK });
    const text = cadvisorText(api);
    const sample = (name: string, labels = `container="app",`) =>
      /\} (.*)/.exec(text.split("\n").find((line) => line.startsWith(`container_${name}{${labels}`)) ?? "")?.[1];
    const timed = {
      cpu_usage_seconds_total: "40.9811",
      cpu_cfs_throttled_periods_total: "811",
      memory_working_set_bytes: "108408832",
      memory_max_usage_bytes: "199327744",
      oom_events_total: "1",
      pressure_cpu_waiting_seconds_total: "18.222001",
      processes: "3",
      tasks_state: "0",
    };
    for (const [name, value] of Object.entries(timed)) expect([name, sample(name)]).toEqual([name, `${value} ${NOW}`]);
    expect(sample("fs_writes_bytes_total", `container="app",device="/dev/nvme0n1"`)).toBe(`52428800 ${NOW}`);
    expect(sample("spec_memory_limit_bytes")).toBe("268435456");
    expect(sample("start_time_seconds")).toBe("1795242961.25");
    expect(sample("network_transmit_bytes_total", `container="POD",`)).toBe(`52538332 ${NOW}`);
    expect(sample("network_transmit_bytes_total")).toBeUndefined();
    await clock.advance(260_000);
    expect(clock.pendingTimers).toBe(0);
  });

  test("of resources can be left out, so that a client of 1.20 finds its own", () => {
    const swap = ["container", "node", "pod"].map((owner) => `${owner}_swap_usage_bytes`);
    const newer = ["container_start_time_seconds", ...swap];
    const { stats } = setUp("cgroup-v2", { disabledMetrics: newer });
    const kept = ["container", "node", "pod"].flatMap((owner) => [
      `${owner}_cpu_usage_seconds_total`,
      `${owner}_memory_working_set_bytes`,
    ]);
    expect([...readFamilies(stats.resourceMetrics("prometheus")).keys()].sort()).toEqual([...kept, "scrape_error"]);
  });

  test("containers that are not ours have the names and images that cAdvisor shows, and are no resource of a pod", async () => {
    const other = { ...podOf("cgroup-v2").containers[0]!, dockerName: "db", image: "db:1", hasOwnNetwork: true };
    const wrong = { ...other, id: "9".repeat(64), dockerName: "its process id is another container's" };
    const asked: boolean[][] = [];
    const { api, stats } = setUp("cgroup-v2", {
      pods: [],
      engine: engineWith(async (isCurrent) => {
        asked.push([other, wrong].map(isCurrent));
        return [other, wrong];
      }),
    });
    await Promise.all([stats.refreshOthers(), stats.refreshOthers()]);
    expect(asked).toEqual([[true, false]]);
    const lines = cadvisorText(api).split("\n");
    const labels = `id="${CONTAINER_PATHS["cgroup-v2"]}",image="db:1",name="db",namespace="",pod=""`;
    expect(lines).toContain(`container_memory_working_set_bytes{container="",${labels}} 108408832 ${NOW}`);
    expect(lines.filter((line) => line.includes(wrong.dockerName))).toEqual([]);
    expect(stats.resourceMetrics("prometheus")).not.toMatch(/^container_|^pod_/m);
    const [info] = [...api.dockerContainers("db", { numStats: 1 })];
    expect(info).toMatchObject({ name: CONTAINER_PATHS["cgroup-v2"], aliases: ["db", CONTAINER_ID] });
    expect(info?.spec).toMatchObject({ image: "db:1", labels: {} });
  });

  test("containers that are not ours: an engine that hangs delays a response by a second, and what was known stays", async () => {
    const other = { ...podOf("cgroup-v2").containers[0]!, dockerName: "db", hasOwnNetwork: false };
    let isHanging = false;
    const { api, stats, clock } = setUp("cgroup-v2", {
      pods: [],
      engine: engineWith(async (_, signal) => {
        if (isHanging) await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
        return [other];
      }),
    });
    await stats.refreshOthers();
    isHanging = true;
    await clock.advance(6_000);
    const refreshed = stats.refreshOthers();
    await clock.advance(1_000);
    await refreshed;
    expect(clock.pendingTimers).toBe(0);
    expect([...api.dockerContainers("db", { numStats: 1 })]).toHaveLength(1);
  });

  test("in OpenMetrics, times are seconds and the text has an end", async () => {
    const { stats } = setUp("cgroup-v2");
    const text = stats.resourceMetrics("openmetrics");
    expect(text).toContain(
      "# TYPE node_cpu_usage_seconds counter\nnode_cpu_usage_seconds_total 9120.033119 1795243200.500\n",
    );
    expect(text).toEndWith("# EOF\n");
  });

  test("without a limit there is no throttling, and the limit is 0", async () => {
    const { api } = setUp("cgroup-v2");
    const lines = cadvisorText(api)
      .split("\n")
      .filter((line) => line.includes('container="POD"'));
    expect(lines.some((line) => line.startsWith("container_cpu_cfs_periods_total"))).toBe(false);
    expect(lines.find((line) => line.startsWith("container_spec_memory_limit_bytes"))).toEndWith("} 0");
  });
});
