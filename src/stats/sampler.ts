import { type CgroupDirectories, parentDirectories } from "../cgroups/cgroup-layout.ts";
import type { CgroupReader } from "../cgroups/cgroup-reader.ts";
import type { CgroupSpec, CgroupStats } from "../cgroups/cgroup-stats.ts";
import { NetDevReader } from "../cgroups/net-dev-reader.ts";
import { type CgroupKind, type Detail, mainDirectory, type OpenCgroup } from "../cgroups/open-cgroup.ts";
import type { InterfaceCounters, ProcessCounts } from "../cgroups/proc.ts";
import type { Clock } from "../model/clock.ts";
import { appendReading, type CpuReading, computeUsageNanoCores, decayLoad, OLDEST_BASE_MS } from "./cpu-rate.ts";
import type { ContainerFacts, PodFacts } from "./pod-facts.ts";

/** One cgroup at one instant. */
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
  /** Only with detail `all`. On a node with more than 60 containers some are those of the sample before. */
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

/** Names of the Summary API for the cgroups of `--kubelet-cgroups`, `--runtime-cgroups` and `--system-cgroups`. */
export type SystemContainerName = "kubelet" | "runtime" | "misc";

/** Everything measured at one instant. */
export interface NodeSample {
  detail: Detail;
  at: Date;
  root: CgroupSample | undefined;
  /** All pods together; undefined while there is none. */
  kubepods: CgroupSample | undefined;
  /** Cgroups of the system that options name; one that does not exist is left out. */
  system: ReadonlyMap<SystemContainerName, CgroupSample>;
  /** Cgroups between `kubepods` and the pods; only with detail `all`. */
  groups: CgroupSample[];
  /** In the order of the facts. A container that is gone is left out. */
  pods: PodSample[];
  /** Interfaces of the node. */
  interfaces: readonly InterfaceCounters[];
}

interface Tracked {
  cgroup: OpenCgroup;
  path: string;
  createdAt: Date;
  readings: CpuReading[];
  spec: CgroupSpec | undefined;
  openFilesLimit: { soft: number; hard: number } | undefined;
  specReadMs: number;
  /** When it was read whether at rest or not. */
  fullyReadMs: number;
  processes: ProcessCounts | undefined;
  /** The cgroup's readings when they were counted. */
  processesOf: CgroupStats | undefined;
  processesReadMs: number;
  /** Tells apart whose processes are counted in which sample. */
  turn: number;
  load: number | undefined;
  loadReadMs: number;
  seen: boolean;
}

/** Two askers within this see the same numbers. */
const CACHE_MS = 1_000;
/**
 * Descriptors looked at in one sample. A container with more than is left keeps its earlier counts: one with ten thousand
 * sockets must not hold up the supervision of pods.
 */
const DESCRIPTORS_PER_SAMPLE = 4_000;

interface Budget {
  specs: number;
  descriptors: number;
  /** Samples until every container's processes were counted. */
  rounds: number;
}

/** Containers whose processes are counted in one sample; on a node with more they take turns. */
const COUNTED_PER_SAMPLE = 60;
/** A pause process opens no files and starts no processes. */
const SANDBOX_COUNTS_AGE_MS = 60_000;

/** A cgroup at rest is read in full every so many samples, and after this anyway. */
const FULL_READING_ROUNDS = 4;
const FULL_READING_AGE_MS = 60_000;

/** Key of the network of process 1, next to the ids of sandboxes. */
const NODE_NETWORK = "/";

/** Limits are read again after this, a few cgroups at each sample. */
const SPEC_AGE_MS = 60_000;
const SPECS_PER_SAMPLE = 40;

/**
 * Measures the node, its pods and their containers on demand. No timer runs at rest; files are closed 90 s after the last
 * request.
 */
export class Sampler {
  readonly #reader: CgroupReader;
  readonly #clock: Clock;
  readonly #facts: () => readonly PodFacts[];
  readonly #systemCgroups: ReadonlyMap<SystemContainerName, string>;
  readonly #networks: NetDevReader;
  readonly #tracked = new Map<string, Tracked>();
  #latest: NodeSample | undefined;
  #previous: NodeSample | undefined;
  #latestMs = Number.NEGATIVE_INFINITY;
  #cancelRelease: (() => void) | undefined;
  #samples = 0;
  #turns = 0;

  /** @param systemCgroups paths that are measured in addition, e.g. `/system.slice` */
  constructor(
    reader: CgroupReader,
    clock: Clock,
    facts: () => readonly PodFacts[],
    procRoot = "/proc",
    systemCgroups: ReadonlyMap<SystemContainerName, string> = new Map(),
  ) {
    this.#reader = reader;
    this.#systemCgroups = systemCgroups;
    this.#clock = clock;
    this.#facts = facts;
    this.#networks = new NetDevReader(procRoot);
  }

  /** true when the next sample cannot have CPU rates of a useful window: the last one is too old, or too young. */
  get isCold(): boolean {
    const root = this.#latest?.root;
    return this.#isIdle || (root !== undefined && root.usageNanoCores === undefined);
  }

  /** The sample before the latest one, for clients that compute rates themselves; undefined when it was less than this detail. */
  previous(detail: Detail): NodeSample | undefined {
    return this.#previous?.detail === "all" || detail === "basics" ? this.#previous : undefined;
  }

  /** Any one cgroup, ours or not; undefined when there is none of that path. */
  measureOnce(cgroupPath: string): CgroupSample | undefined {
    const directories = this.#reader.ofPath(cgroupPath);
    const createdAt = this.#reader.createdAt(directories);
    if (!createdAt) return undefined;
    const cgroup = this.#reader.open(directories);
    const spec = this.#reader.spec(directories);
    const hasQuota = spec.cpuQuotaMicroseconds !== undefined;
    const stats = cgroup.read("all", { hasQuota, kind: "container" });
    const processes = stats && this.#reader.processCounts(stats.processIds, DESCRIPTORS_PER_SAMPLE);
    cgroup.close();
    if (!stats) return undefined;
    const unknown = { usageNanoCores: undefined, openFilesLimit: undefined, loadAverage: 0 };
    return { path: cgroupPath, stats, createdAt, spec, processes, ...unknown };
  }

  /** The sample of this second, taken now unless there is one with at least this detail. */
  sample(detail: Detail): NodeSample {
    const nowMs = this.#clock.monotonicMs();
    const latest = this.#latest;
    if (latest && nowMs - this.#latestMs < CACHE_MS && (latest.detail === "all" || detail === "basics")) return latest;
    return this.#take(detail, nowMs);
  }

  /** Takes a sample even if there is a fresh one. */
  sampleNow(detail: Detail): NodeSample {
    return this.#take(detail, this.#clock.monotonicMs());
  }

  /** Lets go of every open file. */
  close(): void {
    this.#cancelRelease?.();
    this.#cancelRelease = undefined;
    for (const { cgroup } of this.#tracked.values()) cgroup.close();
    this.#tracked.clear();
    this.#networks.close();
    this.#latest = undefined;
    this.#previous = undefined;
    this.#latestMs = Number.NEGATIVE_INFINITY;
  }

  #take(detail: Detail, nowMs: number): NodeSample {
    for (const tracked of this.#tracked.values()) tracked.seen = false;
    this.#samples++;
    const podFacts = this.#facts();
    const containerCount = podFacts.reduce((sum, { containers }) => sum + containers.length, 0);
    const budget: Budget = {
      specs: SPECS_PER_SAMPLE,
      descriptors: DESCRIPTORS_PER_SAMPLE,
      rounds: Math.max(1, Math.ceil(containerCount / COUNTED_PER_SAMPLE)),
    };
    const measure = (
      key: string,
      directories: () => CgroupDirectories | undefined,
      { pid = 0, kind = "group" }: { pid?: number; kind?: CgroupKind } = {},
    ) => this.#measure(key, directories, { detail, nowMs, pid, kind, budget });

    const root = measure("/", () => this.#reader.ofPath("/"));
    const pods = podFacts.map((facts): PodSample => {
      const measureContainer = (container: ContainerFacts, kind: CgroupKind): ContainerSample | undefined => {
        if (container.pid <= 0) return undefined;
        const cgroup = measure(container.id, () => this.#reader.ofProcess(container.pid), {
          pid: container.pid,
          kind,
        });
        return cgroup && { facts: container, cgroup };
      };
      const containers = facts.containers
        .map((container) => measureContainer(container, "container"))
        .filter((sample) => sample !== undefined);
      const interfaces = once(() =>
        facts.hostNetwork ? [] : this.#networks.read(facts.sandbox.id, facts.sandbox.pid),
      );
      if (detail === "all") interfaces();
      const sandbox = detail === "all" ? measureContainer(facts.sandbox, "sandbox") : undefined;
      this.#keep(facts.sandbox.id);
      return {
        facts,
        cgroup: measure(facts.uid, () => this.#podDirectories(facts)),
        sandbox,
        containers,
        get interfaces() {
          return interfaces();
        },
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
    if (detail === "basics") for (const key of this.#tracked.keys()) if (key.startsWith("/")) this.#keep(key);
    this.#forgetUnseen();
    this.#networks.retain(new Set([NODE_NETWORK, ...podFacts.map(({ sandbox }) => sandbox.id)]));
    this.#previous = this.#isIdle ? undefined : this.#latest;
    const interfaces = once(() => this.#networks.read(NODE_NETWORK, 1));
    if (detail === "all") interfaces();
    this.#latest = {
      detail,
      at: this.#clock.now(),
      root,
      kubepods,
      system,
      groups: groups.filter((group) => group !== undefined),
      pods,
      get interfaces() {
        return interfaces();
      },
    };
    this.#latestMs = nowMs;
    this.#releaseLater();
    return this.#latest;
  }

  #measure(
    key: string,
    directories: () => CgroupDirectories | undefined,
    how: { detail: Detail; nowMs: number; pid: number; kind: CgroupKind; budget: Budget },
  ): CgroupSample | undefined {
    const { detail, nowMs, pid, kind, budget } = how;
    const tracked = this.#tracked.get(key) ?? this.#track(key, directories());
    if (!tracked) return undefined;
    const stale = nowMs - tracked.specReadMs > SPEC_AGE_MS && budget.specs-- > 0;
    if (!tracked.spec || stale) {
      tracked.spec = this.#reader.spec(tracked.cgroup.directories);
      const ulimitPid = key === "/" ? 1 : pid;
      tracked.openFilesLimit = ulimitPid > 0 ? this.#reader.openFilesLimit(ulimitPid) : undefined;
      tracked.specReadMs = nowMs;
    }
    const hasQuota = tracked.spec.cpuQuotaMicroseconds !== undefined;
    const mayRest =
      (this.#samples + tracked.turn) % FULL_READING_ROUNDS !== 0 && nowMs - tracked.fullyReadMs < FULL_READING_AGE_MS;
    if (!mayRest) tracked.fullyReadMs = nowMs;
    const stats = tracked.cgroup.read(detail, { hasQuota, kind, mayRest });
    if (!stats) return undefined; // Gone; not seen, so its files are let go below.
    tracked.seen = true;
    tracked.readings = appendReading(tracked.readings, { atMs: nowMs, usageNanoseconds: stats.cpu.usageNanoseconds });
    let processes: ProcessCounts | undefined;
    if (detail === "all") {
      processes = this.#countProcesses(tracked, stats, key, how);
      tracked.load = decayLoad(tracked.load, nowMs - tracked.loadReadMs, processes.running + processes.uninterruptible);
      tracked.loadReadMs = nowMs;
    }
    return {
      path: tracked.path,
      stats,
      usageNanoCores: computeUsageNanoCores(tracked.readings),
      createdAt: tracked.createdAt,
      spec: tracked.spec,
      processes,
      loadAverage: tracked.load ?? 0,
      openFilesLimit: tracked.openFilesLimit,
    };
  }

  /** Looking through /proc costs more than all files of the cgroup: who has been counted waits for its turn. */
  #countProcesses(
    tracked: Tracked,
    stats: CgroupStats,
    key: string,
    { nowMs, kind, budget }: { nowMs: number; kind: CgroupKind; budget: Budget },
  ): ProcessCounts {
    const isDue =
      kind === "sandbox"
        ? nowMs - tracked.processesReadMs > SANDBOX_COUNTS_AGE_MS
        : (this.#samples + tracked.turn) % budget.rounds === 0;
    // At rest since they were counted: they opened nothing.
    const isKnown = tracked.processesOf === stats;
    if (!tracked.processes || (isDue && !isKnown && budget.descriptors > 0)) {
      // Not of the root: that would be every process of the machine.
      tracked.processes = this.#reader.processCounts(key === "/" ? [] : stats.processIds, budget.descriptors);
      tracked.processesOf = stats;
      tracked.processesReadMs = nowMs;
      budget.descriptors -= tracked.processes.fds;
    }
    return tracked.processes;
  }

  #track(key: string, directories: CgroupDirectories | undefined): Tracked | undefined {
    const createdAt = directories && this.#reader.createdAt(directories);
    if (!directories || !createdAt) return undefined;
    const tracked: Tracked = {
      cgroup: this.#reader.open(directories),
      path: this.#reader.pathOf(directories),
      createdAt,
      readings: [],
      spec: undefined,
      openFilesLimit: undefined,
      specReadMs: 0,
      fullyReadMs: Number.NEGATIVE_INFINITY,
      processes: undefined,
      processesOf: undefined,
      processesReadMs: 0,
      turn: this.#turns++,
      load: undefined,
      loadReadMs: 0,
      seen: true,
    };
    this.#tracked.set(key, tracked);
    return tracked;
  }

  /**
   * The pod's cgroup is where its sandbox stands, one level up: right for both cgroup drivers, and inside a container.
   * Without a process its name is all there is. Pods without a cgroup of their own (`--cgroups-per-qos=false`) have none.
   */
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
      const tracked = pod.cgroup && this.#tracked.get(pod.facts.uid);
      if (!tracked) continue;
      let { directories } = tracked.cgroup;
      let path = parentPath(tracked.path);
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

  /** Keeps a cgroup that a sample of basics does not read. */
  #keep(key: string): void {
    const tracked = this.#tracked.get(key);
    if (tracked) tracked.seen = true;
  }

  get #isIdle(): boolean {
    return this.#clock.monotonicMs() - this.#latestMs > OLDEST_BASE_MS;
  }

  #forgetUnseen(): void {
    for (const [key, tracked] of this.#tracked) {
      if (tracked.seen) continue;
      tracked.cgroup.close();
      this.#tracked.delete(key);
    }
  }

  // An open file keeps a removed cgroup alive in the kernel, so none stays open after the last question.
  #releaseLater(): void {
    if (this.#cancelRelease) return;
    this.#cancelRelease = this.#clock.schedule(OLDEST_BASE_MS, () => {
      this.#cancelRelease = undefined;
      if (this.#isIdle) this.close();
      else this.#releaseLater();
    });
  }
}

/** The value, made at the first call: with basics most askers never look at it. */
function once<T>(make: () => T): () => T {
  let made: { value: T } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

const parentPath = (path: string) => path.slice(0, path.lastIndexOf("/"));
