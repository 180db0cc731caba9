import type { CgroupDirectories, CgroupDirectory } from "./cgroup-layout.ts";
import {
  type BlockIoStats,
  type CgroupPressure,
  type CgroupStats,
  type CpuStats,
  type HugetlbStats,
  type MemoryStats,
  type PidsStats,
  parsePressure,
  singleValue,
  UNKNOWN_MEMORY,
} from "./cgroup-stats.ts";
import { parseV1BlockIo, parseV1Cpu, parseV1Memory } from "./cgroup-v1.ts";
import { parseV2BlockIo, parseV2Cpu, parseV2Memory } from "./cgroup-v2.ts";
import { OpenFileReader } from "./open-file-reader.ts";
import { readNames } from "./read-text.ts";

/** `basics`: what `/stats/summary` and `/metrics/resource` need. `all`: the rest too, for half as much again. */
export type Detail = "basics" | "all";

/** `group`: the node, a pod, or several pods. `container`: one of a pod's spec, or any that is not ours. */
export type CgroupKind = "group" | "sandbox" | "container";

/** Differences between machines in how cgroups are read. */
export interface CgroupFeatures {
  /** `blkio.throttle.*_recursive`, since Linux 4.17. */
  recursiveBlockIo: boolean;
  /** `*.pressure`, since Linux 4.20, where it is not switched off. */
  pressure: boolean;
  /** Names such as `hugetlb.2MB`. */
  hugetlbNames: readonly string[];
  /** Where the root of cgroup v2 gets its usage from. */
  meminfoPath: string;
}

/** The last complete reading, and the texts that show whether something has changed since. */
interface LastReading {
  detail: Detail;
  hasQuota: boolean;
  cpuText: string;
  memoryText: string | undefined;
  pressureTexts: readonly (string | undefined)[];
  stats: CgroupStats;
}

/** How one cgroup is read. */
interface ReadOptions {
  /** Without a quota throttling is undefined. */
  hasQuota: boolean;
  /** Only containers show block I/O; only those of the pod's spec show pressure on hybrid machines. */
  kind: CgroupKind;
  /**
   * A cgroup that used no CPU and whose memory is what it was has done nothing, so nothing else of it need be read. The
   * kernel may still have changed a little (reclaimed memory, a late write to the disk), so this is not always used.
   * Default: false.
   */
  mayRest?: boolean;
}

/**
 * One cgroup whose files stay open between samples. Thin: which files are read; what they mean is in cgroup-v1.ts and
 * cgroup-v2.ts. Every method answers undefined when the cgroup is gone, also when it goes while it is being read.
 */
export class OpenCgroup {
  readonly directories: CgroupDirectories;
  readonly #features: CgroupFeatures;
  readonly #files: OpenFileReader[] = [];
  /** `cpuacct.usage`; `cpu.stat` on v2. */
  readonly #cpuUsage: OpenFileReader | undefined;
  /** `memory.usage_in_bytes`; `memory.current` on v2. */
  readonly #memoryUsage: OpenFileReader | undefined;
  readonly #readCpu: (usage: string, all: boolean, hasQuota: boolean) => CpuStats | undefined;
  readonly #readMemory: (usage: string | undefined, all: boolean) => MemoryStats | undefined;
  // Made when they are first used: a summary of a hundred pods does without them.
  #rest:
    | { pids: () => PidsStats | undefined; blockIo: () => BlockIoStats[]; hugetlb: () => HugetlbStats[] }
    | undefined;
  #pressure: readonly { resource: keyof CgroupPressure; file: OpenFileReader }[] | undefined;
  readonly #procs: OpenFileReader;
  #last: LastReading | undefined;

  constructor(directories: CgroupDirectories, features: CgroupFeatures) {
    this.directories = directories;
    this.#features = features;
    const { cpu, cpuacct, memory, unified } = directories;
    // cpu.stat is there without the cpu controller too.
    const cpuDirectory = cpuacct?.version === 1 ? cpuacct : (cpu ?? cpuacct ?? unified);
    this.#cpuUsage =
      cpuDirectory && this.#file(cpuDirectory.path, cpuacct?.version === 1 ? "cpuacct.usage" : "cpu.stat");
    this.#memoryUsage =
      memory && this.#file(memory.path, memory.version === 1 ? "memory.usage_in_bytes" : "memory.current");
    this.#readCpu = this.#cpuReader();
    this.#readMemory = this.#memoryReader();
    this.#procs = this.#file(mainDirectory(directories), "cgroup.procs");
  }

  /**
   * With `basics`, what was not read is undefined or empty. A cgroup at rest answers with the object it answered with
   * before.
   */
  read(detail: Detail, { hasQuota, kind, mayRest = false }: ReadOptions): CgroupStats | undefined {
    const all = detail === "all";
    const cpuText = this.#cpuUsage?.read();
    // CPU time is counted for every cgroup there is: without it the cgroup is gone.
    if (cpuText === undefined) return undefined;
    const memoryText = this.#memoryUsage?.read();
    // In hybrid mode upstream shows none; there it is read for few and for the metrics only, as it costs half of all.
    const showsPressure = this.directories.memory?.version === 2 || (all && kind === "container");
    const pressureTexts = showsPressure ? this.#pressureFiles().map(({ file }) => file.read()) : [];
    const last = this.#last;
    if (
      mayRest &&
      last !== undefined &&
      last.cpuText === cpuText &&
      last.memoryText === memoryText &&
      last.hasQuota === hasQuota &&
      (last.detail === "all" || !all) &&
      pressureTexts.every((text, index) => text === last.pressureTexts[index])
    ) {
      return last.stats;
    }
    const cpu = this.#readCpu(cpuText, all, hasQuota);
    if (!cpu) return undefined;
    const rest = all ? this.#restReaders() : undefined;
    const stats = withProcessIds(this.#procs, {
      cpu,
      memory: this.#readMemory(memoryText, all) ?? UNKNOWN_MEMORY,
      pressure: showsPressure ? this.#toPressure(pressureTexts) : undefined,
      pids: rest?.pids(),
      blockIo: rest && kind !== "group" ? rest.blockIo() : [],
      hugetlb: rest?.hugetlb() ?? [],
    });
    this.#last = { detail, hasQuota, cpuText, memoryText, pressureTexts, stats };
    return stats;
  }

  /** Closes the files. */
  close(): void {
    for (const file of this.#files) file.close();
  }

  #file(directory: string, name: string): OpenFileReader {
    const file = new OpenFileReader(`${directory}/${name}`);
    this.#files.push(file);
    return file;
  }

  #restReaders() {
    this.#rest ??= { pids: this.#pidsReader(), blockIo: this.#blockIoReader(), hugetlb: this.#hugetlbReader() };
    return this.#rest;
  }

  #cpuReader(): (usage: string, all: boolean, hasQuota: boolean) => CpuStats | undefined {
    const { cpu, cpuacct } = this.directories;
    if (cpuacct?.version !== 1) return parseV2Cpu;
    const acctStat = this.#file(cpuacct.path, "cpuacct.stat");
    const cpuStat = cpu?.version === 1 ? this.#file(cpu.path, "cpu.stat") : undefined;
    return (usage, all, hasQuota) =>
      parseV1Cpu({
        usage,
        acctStat: all ? acctStat.read() : undefined,
        cpuStat: all && hasQuota ? cpuStat?.read() : undefined,
      });
  }

  #memoryReader(): (usage: string | undefined, all: boolean) => MemoryStats | undefined {
    const { memory } = this.directories;
    if (!memory) return () => undefined;
    const file = (name: string) => this.#file(memory.path, name);
    const stat = file("memory.stat");
    if (memory.version === 1) {
      const maxUsage = file("memory.max_usage_in_bytes");
      const [failcnt, oomControl] = [file("memory.failcnt"), file("memory.oom_control")];
      return (usage, all) =>
        parseV1Memory({
          usage,
          stat: stat.read(),
          maxUsage: all ? maxUsage.read() : undefined,
          failcnt: all ? failcnt.read() : undefined,
          oomControl: all ? oomControl.read() : undefined,
        });
    }
    const [peak, swapCurrent, events] = [file("memory.peak"), file("memory.swap.current"), file("memory.events")];
    // Only the root has no memory.current, and no memory.events either.
    const meminfo = new OpenFileReader(this.#features.meminfoPath);
    this.#files.push(meminfo);
    return (current, all) =>
      parseV2Memory({
        current,
        stat: stat.read(),
        peak: all ? peak.read() : undefined,
        swapCurrent: swapCurrent.read(),
        events: all ? events.read() : undefined,
        meminfo: current === undefined ? meminfo.read() : undefined,
      });
  }

  #pidsReader(): () => PidsStats | undefined {
    const { pids } = this.directories;
    if (!pids) return () => undefined;
    const current = this.#file(pids.path, "pids.current");
    return () => {
      const count = singleValue(current.read());
      return count === undefined ? undefined : { current: count };
    };
  }

  #blockIoReader(): () => BlockIoStats[] {
    const { blkio } = this.directories;
    if (!blkio) return () => [];
    if (blkio.version === 2) {
      const stat = this.#file(blkio.path, "io.stat");
      return () => parseV2BlockIo(stat.read());
    }
    const suffix = this.#features.recursiveBlockIo ? "_recursive" : "";
    const bytes = this.#file(blkio.path, `blkio.throttle.io_service_bytes${suffix}`);
    const serviced = this.#file(blkio.path, `blkio.throttle.io_serviced${suffix}`);
    return () => parseV1BlockIo(bytes.read(), serviced.read());
  }

  #hugetlbReader(): () => HugetlbStats[] {
    const { hugetlb } = this.directories;
    if (!hugetlb) return () => [];
    const { version, path } = hugetlb;
    const sizes = this.#features.hugetlbNames.flatMap((name) => {
      const pageSizeBytes = parsePageSize(name);
      if (pageSizeBytes === undefined) return [];
      const usage = this.#file(path, `${name}.${version === 1 ? "usage_in_bytes" : "current"}`);
      const max = version === 1 ? this.#file(path, `${name}.max_usage_in_bytes`) : undefined;
      const failures = this.#file(path, `${name}.${version === 1 ? "failcnt" : "events"}`);
      return [{ pageSizeBytes, usage, max, failures }];
    });
    return () =>
      sizes.flatMap(({ pageSizeBytes, usage, max, failures }) => {
        const usageBytes = singleValue(usage.read());
        if (usageBytes === undefined) return [];
        const failCount = singleValue(failures.read()?.replace(/^max /, "")) ?? 0;
        return [{ pageSizeBytes, usageBytes, maxUsageBytes: singleValue(max?.read()), failCount }];
      });
  }

  #pressureFiles(): readonly { resource: keyof CgroupPressure; file: OpenFileReader }[] {
    const { unified } = this.directories;
    if (!unified || !this.#features.pressure) return [];
    const resources = ["cpu", "memory", "io"] as const;
    this.#pressure ??= resources.map((resource) => ({
      resource,
      file: this.#file(unified.path, `${resource}.pressure`),
    }));
    return this.#pressure;
  }

  #toPressure(texts: readonly (string | undefined)[]): CgroupPressure | undefined {
    const files = this.#pressureFiles();
    if (files.length === 0) return undefined;
    const pressure: CgroupPressure = {};
    for (const [index, { resource }] of files.entries()) {
      const parsed = parsePressure(texts[index]);
      if (parsed) pressure[resource] = parsed;
    }
    return pressure;
  }
}

/**
 * Adds the processes, which are read on first use: half of the callers never use them. This is not a part of `read`,
 * because the getter would then keep the previous reading in memory, and that the one before it.
 */
function withProcessIds(procs: OpenFileReader, figures: Omit<CgroupStats, "processIds">): CgroupStats {
  let processIds: readonly string[] | undefined;
  return {
    ...figures,
    get processIds() {
      processIds ??= (procs.read() ?? "").split("\n").filter(Boolean);
      return processIds;
    },
  };
}

/** Page size of a name such as `hugetlb.2MB`, in bytes. */
export function parsePageSize(name: string): number | undefined {
  const match = /^hugetlb\.(\d+)([KMG])B$/.exec(name);
  if (!match) return undefined;
  return Number(match[1]) * { K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }[match[2] as "K" | "M" | "G"];
}

/** Names such as `hugetlb.2MB` that a cgroup's directory holds. */
export function readHugetlbNames(directory: CgroupDirectory | undefined): string[] {
  if (!directory) return [];
  const names = readNames(directory.path).map((name) => /^hugetlb\.\d+[KMG]B(?=\.)/.exec(name)?.[0]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

/** The directory of the cgroup where one hierarchy is enough. */
export function mainDirectory(directories: CgroupDirectories): string {
  const directory = directories.memory ?? directories.cpuacct ?? directories.cpu ?? directories.unified;
  return directory?.path ?? "/nonexistent";
}
