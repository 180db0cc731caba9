import { readlinkSync, statSync } from "node:fs";
import { type ProcessCounts, parseOpenFilesLimit, parseProcessState } from "../../base/host/proc.ts";
import {
  type CgroupDirectories,
  type CgroupDirectory,
  type CgroupLayout,
  parseCgroupMounts,
  parseProcCgroup,
  toCgroupDirectories,
  toCgroupLayout,
  toProcessDirectories,
} from "./cgroup-layout.ts";
import type { CgroupSpec } from "./cgroup-stats.ts";
import { parseV1Spec } from "./cgroup-v1.ts";
import { parseV2Spec } from "./cgroup-v2.ts";
import { type CgroupFeatures, mainDirectory, OpenCgroup, readHugetlbNames } from "./open-cgroup.ts";
import { readNames, readSubdirectories, readText } from "./read-text.ts";

/** Finds cgroups and reads what changes rarely; `open` gives what is read often. */
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
    const root = this.ofPath("/");
    const hugetlb = this.layout.controllers.get("hugetlb");
    this.#features = {
      recursiveBlockIo:
        root.blkio?.version === 1 && readNames(root.blkio.path).includes("blkio.throttle.io_serviced_recursive"),
      pressure: readText(`${procRoot}/pressure/cpu`) !== undefined,
      // The root has no usage files on v2; those of its children have.
      hugetlbNames: hugetlb ? readAnyHugetlbNames(root.hugetlb) : [],
      meminfoPath: `${procRoot}/meminfo`,
    };
  }

  /** Directories of a running process; undefined when it is gone. */
  ofProcess(pid: number): CgroupDirectories | undefined {
    const text = readText(`${this.#proc}/${pid}/cgroup`);
    return text === undefined ? undefined : toProcessDirectories(this.layout, parseProcCgroup(text));
  }

  /** Directories of a cgroup path such as `/` or `/kubepods/burstable`. */
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

  open(directories: CgroupDirectories): OpenCgroup {
    return new OpenCgroup(directories, this.#features);
  }

  spec(directories: CgroupDirectories): CgroupSpec {
    const { cpu, cpuset, memory, pids } = directories;
    const v1 = parseV1Spec({
      shares: file(1, cpu, "cpu.shares"),
      quota: file(1, cpu, "cpu.cfs_quota_us"),
      period: file(1, cpu, "cpu.cfs_period_us"),
      cpus: file(1, cpuset, "cpuset.cpus"),
      memoryLimit: file(1, memory, "memory.limit_in_bytes"),
      softLimit: file(1, memory, "memory.soft_limit_in_bytes"),
      memswLimit: file(1, memory, "memory.memsw.limit_in_bytes"),
      pidsMax: file(1, pids, "pids.max"),
    });
    const v2 = parseV2Spec({
      weight: file(2, cpu, "cpu.weight"),
      cpuMax: file(2, cpu, "cpu.max"),
      cpus: file(2, cpuset, "cpuset.cpus.effective"),
      memoryMax: file(2, memory, "memory.max"),
      memoryLow: file(2, memory, "memory.low"),
      swapMax: file(2, memory, "memory.swap.max"),
      pidsMax: file(2, pids, "pids.max"),
    });
    return {
      cpuShares: v1.cpuShares ?? v2.cpuShares,
      cpuQuotaMicroseconds: v1.cpuQuotaMicroseconds ?? v2.cpuQuotaMicroseconds,
      cpuPeriodMicroseconds: v1.cpuPeriodMicroseconds ?? v2.cpuPeriodMicroseconds,
      cpuMask: v1.cpuMask || v2.cpuMask,
      memoryLimitBytes: v1.memoryLimitBytes ?? v2.memoryLimitBytes,
      memoryReservationBytes: v1.memoryReservationBytes ?? v2.memoryReservationBytes,
      swapLimitBytes: v1.swapLimitBytes ?? v2.swapLimitBytes,
      pidsMax: v1.pidsMax ?? v2.pidsMax,
    };
  }

  /** When the cgroup was made; undefined when it is gone. */
  createdAt(directories: CgroupDirectories): Date | undefined {
    try {
      return statSync(mainDirectory(directories)).mtime;
    } catch {
      return undefined;
    }
  }

  /** Names of the cgroups directly below, sorted. */
  children(directories: CgroupDirectories): string[] {
    return readSubdirectories(mainDirectory(directories)).sort();
  }

  /** Processes in this very cgroup. */
  processIds(directories: CgroupDirectories): number[] {
    const text = readText(`${mainDirectory(directories)}/cgroup.procs`) ?? "";
    return text.split("\n").filter(Boolean).map(Number);
  }

  /**
   * Descriptors, sockets and states of these processes; those that end meanwhile count as nothing.
   * @param mostDescriptors with more of them sockets are not counted apart
   */
  processCounts(processIds: readonly string[], mostDescriptors: number): ProcessCounts {
    const counts: ProcessCounts = { fds: 0, sockets: 0, sleeping: 0, running: 0, stopped: 0, uninterruptible: 0 };
    for (const pid of processIds) {
      const directory = `${this.#proc}/${pid}`;
      const descriptors = readNames(`${directory}/fd`);
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

  /** Soft and hard limit of open files of a process. */
  openFilesLimit(pid: number): { soft: number; hard: number } | undefined {
    const text = readText(`${this.#proc}/${pid}/limits`);
    return text === undefined ? undefined : parseOpenFilesLimit(text);
  }
}

function file(version: 1 | 2, directory: CgroupDirectory | undefined, name: string): string | undefined {
  return directory?.version === version ? readText(`${directory.path}/${name}`) : undefined;
}

function readAnyHugetlbNames(root: CgroupDirectory | undefined): string[] {
  const own = readHugetlbNames(root);
  if (own.length > 0 || !root) return own;
  for (const name of readNames(root.path)) {
    const names = readHugetlbNames({ ...root, path: `${root.path}/${name}` });
    if (names.length > 0) return names;
  }
  return [];
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith("socket:");
  } catch {
    return false;
  }
}
