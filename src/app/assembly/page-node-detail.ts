import type { Pod } from "../../api/pod.ts";
import type { CadvisorFacts, CadvisorFactsReader, NodeFilesystem } from "../../cadvisor/cadvisor-facts.ts";
import type { ImageRow, NodeDetail } from "../../page/wire.ts";
import { toCgroupTree } from "../../pageserver/cgroup-tree.ts";
import type { StoredImage } from "../../runtime/image-inventory.ts";
import type { NodeStats } from "../../stats/node-stats.ts";
import type { AssembledKubelet } from "./assembled-kubelet.ts";

/** Reads the facts of the machine that the page shows. */
export async function readNodeDetail(
  { context, imageGc, imageInventory, engineIfKnown }: AssembledKubelet,
  stats: NodeStats,
  cadvisor: CadvisorFactsReader,
  pods: readonly Pod[],
): Promise<Omit<NodeDetail, "state" | "events">> {
  const [sample, store] = await Promise.all([
    stats.sampleWithRates("all"),
    imageInventory.list().catch(() => undefined),
  ]);
  const facts = cadvisor.recent();
  const { rootDir } = context.options;
  const nowMs = context.clock.now().getTime();
  return {
    cgroups: toCgroupTree(sample),
    filesystems: toFilesystems(facts, { "root directory": rootDir, images: engineIfKnown()?.imagesDir ?? "" }),
    images: toImageRows(store?.images ?? [], pods, (id) => imageGc.unusedMs(id), nowMs),
    machine: {
      "Operating system": facts.osVersion,
      Kernel: facts.kernelVersion,
      Engine: facts.engineVersion && `Docker ${facts.engineVersion}`,
      Cores: String(facts.machine.num_cores),
      "Clock rate": `${(facts.machine.cpu_frequency_khz / 1e6).toFixed(2)} GHz`,
      "Machine id": facts.machine.machine_id,
      "Boot id": facts.machine.boot_id,
    },
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
  unusedMs: (id: string) => number | undefined,
  nowMs: number,
): ImageRow[] {
  const used = new Set(
    pods.flatMap(({ status }) =>
      [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])].flatMap(
        ({ image, imageID = "" }) => [image, imageID.replace(/^docker(-pullable)?:\/\//, "")],
      ),
    ),
  );
  return images
    .map(({ id, names, sizeBytes }) => {
      const isInUse = used.has(id) || names.some((name) => used.has(name));
      const unused = unusedMs(id);
      return { id, names: [...names], sizeBytes, isInUse, lastUse: unused === undefined ? 0 : nowMs - unused };
    })
    .toSorted((a, b) => b.sizeBytes - a.sizeBytes);
}
