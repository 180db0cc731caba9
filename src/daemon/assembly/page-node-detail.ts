import type { Pod } from "../../base/api/pod.ts";
import type { EngineInfo } from "../../base/model/node.ts";
import type { StoredImage } from "../../docker/image-inventory.ts";
import type { ImageGcManager } from "../../kubelet/images/image-gc-manager.ts";
import type { ImageRow, NodeDetail } from "../../page/wire.ts";
import { toCgroupTree } from "../../server/page/cgroup-tree.ts";
import type { CadvisorFacts, CadvisorFactsReader, NodeFilesystem } from "../../stats/cadvisor/cadvisor-facts.ts";
import type { NodeStats } from "../../stats/node-stats.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";
import { type MachineRates, readMemory, toInterfaceRows } from "./page-machine.ts";

/** An engine that does not answer by then leaves the view without its images. */
const IMAGES_WITHIN_MS = 2000;

/** Reads the facts of the machine that the page shows. */
export async function readNodeDetail(
  { context, imageGc, imageInventory, engineIfKnown }: AssembledKubelet,
  stats: NodeStats,
  cadvisor: CadvisorFactsReader,
  rates: MachineRates,
  pods: readonly Pod[],
): Promise<Omit<NodeDetail, "state" | "events">> {
  const tooLate = context.clock.sleep(IMAGES_WITHIN_MS).then(() => undefined);
  const [sample, cores, store] = await Promise.all([
    stats.sampleWithRates("all"),
    rates.cores(),
    Promise.race([imageInventory.list().catch(() => undefined), tooLate]),
  ]);
  const facts = cadvisor.recent();
  const { rootDir } = context.options;
  const nowMs = context.clock.now().getTime();
  return {
    cgroups: toCgroupTree(sample, rates.otherCgroups(stats.reader, sample)),
    cores,
    memory: readMemory(),
    interfaces: toInterfaceRows(sample.interfaces),
    filesystems: toFilesystems(facts, { "root directory": rootDir, images: engineIfKnown()?.imagesDir ?? "" }),
    images: toImageRows(store?.images ?? [], pods, imageGc, nowMs),
    imageGcPercent: context.options.imageGcHighThresholdPercent,
    machine: {
      "Operating system": facts.osVersion,
      Kernel: facts.kernelVersion,
      Cores: String(facts.machine.num_cores),
      "Clock rate": `${(facts.machine.cpu_frequency_khz / 1e6).toFixed(2)} GHz`,
      "Machine id": facts.machine.machine_id,
      "Boot id": facts.machine.boot_id,
    },
    engine: toEngineFacts(engineIfKnown()),
  };
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
  places: Readonly<Record<string, string>>,
): NodeDetail["filesystems"] {
  const holds = (mountPoint: string, path: string) =>
    path !== "" && (mountPoint === "/" || path === mountPoint || path.startsWith(`${mountPoint}/`));
  const mountOf = (path: string) =>
    filesystems
      .map(({ mountPoint }) => mountPoint)
      .filter((mountPoint) => holds(mountPoint, path))
      .toSorted((a, b) => b.length - a.length)[0];
  const uses = Object.entries(places).map(([use, path]) => ({ use, mountPoint: mountOf(path) }));
  return filesystems.filter(isShown).map(({ device, mountPoint, capacity }) => ({
    device,
    mountPoint,
    use: uses
      .filter((place) => place.mountPoint === mountPoint)
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
    const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status ?? {};
    for (const { image, imageID = "" } of [
      ...initContainerStatuses,
      ...containerStatuses,
      ...ephemeralContainerStatuses,
    ]) {
      for (const name of [image, imageID.replace(/^docker(-pullable)?:\/\//, "")]) {
        const known = users.get(name) ?? new Set();
        users.set(name, known.add(`${metadata.namespace}/${metadata.name}`));
      }
    }
  }
  return images
    .map(({ id, names, sizeBytes, createdSeconds }) => {
      const usedBy = [...new Set([id, ...names].flatMap((name) => [...(users.get(name) ?? [])]))];
      const isInUse = usedBy.length > 0;
      const unused = gc.unusedMs(id);
      return {
        id,
        names: [...names],
        sizeBytes,
        createdAt: createdSeconds * 1000,
        isInUse,
        usedBy,
        isRemovable: !isInUse && gc.removable.has(id),
        lastUse: unused === undefined ? 0 : nowMs - unused,
      };
    })
    .toSorted((a, b) => b.sizeBytes - a.sizeBytes);
}
