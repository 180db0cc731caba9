import { type DiskCounters, parseDiskstats } from "../../base/host/proc.ts";
import type { Clock } from "../../base/model/clock.ts";
import { readText } from "../cgroups/read-text.ts";
import type { DirectoryUsage, FsCapacity } from "../disk-usage.ts";
import { MACHINE_ROOTS, type NodeStats } from "../node-stats.ts";
import type { PodFacts } from "../pod-facts.ts";
import {
  type MachineBasics,
  type MachineInfo,
  type MountedFilesystem,
  parseFilesystems,
  readMachineBasics,
  readMachineInfo,
} from "./machine-info.ts";

/** Facts that cAdvisor's responses show in addition to a sample. */
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
const MACHINE_AGE_MS = 60_000;
const RECENT_MS = 1_000;

/** Reads what describes the machine; what changes rarely at most once a minute. */
export class CadvisorFactsReader {
  readonly #stats: NodeStats;
  readonly machineInfo: () => MachineInfo;
  /** The facts read within the last second, or read now. */
  readonly recent: () => CadvisorFacts;
  readonly #basics: () => MachineBasics;
  /** With a hundred pods the kernel lists hundreds of mounts, which takes it milliseconds. */
  readonly #mounts: () => readonly MountedFilesystem[];

  constructor(stats: NodeStats) {
    this.#stats = stats;
    const { clock, roots = MACHINE_ROOTS } = stats.options;
    this.machineInfo = kept(clock, MACHINE_AGE_MS, () => readMachineInfo(roots, (path) => stats.capacities.last(path)));
    this.recent = kept(clock, RECENT_MS, () => this.read());
    this.#basics = kept(clock, MACHINE_AGE_MS, () => readMachineBasics(roots));
    this.#mounts = kept(clock, MACHINE_AGE_MS, () => parseFilesystems(readText(`${roots.proc}/self/mountinfo`) ?? ""));
  }

  /** @param pods whose disk usage is wanted; default: all. */
  read(pods?: readonly PodFacts[]): CadvisorFacts {
    const { proc } = this.#roots;
    const { rootDir, imagesDir } = this.#stats.options;
    const { capacities } = this.#stats;
    const mounts = this.#mounts();
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

  /** Read every ten seconds by a node of a cluster: without disk usage, mounts and devices. */
  forNodeObject(): NodeObjectMachine {
    const { rootDir } = this.#stats.options;
    return { machine: this.#basics(), ...this.#versions(), nodeFs: this.#stats.capacities.last(rootDir) };
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
}

function kept<T>(clock: Clock, maxAgeMs: number, read: () => T): () => T {
  let last: { value: T; readMs: number } | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (!last || nowMs - last.readMs > maxAgeMs) last = { value: read(), readMs: nowMs };
    return last.value;
  };
}

/** Device of the mount a path is on. */
function deviceOf(path: string, mounts: readonly MountedFilesystem[]): string | undefined {
  const candidates = mounts.filter(
    ({ mountPoint }) => mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`),
  );
  return candidates.toSorted((a, b) => b.mountPoint.length - a.mountPoint.length)[0]?.device;
}
