import { findMount, parseMounts } from "../../base/files/mount-points.ts";
import { namesIfReadable } from "../../base/files/whole-file.ts";
import { type DiskCounters, meminfoBytes, parseDiskstats } from "../../base/host/proc.ts";
import type { Clock } from "../../base/model/clock.ts";
import { readText } from "../cgroups/kernel-files.ts";
import { type DirectoryUsage, type FsCapacity, readCapacityNow } from "../disk-usage.ts";
import { MACHINE_ROOTS, type MachineRoots, type NodeStats } from "../node-stats.ts";
import type { PodFacts } from "../pod-facts.ts";

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
    const { clock, roots } = stats;
    this.machineInfo = kept(clock, MACHINE_AGE_MS, () => readMachineInfo(roots, (path) => stats.capacities.last(path)));
    this.recent = kept(clock, RECENT_MS, () => this.read());
    this.#basics = kept(clock, MACHINE_AGE_MS, () => readMachineBasics(roots));
    this.#mounts = kept(clock, MACHINE_AGE_MS, () => parseFilesystems(readText(`${roots.proc}/self/mountinfo`) ?? ""));
  }

  /** @param pods whose disk usage is wanted; default: all. */
  read(pods?: readonly PodFacts[]): CadvisorFacts {
    const { capacities, imagesDir, settings, roots } = this.#stats;
    const mounts = this.#mounts();
    const disks = parseDiskstats(readText(`${roots.proc}/diskstats`) ?? "");
    const filesystems = mounts.flatMap(({ device, mountPoint, id }): NodeFilesystem[] => {
      // A remote file system that hangs would block the process.
      const capacity = device.includes(":/") ? undefined : capacities.last(mountPoint);
      const counters = disks.find((disk) => `${disk.major}:${disk.minor}` === id);
      return capacity ? [{ device, mountPoint, capacity, counters }] : [];
    });
    const engineCapacity = imagesDir ? capacities.last(imagesDir) : undefined;
    const engineDevice = findMount(imagesDir, mounts)?.device;
    return {
      machine: this.machineInfo(),
      ...this.#versions(),
      disk: this.#stats.diskUsage(pods),
      engineFs: engineCapacity && engineDevice ? { device: engineDevice, capacity: engineCapacity } : undefined,
      filesystems,
      nodeFs: capacities.last(settings.rootDir),
    };
  }

  /** Read every ten seconds by a node of a cluster: without disk usage, mounts and devices. */
  forNodeObject(): NodeObjectMachine {
    const { rootDir } = this.#stats.settings;
    return { machine: this.#basics(), ...this.#versions(), nodeFs: this.#stats.capacities.last(rootDir) };
  }

  #versions(): Pick<CadvisorFacts, "engineVersion" | "kernelVersion" | "osVersion"> {
    const { engineVersion, roots } = this.#stats;
    const { proc, etc } = roots;
    return {
      engineVersion,
      kernelVersion: readText(`${proc}/sys/kernel/osrelease`)?.trim() ?? "",
      osVersion: /^PRETTY_NAME="?([^"\n]*)/m.exec(readText(`${etc}/os-release`) ?? "")?.[1] ?? "",
    };
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

/** Response of `/spec/`: cAdvisor's `info/v1.MachineInfo` as kubelet 1.20 prints it. Sizes are in bytes. */
export type MachineInfo = ReturnType<typeof readMachineInfo>;
type MachineBasics = ReturnType<typeof readMachineBasics>;
type CacheInfo = Record<"size" | "level", number> & { type: string };

/** The machine as cAdvisor describes it, for `/spec/`. What the kernel does not report is 0 or "", as there. */
export function readMachineInfo(
  roots: MachineRoots = MACHINE_ROOTS,
  capacityOf: (mountPoint: string) => FsCapacity | undefined = readCapacityNow,
) {
  const { proc, sys } = roots;
  const cpuinfo = readText(`${proc}/cpuinfo`) ?? "";
  const topology = readTopology(sys);
  const cores = topology.flatMap((node) => node.cores);
  return {
    timestamp: "0001-01-01T00:00:00Z",
    ...readMachineBasics(roots),
    num_physical_cores: cores.length || countProcessors(cpuinfo),
    num_sockets: new Set(cores.map((core) => core.socket_id)).size || 1,
    cpu_frequency_khz: readFrequencyKhz(sys, cpuinfo),
    memory_by_type: {},
    nvm: { memory_mode_capacity: 0, "app direct_mode_capacity": 0, avg_power_budget: 0 },
    filesystems: readFilesystems(readText(`${proc}/self/mountinfo`) ?? "", capacityOf),
    disk_map: readDisks(`${sys}/block`),
    network_devices: readNetworkDevices(`${sys}/class/net`),
    topology,
    ...readCloud(sys),
  };
}

/** The part of the machine that the Node object shows: a few reads, however many mounts and devices pods have made. */
function readMachineBasics(roots: MachineRoots = MACHINE_ROOTS) {
  const { proc, sys } = roots;
  return {
    num_cores: countThreads(sys) || countProcessors(readText(`${proc}/cpuinfo`) ?? ""),
    memory_capacity: meminfoBytes(readText(`${proc}/meminfo`) ?? "", "MemTotal") ?? 0,
    hugepages: readHugePages(`${sys}/kernel/mm/hugepages`),
    ...readIdentity(roots),
  };
}

const text = (path: string) => readText(path)?.trim() ?? "";
const number = (path: string) => Number(text(path)) || 0;

const countProcessors = (cpuinfo: string) => [...cpuinfo.matchAll(/^processor\s*:/gm)].length;

/** The most a core may clock; where the kernel does not say, what the first one clocks at now. */
function readFrequencyKhz(sys: string, cpuinfo: string): number {
  const maximum = number(`${sys}/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq`);
  if (maximum > 0) return maximum;
  const clock = /^(?:cpu MHz|clock)\s*:\s*([\d.]+)/m.exec(cpuinfo)?.[1];
  return clock ? Math.floor(Number(clock) * 1000) : 0;
}

/** Pages of each size, which is in KiB. */
function readHugePages(directory: string) {
  return namesIfReadable(directory)
    .sort()
    .flatMap((name) => {
      const size = /^hugepages-(\d+)kB$/.exec(name)?.[1];
      return size ? [{ page_size: Number(size), num_pages: number(`${directory}/${name}/nr_hugepages`) }] : [];
    });
}

function readIdentity({ proc, sys, etc }: MachineRoots) {
  const machineId = text(`${etc}/machine-id`);
  // Where firmware gives none (virtual machines without SMBIOS), the machine id is used, as in cAdvisor.
  const systemUuid =
    text(`${sys}/class/dmi/id/product_uuid`) ||
    text(`${proc}/device-tree/system-id`) ||
    text(`${proc}/device-tree/vm,uuid`) ||
    machineId;
  return {
    machine_id: machineId,
    system_uuid: systemUuid.replaceAll("\0", ""),
    boot_id: text(`${proc}/sys/kernel/random/boot_id`),
  };
}

function readTopology(sys: string) {
  const nodeDirectory = `${sys}/devices/system/node`;
  const nodeNames = numbered(nodeDirectory, "node");
  if (nodeNames.length === 0) {
    const cores = readCores(sys, numbered(cpuDirectory(sys), "cpu"));
    return cores.length > 0 ? [{ node_id: 0, memory: 0, hugepages: [], ...toNode(cores) }] : [];
  }
  return nodeNames.map((id) => {
    const path = `${nodeDirectory}/node${id}`;
    const total = /MemTotal:\s+(\d+) kB/.exec(readText(`${path}/meminfo`) ?? "")?.[1];
    return {
      node_id: id,
      memory: total ? Number(total) * 1024 : 0,
      hugepages: readHugePages(`${path}/hugepages`),
      ...toNode(readCores(sys, numbered(path, "cpu"))),
    };
  });
}

/** Threads of processors that are online, as the topology has them; 0 where the kernel shows none. */
function countThreads(sys: string): number {
  const nodeDirectory = `${sys}/devices/system/node`;
  const nodes = numbered(nodeDirectory, "node").map((id) => `${nodeDirectory}/node${id}`);
  const ids = nodes.length > 0 ? nodes.flatMap((path) => numbered(path, "cpu")) : numbered(cpuDirectory(sys), "cpu");
  return ids.filter((id) => isOnline(`${cpuDirectory(sys)}/cpu${id}`)).length;
}

const cpuDirectory = (sys: string) => `${sys}/devices/system/cpu`;

const isOnline = (cpuPath: string) =>
  readText(`${cpuPath}/online`)?.trim() !== "0" && !!readText(`${cpuPath}/topology/core_id`);

interface CpuThread {
  id: number;
  coreId: number;
  socketId: number;
  caches: (CacheInfo & { sharedBy: number })[];
}

function readCores(sys: string, ids: readonly number[]): CpuThread[] {
  return ids
    .map((id) => ({ id, path: `${cpuDirectory(sys)}/cpu${id}` }))
    .filter(({ path }) => isOnline(path))
    .map(({ id, path }) => ({
      id,
      coreId: number(`${path}/topology/core_id`),
      socketId: number(`${path}/topology/physical_package_id`),
      caches: readCaches(`${path}/cache`),
    }));
}

function readCaches(directory: string): CpuThread["caches"] {
  return numbered(directory, "index").map((index) => {
    const path = `${directory}/index${index}`;
    return {
      size: parseCacheSize(text(`${path}/size`)),
      type: text(`${path}/type`),
      level: number(`${path}/level`),
      sharedBy: parseCpuList(text(`${path}/shared_cpu_list`)).length,
    };
  });
}

/** Threads to cores: caches of one core are listed with it, those that several cores share on the node. */
function toNode(threads: readonly CpuThread[]) {
  const cores = new Map<string, { core_id: number; thread_ids: number[]; caches: CacheInfo[]; socket_id: number }>();
  const shared = new Map<string, CacheInfo>();
  for (const thread of threads) {
    const key = `${thread.socketId}/${thread.coreId}`;
    const known = cores.get(key);
    if (known) {
      known.thread_ids.push(thread.id);
      continue;
    }
    const threadsOfCore = threads.filter((other) => `${other.socketId}/${other.coreId}` === key).length;
    const caches: CacheInfo[] = [];
    for (const { sharedBy, ...cache } of thread.caches) {
      if (sharedBy > threadsOfCore) shared.set(`${cache.level}/${cache.type}`, cache);
      else caches.push(cache);
    }
    cores.set(key, { core_id: thread.coreId, thread_ids: [thread.id], caches, socket_id: thread.socketId });
  }
  return { cores: [...cores.values()], caches: [...shared.values()] };
}

/** `48K`, `2M`, `1024`, in bytes. */
function parseCacheSize(size: string): number {
  const [, amount, unit] = /^(\d+)([KMG]?)$/.exec(size) ?? [];
  return amount ? Number(amount) * { "": 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 }[unit as "" | "K" | "M" | "G"] : 0;
}

function parseCpuList(list: string): number[] {
  return list.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map((end) => (end === "" ? Number.NaN : Number(end)));
    if (first === undefined || last === undefined || Number.isNaN(first) || Number.isNaN(last)) return [];
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

/** Numbers of the entries `<prefix><number>` of a directory, ascending. */
function numbered(directory: string, prefix: string): number[] {
  return namesIfReadable(directory)
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .map((name) => Number(name.slice(prefix.length)))
    .sort((a, b) => a - b);
}

/** Block devices that hold data; cAdvisor leaves out what is not a disk. */
function readDisks(directory: string) {
  const disks: Record<string, { name: string; major: number; minor: number; size: number; scheduler: string }> = {};
  for (const name of namesIfReadable(directory).sort()) {
    if (/^(loop|ram|sr)/.test(name)) continue;
    const device = text(`${directory}/${name}/dev`);
    const [major, minor] = device.split(":").map(Number);
    if (major === undefined || minor === undefined) continue;
    const scheduler = /\[(.+)\]/.exec(text(`${directory}/${name}/queue/scheduler`))?.[1] ?? "none";
    disks[device] = { name, major, minor, size: number(`${directory}/${name}/size`) * 512, scheduler };
  }
  return disks;
}

function readNetworkDevices(directory: string) {
  return namesIfReadable(directory)
    .sort()
    .filter((name) => !/^(lo|veth|docker|nerdctl|cali|cni)/.test(name) && name !== "bonding_masters")
    .map((name) => ({
      name,
      mac_address: text(`${directory}/${name}/address`),
      speed: number(`${directory}/${name}/speed`),
      mtu: number(`${directory}/${name}/mtu`),
    }));
}

/** One mounted file system with a size worth reporting. */
interface MountedFilesystem {
  /** Block device, the mount point of a tmpfs, or `overlay_0-28` with the numbers of an overlay. */
  device: string;
  mountPoint: string;
  /** `major:minor`. */
  id: string;
}

/** Disks and tmpfs of a mountinfo, each device once, at its shortest mount point, without containers' own mounts. Source: cAdvisor's list. */
export function parseFilesystems(mountinfo: string): MountedFilesystem[] {
  const found = new Map<string, MountedFilesystem>();
  for (const { device: id, mountPoint, type, source } of parseMounts(mountinfo)) {
    const isTmpfs = type === "tmpfs";
    const isOverlaidRoot = type === "overlay" && mountPoint === "/";
    if (!isTmpfs && !isOverlaidRoot && !/^(ext[234]|xfs|btrfs|zfs|f2fs|jfs|nfs4?|bcachefs)$/.test(type)) continue;
    if (/\/docker\/(containers|overlay2|aufs|volumes)\/|\/containerd\/|\/run\/docker\//.test(mountPoint)) continue;
    const device = isTmpfs ? mountPoint : isOverlaidRoot ? `overlay_${id.replace(":", "-")}` : source;
    const known = found.get(device);
    if (!known || mountPoint.length < known.mountPoint.length) found.set(device, { device, mountPoint, id });
  }
  return [...found.values()];
}

/** Remote file systems may hang: they are named, never asked. */
function readFilesystems(mountinfo: string, capacityOf: (mountPoint: string) => FsCapacity | undefined) {
  return parseFilesystems(mountinfo).flatMap(({ device, mountPoint }) => {
    if (device.includes(":/")) return [];
    const found = capacityOf(mountPoint);
    if (!found) return [];
    const { capacityBytes, inodes } = found;
    return [{ device, capacity: capacityBytes, type: "vfs", inodes, has_inodes: inodes > 0 }];
  });
}

/** Provider and instance as cAdvisor derives them: from the vendor's strings in DMI, asking no metadata service. */
function readCloud(sys: string) {
  const dmi = (name: string) => text(`${sys}/class/dmi/id/${name}`);
  const cloud = (cloud_provider: string, instance_type = "", instance_id = "") => ({
    cloud_provider,
    instance_type: instance_type || "Unknown",
    instance_id: instance_id || "None",
  });
  const vendor = dmi("sys_vendor");
  if (dmi("product_name").includes("Google")) return cloud("GCE");
  if (/amazon/i.test(`${dmi("bios_vendor")} ${vendor} ${dmi("product_version")}`)) {
    // On Nitro machines the type and the id are in DMI.
    const id = dmi("board_asset_tag");
    return cloud("AWS", dmi("product_name"), id.startsWith("i-") ? id : "");
  }
  return vendor.includes("Microsoft Corporation") ? cloud("Azure", "", dmi("product_uuid")) : cloud("Unknown");
}
