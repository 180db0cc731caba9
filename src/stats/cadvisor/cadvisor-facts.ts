import type { MachineInfo } from "../../base/api/machine-info.ts";
import { type DiskCounters, parseDiskstats } from "../../base/host/proc.ts";
import { readText } from "../cgroups/read-text.ts";
import type { DirectoryUsage, FsCapacity } from "../disk-usage.ts";
import { MACHINE_ROOTS, type NodeStats } from "../node-stats.ts";
import type { PodFacts } from "../pod-facts.ts";
import {
  type MachineBasics,
  type MountedFilesystem,
  parseFilesystems,
  readMachineBasics,
  readMachineInfo,
} from "./machine-info.ts";

/** Facts that cAdvisor's answers show in addition to a sample. */
export interface CadvisorFacts {
  machine: MachineInfo;
  engineVersion: string;
  kernelVersion: string;
  /** e.g. `Debian GNU/Linux 12 (bookworm)`. */
  osVersion: string;
  /** Results of the last scan, by directory. */
  disk: ReadonlyMap<string, DirectoryUsage>;
  /** The engine's file system and its device, e.g. `/dev/vda`; undefined while it is not known. */
  engineFs: { device: string; capacity: FsCapacity } | undefined;
  filesystems: readonly NodeFilesystem[];
  /** File system of the kubelet's root directory. */
  nodeFs: FsCapacity | undefined;
}

/** Facts of the machine that the Node object shows. */
export interface NodeObjectMachine
  extends Pick<CadvisorFacts, "engineVersion" | "kernelVersion" | "osVersion" | "nodeFs"> {
  machine: MachineBasics;
}

/** One file system of the node with the counters of its disk. */
export interface NodeFilesystem {
  device: string;
  mountPoint: string;
  capacity: FsCapacity;
  counters: DiskCounters | undefined;
}

/** Disks, mounts and network devices come and go: they are read again after this. */
const MACHINE_INFO_AGE_MS = 60_000;
const RECENT_MS = 1_000;

/** Reads what describes the machine; what changes rarely at most once a minute. */
export class CadvisorFactsReader {
  readonly #stats: NodeStats;
  #recent: { facts: CadvisorFacts; readMs: number } | undefined;
  #machine: { info: MachineInfo; readMs: number } | undefined;
  #basics: { machine: MachineBasics; readMs: number } | undefined;
  #mounts: { filesystems: readonly MountedFilesystem[]; readMs: number } | undefined;

  constructor(stats: NodeStats) {
    this.#stats = stats;
  }

  machineInfo(): MachineInfo {
    const nowMs = this.#stats.options.clock.monotonicMs();
    if (!this.#machine || nowMs - this.#machine.readMs > MACHINE_INFO_AGE_MS) {
      this.#machine = {
        info: readMachineInfo(this.#roots, (path) => this.#stats.capacities.last(path)),
        readMs: nowMs,
      };
    }
    return this.#machine.info;
  }

  /** The facts read within the last second, or read now. */
  recent(): CadvisorFacts {
    const nowMs = this.#stats.options.clock.monotonicMs();
    if (!this.#recent || nowMs - this.#recent.readMs > RECENT_MS) {
      this.#recent = { facts: this.read(), readMs: nowMs };
    }
    return this.#recent.facts;
  }

  /** @param pods whose disk usage is wanted; default: all. */
  read(pods?: readonly PodFacts[]): CadvisorFacts {
    const { proc } = this.#roots;
    const { rootDir, imagesDir } = this.#stats.options;
    const { capacities } = this.#stats;
    const mounts = this.#mountedFilesystems();
    const disks = parseDiskstats(readText(`${proc}/diskstats`) ?? "");
    const filesystems = mounts.flatMap(({ device, mountPoint, id }): NodeFilesystem[] => {
      // A remote file system that hangs would block the process.
      const capacity = device.includes(":/") ? undefined : capacities.last(mountPoint);
      const counters = disks.find((disk) => `${disk.major}:${disk.minor}` === id);
      return capacity ? [{ device, mountPoint, capacity, counters }] : [];
    });
    const engineDir = imagesDir();
    const engineCapacity = engineDir ? capacities.last(engineDir) : undefined;
    const engineDevice = deviceOf(imagesDir(), mounts);
    return {
      machine: this.machineInfo(),
      ...this.#versions(),
      disk: this.#stats.diskUsage(pods),
      engineFs: engineCapacity && engineDevice ? { device: engineDevice, capacity: engineCapacity } : undefined,
      filesystems,
      nodeFs: capacities.last(rootDir),
    };
  }

  /**
   * Facts for the Node object. A node of a cluster reads them every ten seconds: no disk usage is measured for them, and
   * neither mounts nor devices are listed.
   */
  forNodeObject(): NodeObjectMachine {
    const nowMs = this.#stats.options.clock.monotonicMs();
    if (!this.#basics || nowMs - this.#basics.readMs > MACHINE_INFO_AGE_MS) {
      this.#basics = { machine: readMachineBasics(this.#roots), readMs: nowMs };
    }
    const { rootDir } = this.#stats.options;
    return { machine: this.#basics.machine, ...this.#versions(), nodeFs: this.#stats.capacities.last(rootDir) };
  }

  #versions(): Pick<CadvisorFacts, "engineVersion" | "kernelVersion" | "osVersion"> {
    const { proc, etc } = this.#roots;
    return {
      engineVersion: this.#stats.options.engineVersion(),
      kernelVersion: readText(`${proc}/sys/kernel/osrelease`)?.trim() ?? "",
      osVersion: /^PRETTY_NAME="?([^"\n]*)/m.exec(readText(`${etc}/os-release`) ?? "")?.[1] ?? "",
    };
  }

  get #roots() {
    return this.#stats.options.roots ?? MACHINE_ROOTS;
  }

  /** With a hundred pods the kernel lists hundreds of mounts, which takes it milliseconds. */
  #mountedFilesystems(): readonly MountedFilesystem[] {
    const nowMs = this.#stats.options.clock.monotonicMs();
    if (!this.#mounts || nowMs - this.#mounts.readMs > MACHINE_INFO_AGE_MS) {
      const mountinfo = readText(`${this.#roots.proc}/self/mountinfo`) ?? "";
      this.#mounts = { filesystems: parseFilesystems(mountinfo), readMs: nowMs };
    }
    return this.#mounts.filesystems;
  }
}

/** Device of the mount a path is on. */
function deviceOf(path: string, mounts: readonly MountedFilesystem[]): string | undefined {
  const candidates = mounts.filter(
    ({ mountPoint }) => mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`),
  );
  return candidates.toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0]?.device;
}
