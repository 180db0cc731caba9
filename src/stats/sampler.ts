import { type InterfaceCounters, type ProcessCounts, parseNetDev } from "../base/host/proc.ts";
import type { Clock } from "../base/model/clock.ts";
import type { OtherContainer } from "../base/model/container-engine.ts";
import type { Logger } from "../base/model/logger.ts";
import type { CgroupSpec, CgroupStats } from "./cgroups/cgroup-figures.ts";
import { type CgroupDirectories, mainDirectory, parentDirectories } from "./cgroups/cgroup-layout.ts";
import type { CgroupKind, CgroupReader, Detail } from "./cgroups/cgroup-reader.ts";
import { KeptFiles, readText } from "./cgroups/kernel-files.ts";
import type { ContainerFacts, PodFacts } from "./pod-facts.ts";

export interface CgroupSample {
  /** Path below the root of its hierarchy, e.g. `/kubepods/burstable/pod<uid>/<container id>`. */
  path: string;
  stats: CgroupStats;
  /** Average over the last 10 s and more; undefined until there are two readings. */
  usageNanoCores: number | undefined;
  createdAt: Date;
  /** Up to a minute old, or older on a big node. */
  spec: CgroupSpec;
  openFilesLimit: { soft: number; hard: number } | undefined;
  /** Only with detail `all`. */
  processes: ProcessCounts | undefined;
  /** Smoothed number of tasks that ran or waited for a disk. */
  loadAverage: number;
}

export interface ContainerSample {
  facts: ContainerFacts;
  cgroup: CgroupSample;
}

export interface PodSample {
  facts: PodFacts;
  /** undefined when the pod's cgroup is gone already. */
  cgroup: CgroupSample | undefined;
  /** Only with detail `all`. */
  sandbox: ContainerSample | undefined;
  containers: ContainerSample[];
  /** Empty with host networking. */
  interfaces: readonly InterfaceCounters[];
}

/** A container of the engine that is not ours. Its facts have neither labels nor files. */
export interface OtherSample extends ContainerSample {
  /** Empty without a network of its own. */
  interfaces: readonly InterfaceCounters[];
}

/** Names of the Summary API for the cgroups of `--kubelet-cgroups`, `--runtime-cgroups` and `--system-cgroups`. */
type SystemContainerName = "kubelet" | "runtime" | "misc";

export interface SystemCgroupOptions {
  kubeletCgroups: string;
  runtimeCgroups: string;
  systemCgroups: string;
}

const FLAGS: readonly [SystemContainerName, keyof SystemCgroupOptions, string][] = [
  ["kubelet", "kubeletCgroups", "--kubelet-cgroups"],
  ["runtime", "runtimeCgroups", "--runtime-cgroups"],
  ["misc", "systemCgroups", "--system-cgroups"],
];

/** Cgroups of the system that options name, by their names in the summary. */
export const toSystemCgroups = (options: SystemCgroupOptions): ReadonlyMap<SystemContainerName, string> =>
  new Map(FLAGS.map(([name, option]) => [name, options[option]] as const).filter(([, path]) => path !== ""));

/** Names each cgroup of an option that does not exist: the summary has no such system container until it does. */
export function warnOfMissingCgroups(
  options: SystemCgroupOptions,
  exists: (cgroupPath: string) => boolean,
  logger: Logger,
): void {
  for (const [name, option, flag] of FLAGS) {
    const path = options[option];
    if (path === "" || exists(path)) continue;
    logger.warn(
      `${flag}: there is no cgroup "${path}"; /stats/summary has no systemContainers ${name} until it exists (cat /proc/PID/cgroup shows the cgroup of a process)`,
    );
  }
}

/** Everything measured at one instant. */
export interface NodeSample {
  detail: Detail;
  at: Date;
  root: CgroupSample | undefined;
  /** All pods together; undefined without pods. */
  kubepods: CgroupSample | undefined;
  /** Cgroups of the system that options name; one that does not exist is left out. */
  system: ReadonlyMap<SystemContainerName, CgroupSample>;
  /** Cgroups between `kubepods` and the pods; only with detail `all`. */
  groups: CgroupSample[];
  /** In the order of the facts. A container that is gone is left out. */
  pods: PodSample[];
  /** Only with detail `all`. */
  others: OtherSample[];
  interfaces: readonly InterfaceCounters[];
}

/** One cgroup of a sample with what it belongs to. */
export interface MeasuredCgroup {
  at: Date;
  cgroup: CgroupSample;
  isRoot: boolean;
  /** undefined for a cgroup that is not a container of one of our pods. */
  container: ContainerSample | undefined;
  /** Its container is a pod's sandbox. */
  isSandbox: boolean;
  /** The pod it belongs to, or is. */
  pod: PodSample | undefined;
  /** Interfaces of the node or of a sandbox; empty for cgroups without a network of their own. */
  interfaces: readonly InterfaceCounters[];
}

/** A cgroup that belongs to nothing known. */
export const toMeasuredCgroup = (cgroup: CgroupSample, at: Date): MeasuredCgroup => ({
  at,
  cgroup,
  isRoot: false,
  container: undefined,
  isSandbox: false,
  pod: undefined,
  interfaces: [],
});

/** Every cgroup of a sample: the node, the groups, the pods, their sandboxes and containers, containers that are not ours. */
export function measuredCgroups(sample: NodeSample): MeasuredCgroup[] {
  const found: MeasuredCgroup[] = [];
  const add = (cgroup: CgroupSample | undefined, more: Partial<MeasuredCgroup> = {}) => {
    if (cgroup) found.push({ ...toMeasuredCgroup(cgroup, sample.at), ...more });
  };
  add(sample.root, { isRoot: true, interfaces: sample.interfaces });
  for (const group of [sample.kubepods, ...sample.groups]) add(group);
  for (const pod of sample.pods) {
    const { sandbox, interfaces } = pod;
    add(pod.cgroup, { pod });
    add(sandbox?.cgroup, { pod, container: sandbox, isSandbox: true, interfaces });
    for (const container of pod.containers) add(container.cgroup, { pod, container });
  }
  for (const other of sample.others) add(other.cgroup, { container: other, interfaces: other.interfaces });
  return found;
}

/** The engine keeps a container's log in a directory of its own, with what it knows of the container. */
export const logDirectory = ({ logPath }: ContainerFacts) => logPath.slice(0, Math.max(0, logPath.lastIndexOf("/")));

/** Callers within this time receive the same numbers. */
const CACHE_MS = 1_000;
/** Older readings are not compared with: their average says nothing about the present use. */
const OLDEST_BASE_MS = 90_000;
/** Limits are read again after this, a few cgroups at each sample: all of a hundred pods take 40 ms. */
const SPEC_AGE_MS = 60_000;
const SPECS_PER_SAMPLE = 40;
/** Sockets of a container with more descriptors are not counted: ten thousand must not delay the supervision of pods. */
const MOST_DESCRIPTORS = 4_000;
/** The facts of a container that is not ours: neither labels nor files. */
const NOT_OURS = { name: "", labels: {}, logPath: "", writableLayerPath: "" };

/** One cgroup with what is remembered between samples. */
interface Tracked extends Pick<CgroupSample, "path" | "createdAt" | "spec" | "openFilesLimit" | "processes"> {
  directories: CgroupDirectories;
  /** Absent: they are opened for each read. */
  files?: KeptFiles;
  readings: CpuReading[];
  specReadMs: number;
  /** CPU time when they were counted: without more of it nothing was opened or started since. */
  processesAtUsage: number;
  load: number | undefined;
  loadReadMs: number;
  /** Number of the last sample that it was in. */
  lastSample: number;
}

/** Measures on demand. Files of cgroups are closed 90 to 180 s after the last sample; from then on no timer runs. */
export class Sampler {
  readonly #reader: CgroupReader;
  readonly #clock: Clock;
  readonly #view: { podFacts(): readonly PodFacts[] };
  readonly #systemCgroups: ReadonlyMap<SystemContainerName, string>;
  readonly #proc: string;
  /** Containers of the engine that are not ours, measured with detail `all`. */
  others: readonly OtherContainer[] = [];
  /** Key: names the cgroup over time. */
  readonly #tracked = new Map<string, Tracked>();
  #latest: NodeSample | undefined;
  /** The sample before the latest one, with all details, for clients that compute rates; undefined when it had only the basics. */
  previous: NodeSample | undefined;
  #latestMs = Number.NEGATIVE_INFINITY;
  #sampleCount = 0;
  readonly #keepsFilesOpen: boolean;
  #closesFiles = false;

  /** @param systemCgroups paths that are measured in addition, e.g. `/system.slice` */
  constructor(
    reader: CgroupReader,
    clock: Clock,
    view: { podFacts(): readonly PodFacts[] },
    procRoot = "/proc",
    systemCgroups: ReadonlyMap<SystemContainerName, string> = new Map(),
    keepsFilesOpen = false,
  ) {
    this.#reader = reader;
    this.#systemCgroups = systemCgroups;
    this.#clock = clock;
    this.#view = view;
    this.#proc = procRoot;
    this.#keepsFilesOpen = keepsFilesOpen;
  }

  /** true when the next sample cannot have CPU rates of a useful window: the last one is too old, or too young. */
  isCold(detail: Detail): boolean {
    const root = this.#latest?.root;
    const wanted = detail === "all" ? this.others : [];
    return (
      this.#isIdle ||
      (root !== undefined && root.usageNanoCores === undefined) ||
      wanted.some(({ id }) => (this.#tracked.get(id)?.readings.length ?? 0) < 2)
    );
  }

  measureOnce(cgroupPath: string): CgroupSample | undefined {
    const directories = this.#reader.ofPath(cgroupPath);
    const createdAt = this.#reader.createdAt(directories);
    if (!createdAt) return undefined;
    const spec = this.#reader.spec(directories);
    const hasQuota = spec.cpuQuotaMicroseconds !== undefined;
    const stats = this.#reader.read(directories, "all", { hasQuota, kind: "container" });
    const processes = stats && this.#reader.processCounts(stats.processIds, MOST_DESCRIPTORS);
    if (!stats) return undefined;
    const unknown = { usageNanoCores: undefined, openFilesLimit: undefined, loadAverage: 0 };
    return { path: cgroupPath, stats, createdAt, spec, processes, ...unknown };
  }

  /** The sample of this second, taken now unless there is one with at least this detail. */
  sample(detail: Detail): NodeSample {
    const latest = this.#latest;
    const isFresh = this.#clock.monotonicMs() - this.#latestMs < CACHE_MS;
    return latest && isFresh && (latest.detail === "all" || detail === "basics") ? latest : this.sampleNow(detail);
  }

  /** Takes a sample even if there is a fresh one. */
  sampleNow(detail: Detail): NodeSample {
    const nowMs = this.#clock.monotonicMs();
    const podFacts = this.#view.podFacts();
    const measure = this.#startSample(detail, nowMs);
    const root = measure("/", () => this.#reader.ofPath("/"), 1);
    const pods = podFacts.map((facts): PodSample => {
      const measureContainer = (container: ContainerFacts, kind: CgroupKind): ContainerSample | undefined => {
        const { id, pid } = container;
        const cgroup = pid > 0 ? measure(id, () => this.#reader.ofProcess(pid), pid, kind) : undefined;
        return cgroup && { facts: container, cgroup };
      };
      return {
        facts,
        containers: facts.containers.flatMap((container) => measureContainer(container, "container") ?? []),
        sandbox: detail === "all" ? measureContainer(facts.sandbox, "sandbox") : undefined,
        cgroup: measure(facts.uid, () => this.#podDirectories(facts)),
        interfaces: facts.hostNetwork ? [] : this.#interfaces(facts.sandbox.pid),
      };
    });
    const system = new Map<SystemContainerName, CgroupSample>();
    for (const [name, path] of this.#systemCgroups) {
      const cgroup = measure(`system ${name}`, () => this.#reader.ofPath(path));
      if (cgroup) system.set(name, cgroup);
    }
    const [kubepods, ...groups] = this.#podGroups(pods, detail).map(({ path, directories }) =>
      measure(path, () => directories),
    );
    const others = detail === "all" ? this.others : [];
    const otherSamples = others.flatMap((other): OtherSample[] => {
      const { id, pid } = other;
      const cgroup = measure(id, () => this.#reader.ofContainer(other), pid, "container");
      const interfaces = other.hasOwnNetwork ? this.#interfaces(pid) : [];
      return cgroup ? [{ facts: { ...other, ...NOT_OURS }, cgroup, interfaces }] : [];
    });
    const detailed = new Set([...podFacts.map(({ sandbox }) => sandbox), ...this.others].map(({ id }) => id));
    // A sample of basics reads neither sandboxes nor others nor groups, which the next one may.
    this.#forget((key) => detail === "all" || !(detailed.has(key) || key.startsWith("/")));
    this.previous = this.#isIdle || this.#latest?.detail !== "all" ? undefined : this.#latest;
    this.#latest = {
      detail,
      at: this.#clock.now(),
      root,
      kubepods,
      system,
      groups: groups.filter((group) => group !== undefined),
      pods,
      others: otherSamples,
      interfaces: this.#interfaces(1),
    };
    this.#latestMs = nowMs;
    this.#closeFilesLater();
    return this.#latest;
  }

  /** Empty when the process is gone, or was none (pid 0). */
  #interfaces(pid: number): readonly InterfaceCounters[] {
    return pid > 0 ? parseNetDev(readText(`${this.#proc}/${pid}/net/dev`) ?? "") : [];
  }

  /** Begins a sample. @returns measures one cgroup in it; undefined when the cgroup is gone */
  #startSample(detail: Detail, nowMs: number) {
    let specs = SPECS_PER_SAMPLE;
    this.#sampleCount++;
    /** @param key names the cgroup over time @param directories looked up when the key is new @param pid of its main process; 0: none */
    return (
      key: string,
      directories: () => CgroupDirectories | undefined,
      pid = 0,
      kind: CgroupKind = "group",
    ): CgroupSample | undefined => {
      const cgroup = this.#tracked.get(key) ?? this.#track(key, directories(), nowMs, pid);
      if (!cgroup) return undefined;
      if (nowMs - cgroup.specReadMs > SPEC_AGE_MS && specs-- > 0) {
        Object.assign(cgroup, this.#readLimits(cgroup.directories, nowMs, pid));
      }
      const hasQuota = cgroup.spec.cpuQuotaMicroseconds !== undefined;
      const stats = this.#reader.read(cgroup.directories, detail, { hasQuota, kind, files: cgroup.files });
      if (!stats) return undefined;
      cgroup.lastSample = this.#sampleCount;
      cgroup.readings = appendReading(cgroup.readings, { atMs: nowMs, usageNanoseconds: stats.cpu.usageNanoseconds });
      if (detail === "all") {
        // Not of the root: that would be every process of the machine.
        this.#countProcesses(cgroup, key === "/" ? { ...stats, processIds: [] } : stats, nowMs);
      }
      const { path, createdAt, spec, processes, load, openFilesLimit } = cgroup;
      return {
        path,
        stats,
        usageNanoCores: computeUsageNanoCores(cgroup.readings),
        createdAt,
        spec,
        processes: detail === "all" ? processes : undefined,
        loadAverage: load ?? 0,
        openFilesLimit,
      };
    };
  }

  /** Counts processes and descriptors, which costs more than all files of the cgroup. */
  #countProcesses(cgroup: Tracked, { cpu, processIds }: CgroupStats, nowMs: number): void {
    if (!cgroup.processes || cgroup.processesAtUsage !== cpu.usageNanoseconds) {
      cgroup.processes = this.#reader.processCounts(processIds, MOST_DESCRIPTORS);
      cgroup.processesAtUsage = cpu.usageNanoseconds;
    }
    const { running, uninterruptible } = cgroup.processes;
    cgroup.load = decayLoad(cgroup.load, nowMs - cgroup.loadReadMs, running + uninterruptible);
    cgroup.loadReadMs = nowMs;
  }

  #track(key: string, directories: CgroupDirectories | undefined, nowMs: number, pid: number): Tracked | undefined {
    const createdAt = directories && this.#reader.createdAt(directories);
    if (!directories || !createdAt) return undefined;
    const tracked: Tracked = {
      directories,
      ...(this.#keepsFilesOpen && { files: new KeptFiles() }),
      path: this.#reader.pathOf(directories),
      createdAt,
      readings: [],
      ...this.#readLimits(directories, nowMs, pid),
      processes: undefined,
      processesAtUsage: 0,
      load: undefined,
      loadReadMs: 0,
      lastSample: this.#sampleCount,
    };
    this.#tracked.set(key, tracked);
    return tracked;
  }

  #readLimits(directories: CgroupDirectories, nowMs: number, pid: number) {
    const openFilesLimit = pid > 0 ? this.#reader.openFilesLimit(pid) : undefined;
    return { spec: this.#reader.spec(directories), openFilesLimit, specReadMs: nowMs };
  }

  #forget(isForgotten: (key: string) => boolean): void {
    for (const [key, { files, lastSample }] of this.#tracked) {
      if (lastSample === this.#sampleCount || !isForgotten(key)) continue;
      files?.close();
      this.#tracked.delete(key);
    }
  }

  #closeFilesLater(): void {
    if (this.#closesFiles) return;
    this.#closesFiles = true;
    this.#clock.schedule(OLDEST_BASE_MS, () => {
      this.#closesFiles = false;
      if (this.#isIdle) for (const { files } of this.#tracked.values()) files?.close();
      else this.#closeFilesLater();
    });
  }

  /** The parent of the cgroup of its sandbox: right for both cgroup drivers, and inside a container. Without a process its name is all there is. */
  #podDirectories({ sandbox, containers, cgroupParent }: PodFacts): CgroupDirectories | undefined {
    const name = cgroupParent.slice(cgroupParent.lastIndexOf("/") + 1);
    if (name === "") return undefined;
    const pid = sandbox.pid || (containers.find((container) => container.pid > 0)?.pid ?? 0);
    const child = pid > 0 ? this.#reader.ofProcess(pid) : undefined;
    if (child && mainDirectory(child).includes(`/${name}/`)) return parentDirectories(child);
    return cgroupParent.startsWith("/") ? this.#reader.ofPath(cgroupParent) : undefined;
  }

  /** `kubepods` and, with detail `all`, the QoS cgroups below it, found by going up from the pods. */
  #podGroups(pods: readonly PodSample[], detail: Detail): { path: string; directories: CgroupDirectories }[] {
    const found = new Map<string, CgroupDirectories>();
    for (const pod of pods) {
      let directories = this.#tracked.get(pod.facts.uid)?.directories;
      if (!pod.cgroup || !directories) continue;
      let path = parentPath(pod.cgroup.path);
      while (path.length > 1 && /kubepods/.test(path) && !found.has(path)) {
        directories = parentDirectories(directories);
        found.set(path, directories);
        path = parentPath(path);
      }
    }
    const sorted = [...found].map(([path, directories]) => ({ path, directories }));
    sorted.sort((a, b) => a.path.length - b.path.length || (a.path < b.path ? -1 : 1));
    return detail === "all" ? sorted : sorted.slice(0, 1);
  }

  get #isIdle(): boolean {
    return this.#clock.monotonicMs() - this.#latestMs > OLDEST_BASE_MS;
  }
}

const parentPath = (path: string) => path.slice(0, path.lastIndexOf("/"));

/** One reading of a CPU counter. */
export interface CpuReading {
  /** Monotonic. */
  atMs: number;
  usageNanoseconds: number;
}

/** A rate is taken over at least this long when there are readings enough. */
const WINDOW_MS = 10_000;
/** Below this a rate is noise: the kernel accounts in steps of milliseconds, and throttles in periods of 100 ms. */
const SHORTEST_WINDOW_MS = 100;

/** The youngest reading that is at least 10 s older than `latest`, those after it, and `latest`. A counter that went back starts over. */
export function appendReading(readings: readonly CpuReading[], latest: CpuReading): CpuReading[] {
  const previous = readings.at(-1);
  if (previous && latest.usageNanoseconds < previous.usageNanoseconds) return [latest];
  const kept = readings.filter(({ atMs }) => latest.atMs - atMs <= OLDEST_BASE_MS);
  while (kept.length > 1 && latest.atMs - kept[1]!.atMs >= WINDOW_MS) kept.shift();
  return [...kept, latest];
}

/** Average CPU use over the kept readings, in nanoseconds per second; undefined until two are far enough apart. */
export function computeUsageNanoCores(readings: readonly CpuReading[]): number | undefined {
  const [first, last] = [readings[0], readings.at(-1)];
  if (!first || !last || last.atMs - first.atMs < SHORTEST_WINDOW_MS) return undefined;
  return Math.round(((last.usageNanoseconds - first.usageNanoseconds) / (last.atMs - first.atMs)) * 1000);
}

/** Tasks that ran or waited for a disk, smoothed over 10 s. Source: cAdvisor's `container_cpu_load_average_10s`, in thousandths. */
export function decayLoad(previous: number | undefined, elapsedMs: number, tasks: number): number {
  if (previous === undefined) return tasks;
  const decay = Math.exp(-elapsedMs / 10_000);
  return previous * decay + tasks * (1 - decay);
}
