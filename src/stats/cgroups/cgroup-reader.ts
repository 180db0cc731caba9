import { readlinkSync, statSync } from "node:fs";
import { basename } from "node:path";
import { namesIfReadable } from "../../base/files/whole-file.ts";
import { type ProcessCounts, parseOpenFilesLimit, parseProcessState } from "../../base/host/proc.ts";
import { unlessFailed } from "../../base/text/error-message.ts";
import type { CgroupSpec, CgroupStats } from "./cgroup-figures.ts";
import {
  readBlockIo,
  readCpu,
  readHugetlb,
  readMemory,
  readPressure,
  readSpec,
  singleValue,
} from "./cgroup-figures.ts";
import {
  type CgroupDirectories,
  type CgroupDirectory,
  type CgroupLayout,
  mainDirectory,
  parentDirectories,
  parseCgroupMounts,
  parseProcCgroup,
  toCgroupDirectories,
  toCgroupLayout,
  toProcessDirectories,
} from "./cgroup-layout.ts";
import { type KeptFiles, readSubdirectories, readText } from "./kernel-files.ts";

/** `basics`: what `/stats/summary` and `/metrics/resource` need. `all`: the rest too, for half as much again. */
export type Detail = "basics" | "all";

/** `group`: the node, a pod, or several pods. `container`: one of a pod's spec, or any that is not ours. */
export type CgroupKind = "group" | "sandbox" | "container";

/** Differences between machines in how cgroups are read. */
interface CgroupFeatures {
  /** `*.pressure`, since Linux 4.20, where it is not switched off. */
  pressure: boolean;
  hugetlbNames: readonly string[];
  /** Where the root of cgroup v2 gets its usage from. */
  meminfoPath: string;
}

/** Finds cgroups and reads their files. */
export class CgroupReader {
  readonly layout: CgroupLayout;
  readonly #proc: string;
  readonly #features: CgroupFeatures;

  /** @param procRoot `/proc`; in tests a directory of fixtures, whose mountinfo names the mount points. */
  constructor(procRoot = "/proc") {
    this.#proc = procRoot;
    const mounts = parseCgroupMounts(readText(`${procRoot}/self/mountinfo`) ?? "");
    const unified = mounts.find(({ version }) => version === 2);
    const controllers = unified ? readText(`${unified.mountPoint}/cgroup.controllers`) : undefined;
    this.layout = toCgroupLayout(mounts, controllers ?? "");
    this.#features = {
      pressure: readText(`${procRoot}/pressure/cpu`) !== undefined,
      hugetlbNames: readAnyHugetlbNames(this.ofPath("/").hugetlb),
      meminfoPath: `${procRoot}/meminfo`,
    };
  }

  /** Directories of a running process; undefined when it is gone. */
  ofProcess(pid: number): CgroupDirectories | undefined {
    const text = readText(`${this.#proc}/${pid}/cgroup`);
    return text === undefined ? undefined : toProcessDirectories(this.layout, parseProcCgroup(text));
  }

  /** Directories of a container, also when its process is in a cgroup below them; undefined when the process is another one's. */
  ofContainer({ id, pid }: { id: string; pid: number }): CgroupDirectories | undefined {
    let directories = this.ofProcess(pid);
    while (directories && !basename(mainDirectory(directories)).includes(id)) {
      directories = mainDirectory(directories).includes(id) ? parentDirectories(directories) : undefined;
    }
    return directories;
  }

  ofPath(cgroupPath: string): CgroupDirectories {
    return toCgroupDirectories(this.layout, cgroupPath);
  }

  /** Path of the cgroup below the root of its hierarchy: the `id` of its metrics. */
  pathOf(directories: CgroupDirectories): string {
    const path = mainDirectory(directories);
    for (const { mountPoint } of [
      ...this.layout.controllers.values(),
      ...(this.layout.unified ? [this.layout.unified] : []),
    ]) {
      if (path === mountPoint) return "/";
      if (path.startsWith(`${mountPoint}/`)) return path.slice(mountPoint.length);
    }
    return path;
  }

  /**
   * The figures of one cgroup by its files, whose meaning is in cgroup-figures.ts.
   * @param hasQuota without a quota throttling is undefined
   * @param kind only containers show block I/O; only those of a pod's spec show pressure on hybrid machines
   * @param files kept open for the next read; without them each file is opened
   * @returns undefined when the cgroup is gone; with `basics`, what was not read is undefined or empty
   */
  read(
    directories: CgroupDirectories,
    detail: Detail,
    { hasQuota, kind, files }: { hasQuota: boolean; kind: CgroupKind; files?: KeptFiles | undefined },
  ): CgroupStats | undefined {
    const { pressure, hugetlbNames, meminfoPath } = this.#features;
    const all = detail === "all";
    const read = fileReader(directories, files);
    const cpu = readCpu(directories, read, { all, hasQuota });
    if (!cpu) return undefined;
    const current = all ? singleValue(read("pids", "pids.current")) : undefined;
    // In hybrid mode upstream shows none; there it is read for few and for the metrics only, as it costs half of all.
    const showsPressure =
      pressure && directories.unified && (directories.memory?.version === 2 || (all && kind === "container"));
    return {
      cpu,
      memory: readMemory(directories, read, { all, meminfo: () => readText(meminfoPath) }),
      processIds: all || kind === "container" ? readProcessIds(directories) : [],
      pressure: showsPressure ? readPressure(read) : undefined,
      pids: current === undefined ? undefined : { current },
      blockIo: all && kind !== "group" ? readBlockIo(directories, read) : [],
      hugetlb: all ? readHugetlb(directories, read, hugetlbNames) : [],
    };
  }

  spec(directories: CgroupDirectories): CgroupSpec {
    return readSpec(directories, fileReader(directories));
  }

  /** When the cgroup was made; undefined when it is gone. */
  createdAt(directories: CgroupDirectories): Date | undefined {
    return unlessFailed(() => statSync(mainDirectory(directories)).mtime);
  }

  children(directories: CgroupDirectories): string[] {
    return readSubdirectories(mainDirectory(directories)).sort();
  }

  /** Processes that end meanwhile count as nothing. @param mostDescriptors with more of them sockets are not counted apart */
  processCounts(processIds: readonly string[], mostDescriptors: number): ProcessCounts {
    const counts: ProcessCounts = { fds: 0, sockets: 0, sleeping: 0, running: 0, stopped: 0, uninterruptible: 0 };
    for (const pid of processIds) {
      const directory = `${this.#proc}/${pid}`;
      const descriptors = namesIfReadable(`${directory}/fd`);
      counts.fds += descriptors.length;
      if (counts.fds > mostDescriptors) counts.sockets = undefined;
      if (counts.sockets !== undefined) {
        counts.sockets += descriptors.filter((descriptor) => isSocket(`${directory}/fd/${descriptor}`)).length;
      }
      const state = parseProcessState(readText(`${directory}/stat`) ?? "");
      if (state) counts[state]++;
    }
    return counts;
  }

  openFilesLimit(pid: number): { soft: number; hard: number } | undefined {
    const text = readText(`${this.#proc}/${pid}/limits`);
    return text === undefined ? undefined : parseOpenFilesLimit(text);
  }
}

/** Reads a file of a controller; undefined when the cgroup is not in its hierarchy, or is gone. */
const fileReader =
  (directories: CgroupDirectories, files?: KeptFiles) => (controller: keyof CgroupDirectories, name: string) => {
    const directory = directories[controller];
    return directory && (files ? files.read(directory.path, name) : readText(`${directory.path}/${name}`));
  };

const readProcessIds = (directories: CgroupDirectories): string[] =>
  (readText(`${mainDirectory(directories)}/cgroup.procs`) ?? "").split("\n").filter(Boolean);

function readHugetlbNames(path: string): string[] {
  const names = namesIfReadable(path).map((name) => /^hugetlb\.\d+[KMG]B(?=\.)/.exec(name)?.[0]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

/** The root has no usage files on v2; those of its children have. */
function readAnyHugetlbNames(root: CgroupDirectory | undefined): string[] {
  if (!root) return [];
  const paths = [root.path, ...namesIfReadable(root.path).map((name) => `${root.path}/${name}`)];
  for (const path of paths) {
    const names = readHugetlbNames(path);
    if (names.length > 0) return names;
  }
  return [];
}

const isSocket = (path: string): boolean => unlessFailed(() => readlinkSync(path))?.startsWith("socket:") === true;
