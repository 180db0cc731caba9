import { statfsSync } from "node:fs";
import type { MachineInfo } from "../api/machine-info.ts";
import type { Summary } from "../api/stats-summary.ts";
import type { CadvisorFacts, NodeFilesystem } from "../cadvisor/cadvisor-facts.ts";
import { CadvisorPage } from "../cadvisor/cadvisor-metrics.ts";
import {
  MACHINE_ROOTS,
  type MachineRoots,
  type MountedFilesystem,
  parseFilesystems,
  readMachineInfo,
} from "../cadvisor/machine-info.ts";
import { CgroupReader } from "../cgroups/cgroup-reader.ts";
import { meminfoBytes } from "../cgroups/cgroup-v2.ts";
import { parseBootTimeSeconds, parseDefaultInterface, parseDiskstats, parseTaskCount } from "../cgroups/proc.ts";
import { readText } from "../cgroups/read-text.ts";
import type { MetricFamily } from "../metrics/metrics-registry.ts";
import type { TextFormat } from "../metrics/prometheus-text.ts";
import { resourceText } from "../metrics/resource-metrics.ts";
import type { Clock } from "../model/clock.ts";
import type { NodeSignals } from "../model/node-signals.ts";
import { OLDEST_BASE_MS } from "./cpu-rate.ts";
import { diskFamilies } from "./disk-metrics.ts";
import { type DirectoryUsage, DiskUsage, type FsCapacity, toCapacity } from "./disk-usage.ts";
import { Foresight } from "./foresight.ts";
import type { MeasureDirectories } from "./measure-by-du.ts";
import type { PodFacts } from "./pod-facts.ts";
import { type CgroupSample, type NodeSample, Sampler } from "./sampler.ts";
import { type SummaryFacts, summaryDirectories, toSummary } from "./summary.ts";

/** What the statistics need to be told. */
export interface NodeStatsOptions {
  clock: Clock;
  nodeName: string;
  /** Asked at each sample; answered from memory. */
  podFacts: () => readonly PodFacts[];
  /** The kubelet's root directory: its file system is the node's. */
  rootDir: string;
  /** Where images and what containers write lie; "" while the engine has not answered yet. */
  imagesDir: () => string;
  /** e.g. `20.10.24`; "" while not known. */
  engineVersion: () => string;
  /** Shortest time between two looks at disk usage (`--volume-stats-agg-period`). */
  volumeStatsAggPeriodMs: number;
  /** Bytes of all images. Asked at most once a minute, and only while somebody asks for a summary. */
  readImageBytes?: () => Promise<number | undefined>;
  /** For tests. */
  roots?: MachineRoots;
  measureDirectories?: MeasureDirectories;
}

/** The machine is described anew after this: disks and interfaces come and go. */
const MACHINE_INFO_AGE_MS = 60_000;
const IMAGE_BYTES_AGE_MS = 60_000;
/**
 * Apart of the two samples taken when nobody asked for a while. A multiple of the kernel's throttling period of 100 ms,
 * so that a throttled container shows its true average.
 */
const COLD_WINDOW_MS = 300;

/**
 * The measurements of this node. Works only while asked: no timer, no open file without a question in the last 90 s. Who
 * asks at regular intervals finds the answer made, half a second before.
 */
export class NodeStats {
  readonly reader: CgroupReader;
  readonly #options: NodeStatsOptions;
  readonly #roots: MachineRoots;
  readonly #sampler: Sampler;
  readonly #disk: DiskUsage;
  #machine: { info: MachineInfo; readMs: number } | undefined;
  #mounts: { filesystems: readonly MountedFilesystem[]; readMs: number } | undefined;
  readonly #cadvisorPages = new Map<TextFormat, CadvisorPage>();
  readonly #summaries = new WeakMap<NodeSample, Map<boolean, Summary>>();
  /** By question. */
  readonly #foresights = new Map<string, Foresight>();
  #pagesAskedMs = Number.NEGATIVE_INFINITY;
  #cancelRelease: (() => void) | undefined;
  #imageBytes: { bytes: number | undefined; readMs: number } | undefined;
  #warmUp: Promise<void> | undefined;

  constructor(options: NodeStatsOptions) {
    this.#options = options;
    this.#roots = options.roots ?? MACHINE_ROOTS;
    this.reader = new CgroupReader(this.#roots.proc);
    this.#sampler = new Sampler(this.reader, options.clock, options.podFacts, this.#roots.proc);
    this.#disk = new DiskUsage(options.clock, options.volumeStatsAggPeriodMs, options.measureDirectories);
  }

  machineInfo(): MachineInfo {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#machine || nowMs - this.#machine.readMs > MACHINE_INFO_AGE_MS) {
      this.#machine = { info: readMachineInfo(this.#roots), readMs: nowMs };
    }
    return this.#machine.info;
  }

  /** Everything measured now, with CPU rates: the first asker after a pause waits 300 ms for them, the others do not. */
  async sampleWithRates(detail: "basics" | "all" = "basics"): Promise<NodeSample> {
    if (this.#sampler.isCold && !this.#warmUp) {
      this.#warmUp = this.#warm(detail).finally(() => {
        this.#warmUp = undefined;
      });
    }
    await this.#warmUp;
    return this.#sampler.sample(detail);
  }

  /** Everything measured now; CPU rates only if there was a sample before. */
  sample(detail: "basics" | "all"): NodeSample {
    return this.#sampler.sample(detail);
  }

  /** The one before; undefined when there is none with this detail. */
  previousSample(detail: "basics" | "all"): NodeSample | undefined {
    return this.#sampler.previous(detail);
  }

  /** Any one cgroup, ours or not; undefined when there is none of that path. */
  measureOnce(cgroupPath: string): CgroupSample | undefined {
    return this.#sampler.measureOnce(cgroupPath);
  }

  /** Nobody may change what it answers. */
  async summary(onlyCpuAndMemory: boolean): Promise<Summary> {
    const summarize = (sample: NodeSample) => {
      const made = this.#summaries.get(sample) ?? new Map<boolean, Summary>();
      this.#summaries.set(sample, made);
      const summary =
        made.get(onlyCpuAndMemory) ?? toSummary(sample, this.#summaryFacts(sample, onlyCpuAndMemory), onlyCpuAndMemory);
      made.set(onlyCpuAndMemory, summary);
      return summary;
    };
    this.#foresee(`summary ${onlyCpuAndMemory}`, () => summarize(this.#sampler.sample("basics")));
    return summarize(await this.sampleWithRates());
  }

  /** Hands the page to `use`, which may read it until its promise is settled, and change nothing. */
  async cadvisorMetrics<T>(format: TextFormat, use: (page: Uint8Array<ArrayBuffer>) => Promise<T>): Promise<T> {
    const page = this.#cadvisorPages.get(format) ?? new CadvisorPage(format);
    this.#cadvisorPages.set(format, page);
    this.#pagesAskedMs = this.#options.clock.monotonicMs();
    this.#cancelRelease ??= this.#releasePagesLater();
    const factsOf = (sample: NodeSample) => () => this.cadvisorFacts(sample.pods.map(({ facts }) => facts));
    this.#foresee(`cadvisor ${format}`, () => {
      const sample = this.#sampler.sample("all");
      this.#cadvisorPages.get(format)?.render(sample, factsOf(sample));
    });
    const sample = this.#sampler.sample("all");
    return page.read(sample, factsOf(sample), use);
  }

  /** Notes a question, of which `prepare` makes the answer. */
  #foresee(question: string, prepare: () => void): void {
    let foresight = this.#foresights.get(question);
    if (!foresight) {
      foresight = new Foresight(this.#options.clock, prepare);
      this.#foresights.set(question, foresight);
    }
    foresight.asked();
  }

  /** Pages are megabytes: none is kept once nobody asks. */
  #releasePagesLater(): () => void {
    const { clock } = this.#options;
    return clock.schedule(OLDEST_BASE_MS, () => {
      const isAsked = clock.monotonicMs() - this.#pagesAskedMs < OLDEST_BASE_MS;
      this.#cancelRelease = isAsked ? this.#releasePagesLater() : undefined;
      if (!isAsked) this.#cadvisorPages.clear();
    });
  }

  async resourceMetrics(format: TextFormat): Promise<string> {
    this.#foresee("resource", () => this.#sampler.sample("basics"));
    return resourceText(this.#sampler.sample("basics"), format);
  }

  /** What cAdvisor's answers show beside a sample. */
  cadvisorFacts(pods = this.#options.podFacts()): CadvisorFacts {
    const { proc, etc } = this.#roots;
    const mounts = this.#mountedFilesystems();
    const disks = parseDiskstats(readText(`${proc}/diskstats`) ?? "");
    const filesystems = mounts.flatMap(({ device, mountPoint, id }): NodeFilesystem[] => {
      const capacity = device.includes(":/") ? undefined : capacityOf(mountPoint);
      const counters = disks.find((disk) => `${disk.major}:${disk.minor}` === id);
      return capacity ? [{ device, mountPoint, capacity, counters }] : [];
    });
    const imagesDir = this.#options.imagesDir();
    const engineCapacity = imagesDir ? capacityOf(imagesDir) : undefined;
    const engineDevice = deviceOf(imagesDir, mounts);
    return {
      machine: this.machineInfo(),
      engineVersion: this.#options.engineVersion(),
      kernelVersion: readText(`${proc}/sys/kernel/osrelease`)?.trim() ?? "",
      osVersion: /^PRETTY_NAME="?([^"\n]*)/m.exec(readText(`${etc}/os-release`) ?? "")?.[1] ?? "",
      disk: this.#askDisk(pods),
      engineFs: engineCapacity && engineDevice ? { device: engineDevice, capacity: engineCapacity } : undefined,
      filesystems,
      nodeFs: capacityOf(this.#options.rootDir),
    };
  }

  /** With a hundred pods the kernel has hundreds of mounts to tell of, and writing them out takes it milliseconds. */
  #mountedFilesystems(): readonly MountedFilesystem[] {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.#mounts || nowMs - this.#mounts.readMs > MACHINE_INFO_AGE_MS) {
      const mountinfo = readText(`${this.#roots.proc}/self/mountinfo`) ?? "";
      this.#mounts = { filesystems: parseFilesystems(mountinfo), readMs: nowMs };
    }
    return this.#mounts.filesystems;
  }

  /** What the pressure conditions look at. */
  signals(): NodeSignals {
    const { rootDir, imagesDir } = this.#options;
    const { proc } = this.#roots;
    const workingSet = this.#readRootWorkingSet();
    const memory = meminfoBytes(readText(`${proc}/meminfo`) ?? "", "MemTotal");
    const [node, image] = [capacityOf(rootDir), imagesDir() ? capacityOf(imagesDir()) : undefined];
    const most = [readText(`${proc}/sys/kernel/pid_max`), readText(`${proc}/sys/kernel/threads-max`)]
      .map((text) => numberOrUndefined(text ?? ""))
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

  /** Of the root alone: this is asked every ten seconds, whoever else asks for nothing. */
  #readRootWorkingSet(): number | undefined {
    const root = this.reader.open(this.reader.ofPath("/"));
    const stats = root.read("basics", { hasQuota: false, kind: "group" });
    root.close();
    return stats?.memory.workingSetBytes;
  }

  /** Families of `/metrics` about disk usage, of the last look; starts one when it is due. */
  diskFamilies(): MetricFamily[] {
    return diskFamilies(this.#options.podFacts(), this.#askDisk());
  }

  /** Resolves when no look at disk usage is under way. */
  async settled(): Promise<void> {
    await this.#disk.settled();
  }

  /** Lets go of open files; a later question opens them again. */
  close(): void {
    this.#cancelRelease?.();
    this.#cancelRelease = undefined;
    this.#cadvisorPages.clear();
    for (const foresight of this.#foresights.values()) foresight.cancel();
    this.#sampler.close();
  }

  #askDisk(pods = this.#options.podFacts()): ReadonlyMap<string, DirectoryUsage> {
    return this.#disk.ask(summaryDirectories(pods));
  }

  async #warm(detail: "basics" | "all"): Promise<void> {
    this.#sampler.sampleNow(detail);
    this.#askDisk();
    this.#lastImageBytes();
    await this.#options.clock.sleep(COLD_WINDOW_MS);
    this.#sampler.sampleNow(detail);
  }

  #summaryFacts({ pods }: NodeSample, onlyCpuAndMemory: boolean): SummaryFacts {
    const { nodeName, rootDir } = this.#options;
    const { proc } = this.#roots;
    const text = (name: string) => readText(`${proc}/${name}`) ?? "";
    const meminfo = text("meminfo");
    const imagesDir = this.#options.imagesDir();
    return {
      nodeName,
      bootTime: new Date((parseBootTimeSeconds(text("stat")) ?? 0) * 1000),
      memoryCapacityBytes: meminfoBytes(meminfo, "MemTotal") ?? 0,
      swapCapacityBytes: meminfoBytes(meminfo, "SwapTotal") ?? 0,
      defaultInterface: parseDefaultInterface(text("net/route")) ?? "eth0",
      nodeFs: capacityOf(rootDir),
      imageFs: imagesDir ? capacityOf(imagesDir) : undefined,
      imageBytes: onlyCpuAndMemory ? undefined : this.#lastImageBytes(),
      maxPid: numberOrUndefined(text("sys/kernel/pid_max")),
      taskCount: parseTaskCount(text("loadavg")),
      disk: onlyCpuAndMemory ? new Map() : this.#askDisk(pods.map(({ facts }) => facts)),
    };
  }

  /** What was last known; asks the engine again in the background when that is old. */
  #lastImageBytes(): number | undefined {
    const { readImageBytes, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const last = this.#imageBytes;
    if (readImageBytes && (!last || nowMs - last.readMs > IMAGE_BYTES_AGE_MS)) {
      this.#imageBytes = { bytes: last?.bytes, readMs: nowMs };
      readImageBytes().then(
        (bytes) => {
          this.#imageBytes = { bytes, readMs: nowMs };
        },
        // The engine is away: the figure stays as it was, and somebody else reports that.
        () => {},
      );
    }
    return last?.bytes;
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

/** undefined when there is no such directory. */
function capacityOf(path: string): FsCapacity | undefined {
  try {
    return toCapacity(statfsSync(path));
  } catch {
    return undefined;
  }
}

/** Device of the mount a path is on. */
function deviceOf(path: string, mounts: readonly MountedFilesystem[]): string | undefined {
  const candidates = mounts.filter(
    ({ mountPoint }) => mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`),
  );
  return candidates.toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0]?.device;
}

function numberOrUndefined(text: string): number | undefined {
  const number = Number(text.trim());
  return text.trim() === "" || Number.isNaN(number) ? undefined : number;
}
