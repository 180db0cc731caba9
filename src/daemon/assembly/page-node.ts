import type { Pod } from "../../base/api/pod.ts";
import { findMount } from "../../base/files/mount-points.ts";
import { type CoreTimes, type InterfaceCounters, meminfoBytes, parseCoreTimes } from "../../base/host/proc.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { EngineInfo } from "../../base/model/node.ts";
import { allStatusesOf } from "../../base/model/pod.ts";
import type { StoredImage } from "../../docker/docker-images.ts";
import type { ImageGcManager } from "../../kubelet/images/image-gc-manager.ts";
import type {
  CgroupRow,
  CoreUse,
  ImageRow,
  InterfaceRow,
  MachineMemory,
  NodeDetail,
  OtherContainerRow,
} from "../../page/wire.ts";
import { type CadvisorFacts, CadvisorFactsReader, type NodeFilesystem } from "../../stats/cadvisor/cadvisor-facts.ts";
import type { CgroupReader } from "../../stats/cgroups/cgroup-reader.ts";
import { readText } from "../../stats/cgroups/kernel-files.ts";
import type { NodeStats } from "../../stats/node-stats.ts";
import {
  appendReading,
  type CgroupSample,
  type CpuReading,
  computeUsageNanoCores,
  type NodeSample,
  type OtherSample,
  type PodSample,
} from "../../stats/sampler.ts";
import type { AssembledKubelet } from "./assemble-kubelet.ts";
import { imagesWithin } from "./build-images.ts";

/** An engine that does not answer by then leaves the view without its images. */
const IMAGES_WITHIN_MS = 2000;

/** Reads the facts of the machine that the page shows. */
export class NodeReader {
  readonly #parts: AssembledKubelet;
  readonly #stats: NodeStats;
  readonly #cadvisor: CadvisorFactsReader;
  readonly #rates: MachineRates;

  constructor(parts: AssembledKubelet, stats: NodeStats) {
    this.#parts = parts;
    this.#stats = stats;
    this.#cadvisor = new CadvisorFactsReader(stats);
    this.#rates = new MachineRates(parts.context.clock);
  }

  async read(pods: readonly Pod[]): Promise<Omit<NodeDetail, "events">> {
    const { imageGc, engine } = this.#parts;
    const { clock, options } = this.#parts.context;
    const [sample, cores, store] = await Promise.all([
      this.#stats.sampleWithRates("all"),
      this.#rates.cores(),
      imagesWithin(IMAGES_WITHIN_MS, engine, clock),
    ]);
    const facts = this.#cadvisor.recent();
    const directories = { "root directory": options.rootDir, images: engine.infoIfKnown?.imagesDir ?? "" };
    return {
      cgroups: toCgroupTree(sample, this.#rates.otherCgroups(this.#stats.reader, sample)),
      otherContainers: toOtherContainerRows(sample.others),
      cores,
      memory: readMemory(),
      interfaces: toInterfaceRows(sample.interfaces),
      filesystems: toFilesystems(facts, directories),
      images: toImageRows(store?.images ?? [], pods, imageGc, clock.now().getTime()),
      imageGcPercent: options.imageGcHighThresholdPercent,
      machine: {
        "Operating system": facts.osVersion,
        Kernel: facts.kernelVersion,
        Cores: String(facts.machine.num_cores),
        "Clock rate": `${(facts.machine.cpu_frequency_khz / 1e6).toFixed(2)} GHz`,
        "Machine id": facts.machine.machine_id,
        "Boot id": facts.machine.boot_id,
      },
      engine: toEngineFacts(engine.infoIfKnown),
    };
  }
}

function toEngineFacts(engine: EngineInfo | undefined): NodeDetail["engine"] {
  if (!engine) return {};
  const { dockerRootDir, imagesDir } = engine;
  return {
    Version: `Docker ${engine.serverVersion}`,
    API: engine.apiVersion,
    "Storage driver": engine.storageDriver ?? "",
    "Cgroup driver": `${engine.cgroupDriver}, version ${engine.cgroupVersion}`,
    Directory: dockerRootDir,
    ...(imagesDir !== dockerRootDir && { "Directory of images": imagesDir }),
    Runtimes: engine.runtimes.join(", "),
    Security: engine.securityOptions.map((option) => option.replace(/^name=/, "")).join(", "),
  };
}

/** File systems of the machine, with what the kubelet keeps on each. Pure. */
export function toFilesystems(
  { filesystems }: Pick<CadvisorFacts, "filesystems">,
  directories: Readonly<Record<string, string>>,
): NodeDetail["filesystems"] {
  const uses = Object.entries(directories)
    .filter(([, path]) => path !== "")
    .map(([use, path]) => ({ use, mountPoint: findMount(path, filesystems)?.mountPoint }));
  return filesystems.filter(isShown).map(({ device, mountPoint, capacity }) => ({
    device,
    mountPoint,
    use: uses
      .filter((it) => it.mountPoint === mountPoint)
      .map(({ use }) => use)
      .join(", "),
    capacityBytes: capacity.capacityBytes,
    usedBytes: capacity.capacityBytes - capacity.availableBytes,
  }));
}

const MIN_CAPACITY_BYTES = 2 ** 20;

/** Volumes of pods, mounts of containers and what is not a disk are left out. */
const isShown = ({ mountPoint, capacity }: NodeFilesystem) =>
  capacity.capacityBytes >= MIN_CAPACITY_BYTES &&
  !/^\/(?:sys|proc|dev)\/|\/pods\/[^/]+\/volumes\/|\/[0-9a-f]{64}\//.test(mountPoint);

/** Images, the largest first. Pure. */
export function toImageRows(
  images: readonly StoredImage[],
  pods: readonly Pod[],
  gc: Pick<ImageGcManager, "unusedMs" | "removable">,
  nowMs: number,
): ImageRow[] {
  const users = new Map<string, Set<string>>();
  for (const { metadata, status } of pods) {
    for (const { image, imageID = "" } of allStatusesOf(status)) {
      for (const name of [image, imageID.replace(/^docker(-pullable)?:\/\//, "")]) {
        users.getOrInsertComputed(name, () => new Set()).add(`${metadata.namespace}/${metadata.name}`);
      }
    }
  }
  return images
    .map(({ id, names, sizeBytes, createdSeconds }) => {
      const usedBy = [...new Set([id, ...names].flatMap((name) => [...(users.get(name) ?? [])]))];
      const unused = gc.unusedMs(id);
      return {
        id,
        names: [...names],
        sizeBytes,
        createdAt: createdSeconds * 1000,
        usedBy,
        isRemovable: usedBy.length === 0 && gc.removable.has(id),
        lastUse: unused === undefined ? 0 : nowMs - unused,
      };
    })
    .toSorted((a, b) => b.sizeBytes - a.sizeBytes);
}

/** Containers that are not ours, by memory. Pure. */
const toOtherContainerRows = (others: readonly OtherSample[]): OtherContainerRow[] =>
  others
    .map(({ facts, cgroup }) => ({
      name: facts.dockerName,
      image: facts.image,
      startedAt: facts.startedAt.getTime(),
      cpuCores: toCores(cgroup),
      memoryBytes: cgroup.stats.memory.workingSetBytes ?? 0,
    }))
    .toSorted((a, b) => b.memoryBytes - a.memoryBytes);

export function readMemory(proc = "/proc"): MachineMemory {
  const meminfo = readText(`${proc}/meminfo`) ?? "";
  const bytes = (name: string) => meminfoBytes(meminfo, name) ?? 0;
  return {
    totalBytes: bytes("MemTotal"),
    availableBytes: bytes("MemAvailable"),
    cachedBytes: bytes("Cached") + bytes("Buffers"),
    swapBytes: bytes("SwapTotal"),
    swapUsedBytes: bytes("SwapTotal") - bytes("SwapFree"),
  };
}

/** Interfaces that carried something. Pure. */
export const toInterfaceRows = (interfaces: readonly InterfaceCounters[]): InterfaceRow[] =>
  interfaces
    .filter(({ rxBytes, txBytes }) => rxBytes + txBytes > 0)
    .map(({ name, rxBytes, txBytes, rxErrors, txErrors, rxDropped, txDropped }) => ({
      name,
      receivedBytes: rxBytes,
      sentBytes: txBytes,
      errors: rxErrors + txErrors,
      dropped: rxDropped + txDropped,
    }));

/** Use between two readings; empty when cores were added or removed in between. Pure. */
export function toCoreUse(before: readonly CoreTimes[], after: readonly CoreTimes[]): CoreUse[] {
  if (before.length !== after.length) return [];
  return after.map((now, index) => {
    const then = before[index] ?? now;
    const spent = (kind: keyof CoreTimes) => Math.max(0, now[kind] - then[kind]);
    const all = spent("user") + spent("system") + spent("wait") + spent("stolen") + spent("idle");
    const percent = (kind: keyof CoreTimes) => (all > 0 ? (spent(kind) / all) * 100 : 0);
    return { user: percent("user"), system: percent("system"), wait: percent("wait"), stolen: percent("stolen") };
  });
}

/** Readings that are older are not compared with: their average says nothing about now. */
const MAX_AGE_MS = 60_000;
/** Readings that are younger are: a tick is ten milliseconds. */
const MIN_AGE_MS = 200;
/** Between the two readings of the first request. */
const FIRST_WINDOW_MS = 300;
/** Cgroups that are not of pods, read for one request. */
const MAX_CGROUPS = 64;

/** Rates of what the kernel only counts, from one request of the node's view to the next. */
class MachineRates {
  readonly #clock: Clock;
  #cores: { atMs: number; times: CoreTimes[] } | undefined;
  #coreUse: CoreUse[] = [];
  #cgroups = new Map<string, CpuReading[]>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The first request after a pause waits 300 ms. */
  async cores(): Promise<CoreUse[]> {
    const read = () => ({
      atMs: this.#clock.monotonicMs(),
      times: parseCoreTimes(readText("/proc/stat") ?? ""),
    });
    let now = read();
    let before = this.#cores;
    if (before && now.atMs - before.atMs < MIN_AGE_MS) return this.#coreUse;
    if (!before || now.atMs - before.atMs > MAX_AGE_MS) {
      before = now;
      await this.#clock.sleep(FIRST_WINDOW_MS);
      now = read();
    }
    this.#cores = now;
    this.#coreUse = toCoreUse(before.times, now.times);
    return this.#coreUse;
  }

  /** The cgroups directly below the root and those below them, without the ones of pods. */
  otherCgroups(reader: CgroupReader, sample: NodeSample): ShownCgroup[] {
    const known = knownPaths(sample);
    const found: ShownCgroup[] = [];
    const seen = new Map<string, CpuReading[]>();
    const atMs = this.#clock.monotonicMs();
    const readBelow = (parent: string, depth: number): void => {
      for (const name of reader.children(reader.ofPath(parent === "" ? "/" : parent))) {
        const path = `${parent}/${name}`;
        if (known.has(path)) continue;
        if (found.length >= MAX_CGROUPS) return;
        const stats = reader.read(reader.ofPath(path), "all", { hasQuota: false, kind: "group" });
        if (!stats) continue;
        const { usageNanoseconds } = stats.cpu;
        const readings = appendReading(this.#cgroups.get(path) ?? [], { atMs, usageNanoseconds });
        seen.set(path, readings);
        found.push({ path, stats, usageNanoCores: computeUsageNanoCores(readings) });
        if (depth > 1) readBelow(path, depth - 1);
      }
    };
    readBelow("", 2);
    this.#cgroups = seen;
    return found;
  }
}

/** The part of a sample that a row shows. */
export type ShownCgroup = Pick<CgroupSample, "path" | "stats" | "usageNanoCores">;

/** A cgroup of a sample, and how its row is named. */
type NamedCgroup = readonly [cgroup: ShownCgroup | undefined, name: string, pod?: CgroupRow["pod"]];

const SYSTEM_NAMES = { kubelet: "kubelet", runtime: "engine", misc: "system" } as const;

function namedCgroups({ root, kubepods, groups, system, pods, others }: NodeSample): NamedCgroup[] {
  return [
    [root, "node"],
    [kubepods, "all pods"],
    ...groups.map((group): NamedCgroup => [group, group.path.split("/").at(-1) ?? ""]),
    ...[...system].map(([name, cgroup]): NamedCgroup => [cgroup, SYSTEM_NAMES[name]]),
    ...pods.flatMap(podCgroups),
    ...others.map(({ facts, cgroup }): NamedCgroup => [cgroup, facts.dockerName]),
  ];
}

function podCgroups({ facts: { namespace, name }, cgroup, sandbox, containers }: PodSample): NamedCgroup[] {
  const pod = { namespace, name };
  // A pod without a cgroup of its own is recognized by each of its containers.
  const prefix = cgroup ? "" : `${namespace}/${name}/`;
  return [
    [cgroup, `${namespace}/${name}`, pod],
    [sandbox?.cgroup, `${prefix}sandbox`, pod],
    ...containers.map((container): NamedCgroup => [container.cgroup, prefix + container.facts.name, pod]),
  ];
}

/** Paths of the cgroups that a tree has a row for without `others`. */
export const knownPaths = (sample: NodeSample): Set<string> =>
  new Set(namedCgroups(sample).flatMap(([cgroup]) => cgroup?.path ?? []));

interface Node {
  row: CgroupRow;
  children: Node[];
}

/**
 * The cgroups of the node as a tree, siblings by memory. Pure.
 * @param sample with detail `all`: without it groups and sandboxes are missing
 * @param others cgroups that are not of pods; those of the sample are shown once
 */
export function toCgroupTree(sample: NodeSample, others: readonly ShownCgroup[] = []): CgroupRow[] {
  const nodes = new Map<string, Node>();
  const named = others.map((other): NamedCgroup => [other, shortName(other.path)]);
  for (const [cgroup, name, pod = null] of [...named, ...namedCgroups(sample)]) {
    if (cgroup) nodes.set(cgroup.path, { row: toRow(cgroup, name, pod), children: [] });
  }
  const tops: Node[] = [];
  for (const [path, node] of nodes) (parentOf(path, nodes)?.children ?? tops).push(node);
  return tops.flatMap((node) => flatten(node, 0));
}

/** The last part of a path, ids of containers as `docker ps` prints them. */
const shortName = (path: string): string =>
  (path.split("/").at(-1) ?? "").replace(/[0-9a-f]{64}/, (id) => id.slice(0, 12));

/** The nearest cgroup above that is shown. */
function parentOf(path: string, nodes: ReadonlyMap<string, Node>): Node | undefined {
  for (let end = path; end !== "/" && end !== ""; ) {
    end = end.slice(0, end.lastIndexOf("/")) || "/";
    const found = nodes.get(end);
    if (found) return found;
  }
  return undefined;
}

function flatten({ row, children }: Node, depth: number): CgroupRow[] {
  const ordered = children.toSorted((a, b) => b.row.memoryBytes - a.row.memoryBytes);
  return [{ ...row, depth }, ...ordered.flatMap((child) => flatten(child, depth + 1))];
}

const toRow = (cgroup: ShownCgroup, name: string, pod: CgroupRow["pod"]): CgroupRow => ({
  path: cgroup.path,
  name,
  pod,
  depth: 0,
  cpuCores: toCores(cgroup),
  memoryBytes: cgroup.stats.memory.workingSetBytes ?? 0,
  tasks: cgroup.stats.pids?.current ?? null,
});

const toCores = ({ usageNanoCores }: Pick<CgroupSample, "usageNanoCores">): number | null =>
  usageNanoCores === undefined ? null : usageNanoCores / 1e9;
