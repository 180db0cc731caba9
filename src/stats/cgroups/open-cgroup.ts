import { readBlockIo, readCpu, readHugetlb, readMemory, readPressure, singleValue } from "./cgroup-figures.ts";
import { type CgroupDirectories, mainDirectory } from "./cgroup-layout.ts";
import type { CgroupStats } from "./cgroup-stats.ts";
import { OpenFileReader } from "./open-file-reader.ts";

/** `basics`: what `/stats/summary` and `/metrics/resource` need. `all`: the rest too, for half as much again. */
export type Detail = "basics" | "all";

/** `group`: the node, a pod, or several pods. `container`: one of a pod's spec, or any that is not ours. */
export type CgroupKind = "group" | "sandbox" | "container";

/** Differences between machines in how cgroups are read. */
export interface CgroupFeatures {
  /** `*.pressure`, since Linux 4.20, where it is not switched off. */
  pressure: boolean;
  /** Names such as `hugetlb.2MB`. */
  hugetlbNames: readonly string[];
  /** Where the root of cgroup v2 gets its usage from. */
  meminfoPath: string;
}

/** One cgroup whose files stay open between samples. What its files mean is in cgroup-figures.ts. */
export class OpenCgroup {
  readonly directories: CgroupDirectories;
  readonly #features: CgroupFeatures;
  /** Each from its first use: a summary of a hundred pods does without most. No two hierarchies have files of one name. */
  readonly #files = new Map<string, OpenFileReader>();

  constructor(directories: CgroupDirectories, features: CgroupFeatures) {
    this.directories = directories;
    this.#features = features;
  }

  /**
   * @param hasQuota without a quota throttling is undefined
   * @param kind only containers show block I/O; only those of a pod's spec show pressure on hybrid machines
   * @returns undefined when the cgroup is gone; with `basics`, what was not read is undefined or empty
   */
  read(detail: Detail, { hasQuota, kind }: { hasQuota: boolean; kind: CgroupKind }): CgroupStats | undefined {
    const { directories } = this;
    const { pressure, hugetlbNames, meminfoPath } = this.#features;
    const all = detail === "all";
    const read = (controller: keyof CgroupDirectories, name: string) => {
      const directory = directories[controller];
      return directory && this.#read(directory.path, name);
    };
    const cpu = readCpu(directories, read, { all, hasQuota });
    if (!cpu) return undefined;
    const current = all ? singleValue(read("pids", "pids.current")) : undefined;
    // In hybrid mode upstream shows none; there it is read for few and for the metrics only, as it costs half of all.
    const showsPressure =
      pressure && directories.unified && (directories.memory?.version === 2 || (all && kind === "container"));
    return {
      cpu,
      memory: readMemory(directories, read, { all, meminfo: () => this.#read("", meminfoPath) }),
      processIds: (this.#read(mainDirectory(directories), "cgroup.procs") ?? "").split("\n").filter(Boolean),
      pressure: showsPressure ? readPressure(read) : undefined,
      pids: current === undefined ? undefined : { current },
      blockIo: all && kind !== "group" ? readBlockIo(directories, read) : [],
      hugetlb: all ? readHugetlb(directories, read, hugetlbNames) : [],
    };
  }

  /** Closes the files. */
  close(): void {
    for (const file of this.#files.values()) file.close();
  }

  #read(directory: string, name: string): string | undefined {
    let file = this.#files.get(name);
    if (!file) {
      file = new OpenFileReader(directory === "" ? name : `${directory}/${name}`);
      this.#files.set(name, file);
    }
    return file.read();
  }
}
