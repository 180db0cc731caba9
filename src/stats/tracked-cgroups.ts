import type { ProcessCounts } from "../base/host/proc.ts";
import type { CgroupDirectories } from "./cgroups/cgroup-layout.ts";
import type { CgroupReader } from "./cgroups/cgroup-reader.ts";
import type { CgroupSpec, CgroupStats } from "./cgroups/cgroup-stats.ts";
import type { CgroupKind, Detail, OpenCgroup } from "./cgroups/open-cgroup.ts";
import { appendReading, type CpuReading, computeUsageNanoCores, decayLoad } from "./cpu-rate.ts";
import type { CgroupSample } from "./node-sample.ts";

/**
 * Descriptors counted in one sample. A container with more than is left keeps its earlier counts: one with ten thousand
 * sockets must not delay the supervision of pods.
 */
export const DESCRIPTORS_PER_SAMPLE = 4_000;

/** Containers whose processes are counted in one sample; on a node with more they take turns. */
const COUNTED_PER_SAMPLE = 60;

/** A pause process opens no files and starts no processes. */
const SANDBOX_COUNTS_AGE_MS = 60_000;

/** A cgroup at rest is read in full after this number of samples, and after this time. */
const FULL_READING_ROUNDS = 4;
const FULL_READING_AGE_MS = 60_000;

/** Limits are read again after this, a few cgroups at each sample. */
const SPEC_AGE_MS = 60_000;
const SPECS_PER_SAMPLE = 40;

interface Budget {
  specs: number;
  descriptors: number;
  /** Samples until every container's processes were counted. */
  rounds: number;
}

interface Round {
  detail: Detail;
  nowMs: number;
  budget: Budget;
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
  /** Selects the sample in which the processes of this cgroup are counted. */
  turn: number;
  load: number | undefined;
  loadReadMs: number;
  seen: boolean;
}

/**
 * Open cgroups with what is remembered between samples: CPU readings, limits, counts of processes. Reading limits and
 * counting processes has a budget in each round; cgroups take turns.
 */
export class TrackedCgroups {
  readonly #reader: CgroupReader;
  readonly #tracked = new Map<string, Tracked>();
  #rounds = 0;
  #turns = 0;
  #round: Round = { detail: "basics", nowMs: 0, budget: { specs: 0, descriptors: 0, rounds: 1 } };

  constructor(reader: CgroupReader) {
    this.#reader = reader;
  }

  /** Begins a sample. @param containerCount decides how many take turns in being counted */
  begin(detail: Detail, nowMs: number, containerCount: number): void {
    for (const tracked of this.#tracked.values()) tracked.seen = false;
    this.#rounds++;
    const rounds = Math.max(1, Math.ceil(containerCount / COUNTED_PER_SAMPLE));
    this.#round = { detail, nowMs, budget: { specs: SPECS_PER_SAMPLE, descriptors: DESCRIPTORS_PER_SAMPLE, rounds } };
  }

  /**
   * One cgroup at the instant of this round.
   * @param key names the cgroup over time
   * @param directories looked up when the key is new
   * @returns undefined when the cgroup is gone
   */
  measure(
    key: string,
    directories: () => CgroupDirectories | undefined,
    { pid = 0, kind = "group" }: { pid?: number; kind?: CgroupKind } = {},
  ): CgroupSample | undefined {
    const { detail, nowMs, budget } = this.#round;
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
      (this.#rounds + tracked.turn) % FULL_READING_ROUNDS !== 0 && nowMs - tracked.fullyReadMs < FULL_READING_AGE_MS;
    if (!mayRest) tracked.fullyReadMs = nowMs;
    const stats = tracked.cgroup.read(detail, { hasQuota, kind, mayRest });
    if (!stats) return undefined; // Gone; not seen, so its files are let go below.
    tracked.seen = true;
    tracked.readings = appendReading(tracked.readings, { atMs: nowMs, usageNanoseconds: stats.cpu.usageNanoseconds });
    let processes: ProcessCounts | undefined;
    if (detail === "all") {
      processes = this.#countProcesses(tracked, stats, key, kind);
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

  /** Counts processes and descriptors. This costs more than all files of the cgroup: cgroups counted before take turns. */
  #countProcesses(tracked: Tracked, stats: CgroupStats, key: string, kind: CgroupKind): ProcessCounts {
    const { nowMs, budget } = this.#round;
    const isDue =
      kind === "sandbox"
        ? nowMs - tracked.processesReadMs > SANDBOX_COUNTS_AGE_MS
        : (this.#rounds + tracked.turn) % budget.rounds === 0;
    // No CPU used since the last count: nothing was opened.
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

  directoriesOf(key: string): CgroupDirectories | undefined {
    return this.#tracked.get(key)?.cgroup.directories;
  }

  /** Keeps a cgroup that a sample of basics does not read. */
  keep(key: string): void {
    const tracked = this.#tracked.get(key);
    if (tracked) tracked.seen = true;
  }

  /** Keeps the cgroups whose key is a path. */
  keepPaths(): void {
    for (const key of this.#tracked.keys()) if (key.startsWith("/")) this.keep(key);
  }

  /** Ends a sample: closes what was neither measured nor kept. */
  forgetUnseen(): void {
    for (const [key, tracked] of this.#tracked) {
      if (tracked.seen) continue;
      tracked.cgroup.close();
      this.#tracked.delete(key);
    }
  }

  close(): void {
    for (const { cgroup } of this.#tracked.values()) cgroup.close();
    this.#tracked.clear();
  }
}
