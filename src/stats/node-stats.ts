import type { Summary } from "../base/api/stats-summary.ts";
import type { FileSlot } from "../base/concurrency/worker-pool.ts";
import { meminfoBytes, parseBootTimeSeconds, parseDefaultInterface, parseTaskCount } from "../base/host/proc.ts";
import type { Clock } from "../base/model/clock.ts";
import type { OtherContainer } from "../base/model/container-engine.ts";
import type { NodeSignals } from "../base/model/node.ts";
import { singleValue } from "./cgroups/cgroup-figures.ts";
import { CgroupReader } from "./cgroups/cgroup-reader.ts";
import { readText } from "./cgroups/kernel-files.ts";
import {
  Capacities,
  type DirectoryUsage,
  DiskUsage,
  type FsCapacity,
  type MeasureDirectories,
  podDirectories,
  podFileSystems,
  readCapacity,
} from "./disk-usage.ts";
import { labelText, type Metric, metricsOf, metricsText, type TextFormat } from "./metrics/metric.ts";
import type { PodFacts } from "./pod-facts.ts";
import {
  logDirectory,
  type MeasuredCgroup,
  measuredCgroups,
  type NodeSample,
  Sampler,
  type SystemCgroupOptions,
  toSystemCgroups,
} from "./sampler.ts";
import { type SummaryFacts, toSummary } from "./summary.ts";

/** Directories that describe the machine; others in tests. */
export interface MachineRoots {
  proc: string;
  sys: string;
  /** For machine-id. */
  etc: string;
}

export const MACHINE_ROOTS: MachineRoots = { proc: "/proc", sys: "/sys", etc: "/etc" };

/** The measured parts of a container engine. */
export interface MeasuredEngine {
  /** `imagesDir`: directory of images and writable layers; `serverVersion`: e.g. `20.10.24`. undefined until it is known. */
  readonly infoIfKnown: { imagesDir: string; serverVersion: string } | undefined;
  /** `bytes`: of all images, up to a minute old. */
  readonly images: { inventory(): Promise<{ bytes: number }> };
  /** Running containers that are not ours. Called on demand. */
  readonly others: {
    /** @param isCurrent whether the process of one that is known is still its own */
    list(isCurrent: (container: OtherContainer) => boolean, signal: AbortSignal): Promise<OtherContainer[]>;
  };
}

interface NodeStatsSettings extends SystemCgroupOptions {
  /** The kubelet's root directory: its file system is the node's. */
  rootDir: string;
  /** Shortest time between two scans of disk usage (`--volume-stats-agg-period`). */
  volumeStatsAggPeriodMs: number;
  /** Names of metrics that {@link NodeStats.resourceMetrics} leaves out. */
  disabledMetrics: readonly string[];
}

export interface NodeStatsDeps {
  clock: Clock;
  nodeName: string;
  /** Asked at each sample; reads memory only. */
  view: { podFacts(): readonly PodFacts[] };
  engine: MeasuredEngine;
  settings: NodeStatsSettings;
  slot: FileSlot;
  /** For tests. */
  roots?: MachineRoots;
  measureDirectories?: MeasureDirectories;
}

const OTHERS_AGE_MS = 5_000;
/** An engine that does not answer by then leaves the containers that are known. */
const OTHERS_WITHIN_MS = 1_000;
/** Time between the two samples after a pause: a multiple of the kernel's throttling period, which a throttled container must show. */
const COLD_WINDOW_MS = 300;

/** The measurements of this node. Measures on demand. */
export class NodeStats {
  readonly reader: CgroupReader;
  readonly #deps: NodeStatsDeps;
  readonly clock: Clock;
  readonly settings: NodeStatsSettings;
  readonly roots: MachineRoots;
  readonly sampler: Sampler;
  readonly disk: DiskUsage;
  readonly capacities: Capacities;
  #imageBytes: number | undefined;
  #others: { read: Promise<void>; readMs: number } | undefined;
  #warmUp: Promise<void> | undefined;

  constructor(deps: NodeStatsDeps) {
    const { clock, view, settings, slot, roots = MACHINE_ROOTS, measureDirectories } = deps;
    this.#deps = deps;
    this.clock = clock;
    this.settings = settings;
    this.roots = roots;
    this.reader = new CgroupReader(roots.proc);
    const keepsFilesOpen = roots === MACHINE_ROOTS;
    this.sampler = new Sampler(this.reader, clock, view, roots.proc, toSystemCgroups(settings), keepsFilesOpen);
    this.capacities = new Capacities(clock, (path) => readCapacity(path, slot));
    this.disk = new DiskUsage(clock, settings.volumeStatsAggPeriodMs, slot, measureDirectories);
  }

  /** Directory of images and writable layers; "" until the engine is known. */
  get imagesDir(): string {
    return this.#deps.engine.infoIfKnown?.imagesDir ?? "";
  }

  /** e.g. `20.10.24`; "" until the engine is known. */
  get engineVersion(): string {
    return this.#deps.engine.infoIfKnown?.serverVersion ?? "";
  }

  /** Everything measured now, with CPU rates: the first caller after a pause waits 300 ms for them, others do not. */
  async sampleWithRates(detail: "basics" | "all" = "basics"): Promise<NodeSample> {
    if (detail === "all") await this.refreshOthers();
    if (this.sampler.isCold(detail) && !this.#warmUp) {
      this.#warmUp = this.#warm(detail).finally(() => {
        this.#warmUp = undefined;
      });
    }
    await this.#warmUp;
    return this.sampler.sample(detail);
  }

  async summary(onlyCpuAndMemory: boolean): Promise<Summary> {
    const [sample] = await Promise.all([this.sampleWithRates(), this.refreshCapacities()]);
    return toSummary(sample, this.#summaryFacts(sample, onlyCpuAndMemory), onlyCpuAndMemory);
  }

  resourceMetrics(format: TextFormat): string {
    const metrics = resourceMetrics(this.sampler.sample("basics"));
    const enabled = metrics.filter(({ name }) => !this.settings.disabledMetrics.includes(name));
    return [...metricsText(enabled, format)].join("");
  }

  /** Brings the capacities of the root directory and of the engine's up to date. Resolves within a second. */
  async refreshCapacities(): Promise<void> {
    await this.capacities.refresh([this.settings.rootDir, this.imagesDir]);
  }

  /** Brings the list of containers that are not ours up to date, for samples with all details. Resolves within a second. */
  async refreshOthers(): Promise<void> {
    const nowMs = this.clock.monotonicMs();
    if (!this.#others || nowMs - this.#others.readMs > OTHERS_AGE_MS) {
      this.#others = { read: this.#readOthers(), readMs: nowMs };
    }
    await this.#others.read;
  }

  async #readOthers(): Promise<void> {
    const { others } = this.#deps.engine;
    const stop = new AbortController();
    const cancel = this.clock.schedule(OTHERS_WITHIN_MS, () => stop.abort());
    try {
      const isCurrent = (other: OtherContainer) => this.reader.ofContainer(other) !== undefined;
      this.sampler.others = (await others.list(isCurrent, stop.signal)).filter(isCurrent);
    } catch {
      // The engine is unreachable, which is reported elsewhere: those that ended are known by their cgroups.
    } finally {
      cancel();
    }
  }

  /** Signals of the pressure conditions, with the last known capacities. */
  signals(): NodeSignals {
    const { proc } = this.roots;
    const workingSet = this.#readRootWorkingSet();
    const memory = meminfoBytes(readText(`${proc}/meminfo`) ?? "", "MemTotal");
    const [node, image] = [this.settings.rootDir, this.imagesDir].map((path) =>
      path ? this.capacities.last(path) : undefined,
    );
    const most = [readText(`${proc}/sys/kernel/pid_max`), readText(`${proc}/sys/kernel/threads-max`)]
      .map(singleValue)
      .filter((number) => number !== undefined);
    const tasks = parseTaskCount(readText(`${proc}/loadavg`) ?? "");
    return {
      ...(memory !== undefined &&
        workingSet !== undefined && {
          "memory.available": { capacity: memory, available: memory - workingSet },
        }),
      ...fsSignals("nodefs", node),
      ...fsSignals("imagefs", image),
      ...(most.length > 0 &&
        tasks !== undefined && {
          "pid.available": { capacity: Math.min(...most), available: Math.min(...most) - tasks },
        }),
    };
  }

  /** Reads the root cgroup alone, because this is called every ten seconds. */
  #readRootWorkingSet(): number | undefined {
    const root = this.reader.ofPath("/");
    return this.reader.read(root, "basics", { hasQuota: false, kind: "group" })?.memory.workingSetBytes;
  }

  /** Disk usage on `/metrics`: container logs, and volumes behind a claim; starts a scan when it is due. Source: kubelet's log and volume stats collectors. */
  diskMetrics(): Metric[] {
    const pods = this.#deps.view.podFacts();
    const disk = this.diskUsage();
    const containers = pods.flatMap((pod) => pod.containers.map((container) => ({ pod, container })));
    // A claim may belong to several pods.
    const claims = new Map(
      pods.flatMap(({ namespace, volumes }) =>
        volumes.flatMap(({ path, pvcName: claim }) => {
          const labels = labelText(["namespace", "persistentvolumeclaim"], [namespace, claim]);
          return claim === undefined ? [] : [[labels, disk.get(path)] as const];
        }),
      ),
    );
    const log = metricsOf(containers, ({ pod, container }) =>
      labelText(["uid", "namespace", "pod", "container"], [pod.uid, pod.namespace, pod.name, container.name]),
    );
    const ofClaim = metricsOf([...claims], ([labels]) => labels);
    const volume = (name: string, help: string, value: (usage: DirectoryUsage) => number | undefined) =>
      ofClaim("gauge", `kubelet_volume_stats_${name}`, `[ALPHA] ${help}`, ([, usage]) => usage && value(usage));
    return [
      log(
        "gauge",
        "kubelet_container_log_filesystem_used_bytes",
        "[ALPHA] Bytes used by the container's logs on the filesystem.",
        ({ container }) => disk.get(logDirectory(container))?.usedBytes,
      ),
      volume("available_bytes", "Number of available bytes in the volume", ({ fs }) => fs?.availableBytes),
      volume("capacity_bytes", "Capacity in bytes of the volume", ({ fs }) => fs?.capacityBytes),
      volume("inodes", "Maximum number of inodes in the volume", ({ fs }) => fs?.inodes),
      volume("inodes_free", "Number of free inodes in the volume", ({ fs }) => fs?.inodesFree),
      volume("inodes_used", "Number of used inodes in the volume", ({ inodesUsed }) => inodesUsed),
      volume("used_bytes", "Number of used bytes in the volume", ({ usedBytes }) => usedBytes),
    ];
  }

  /** Usage of the directories of these pods (default: all), of the last scan; starts one when it is due. */
  diskUsage(pods = this.#deps.view.podFacts()): ReadonlyMap<string, DirectoryUsage> {
    const directories = podDirectories(pods, ({ isFileSystem }) => !isFileSystem);
    return this.disk.ask(directories, podFileSystems(pods));
  }

  async #warm(detail: "basics" | "all"): Promise<void> {
    this.sampler.sampleNow(detail);
    this.diskUsage();
    this.#lastImageBytes();
    await this.clock.sleep(COLD_WINDOW_MS);
    this.sampler.sampleNow(detail);
  }

  #summaryFacts({ pods }: NodeSample, onlyCpuAndMemory: boolean): SummaryFacts {
    const { imagesDir } = this;
    const { proc } = this.roots;
    const text = (name: string) => readText(`${proc}/${name}`) ?? "";
    const meminfo = text("meminfo");
    return {
      nodeName: this.#deps.nodeName,
      bootTime: new Date((parseBootTimeSeconds(text("stat")) ?? 0) * 1000),
      memoryCapacityBytes: meminfoBytes(meminfo, "MemTotal") ?? 0,
      swapCapacityBytes: meminfoBytes(meminfo, "SwapTotal") ?? 0,
      defaultInterface: parseDefaultInterface(text("net/route")) ?? "eth0",
      nodeFs: this.capacities.last(this.settings.rootDir),
      imageFs: imagesDir ? this.capacities.last(imagesDir) : undefined,
      imageBytes: onlyCpuAndMemory ? undefined : this.#lastImageBytes(),
      maxPid: singleValue(text("sys/kernel/pid_max")),
      taskCount: parseTaskCount(text("loadavg")),
      disk: onlyCpuAndMemory ? new Map() : this.diskUsage(pods.map(({ facts }) => facts)),
    };
  }

  /** The last known size; asks again in the background. */
  #lastImageBytes(): number | undefined {
    this.#deps.engine.images.inventory().then(
      ({ bytes }) => {
        this.#imageBytes = bytes;
      },
      // The engine is unreachable, which is reported elsewhere: the figure stays as it was.
      () => {},
    );
    return this.#imageBytes;
  }
}

function fsSignals(name: "nodefs" | "imagefs", fs: FsCapacity | undefined): NodeSignals {
  if (!fs) return {};
  return {
    [`${name}.available`]: { capacity: fs.capacityBytes, available: fs.availableBytes },
    // Where inodes are made as needed there is nothing to run out of.
    ...(fs.inodes > 0 && { [`${name}.inodesFree`]: { capacity: fs.inodes, available: fs.inodesFree } }),
  };
}

/** `/metrics/resource`: CPU and memory of node, pods and containers. Source: kubelet 1.20; start times and swap of newer ones. */
function resourceMetrics(sample: NodeSample): Metric[] {
  const all = measuredCgroups(sample);
  const of = (isOne: (row: MeasuredCgroup) => unknown) => metricsOf(all.filter(isOne), labelsOf, sample.at);
  const container = of((row) => row.pod && row.container && !row.isSandbox);
  const node = of(({ isRoot }) => isRoot);
  const pod = of((row) => row.pod && !row.container);
  const cpuSeconds = ({ cgroup }: MeasuredCgroup) => cgroup.stats.cpu.usageNanoseconds / 1e9;
  const workingSet = ({ cgroup }: MeasuredCgroup) => cgroup.stats.memory.workingSetBytes;
  const swap = ({ cgroup }: MeasuredCgroup) => cgroup.stats.memory.swapBytes;
  const cpuHelp = (whose: string) => `[ALPHA] Cumulative cpu time consumed by the ${whose} in core-seconds`;
  const memoryHelp = (whose: string) => `[ALPHA] Current working set of the ${whose} in bytes`;
  const swapHelp = (text: string) => `[ALPHA] Current ${text} in bytes. Reported only on non-windows systems`;
  return [
    container("counter", "container_cpu_usage_seconds_total", cpuHelp("container"), cpuSeconds),
    container("gauge", "container_memory_working_set_bytes", memoryHelp("container"), workingSet),
    container(
      "gauge",
      "container_start_time_seconds",
      "[ALPHA] Start time of the container since unix epoch in seconds",
      (row) => row.container && row.container.facts.startedAt.getTime() / 1000,
    ),
    container("gauge", "container_swap_usage_bytes", swapHelp("amount of the container swap usage"), swap),
    node("counter", "node_cpu_usage_seconds_total", cpuHelp("node"), cpuSeconds),
    node("gauge", "node_memory_working_set_bytes", memoryHelp("node"), workingSet),
    node("gauge", "node_swap_usage_bytes", swapHelp("swap usage of the node"), swap),
    pod("counter", "pod_cpu_usage_seconds_total", cpuHelp("pod"), cpuSeconds),
    pod("gauge", "pod_memory_working_set_bytes", memoryHelp("pod"), workingSet),
    pod("gauge", "pod_swap_usage_bytes", swapHelp("amount of the pod swap usage"), swap),
    metricsOf([sample.root ? 0 : 1], () => "")(
      "gauge",
      "scrape_error",
      "[ALPHA] 1 if there was an error while getting container metrics, 0 otherwise",
      (error) => error,
    ),
  ];
}

function labelsOf({ pod, container }: MeasuredCgroup): string {
  if (!pod) return "";
  const { namespace, name } = pod.facts;
  if (!container) return labelText(["namespace", "pod"], [namespace, name]);
  return labelText(["container", "namespace", "pod"], [container.facts.name, namespace, name]);
}
