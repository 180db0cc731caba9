import { chmodSync, mkdirSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { EmptyDirVolumeSource, Pod } from "../../base/api/pod.ts";
import { quantityToWhole } from "../../base/api/quantity.ts";
import { readBoundedText } from "../../base/files/bounded-read.ts";
import { containersOf } from "../../base/model/pod-containers.ts";
import { computePodMemoryLimit } from "../../plan/pod-cgroup.ts";
import type { Mounter } from "./mounter.ts";
import { makeDirectory } from "./pod-directories.ts";

export interface EmptyDirPaths {
  /** The directory that containers see. */
  directory: string;
  /** Keeps the file `ready`, so that contents and modes survive a restart of the kubelet. */
  stateDirectory: string;
}

/**
 * Makes the directory of an emptyDir volume, once per life of the pod: mode 0777, with fsGroup 2777 and the group;
 * `Memory` a tmpfs (1777) of at most `sizeLimit` bytes and the pod's memory limit, `HugePages` a hugetlbfs. An edit of the
 * pod may change limit, medium and group: a new limit keeps the contents, a new medium begins empty.
 * @param mounter undefined where mounts are impossible.
 * @returns whether it is ready; if not, the fsGroup is to be applied, and {@link writeState} called with it or ""
 * @throws Error with a message for users.
 */
export async function prepareEmptyDir(
  { medium = "", sizeLimit }: EmptyDirVolumeSource,
  pod: Pod,
  { directory, stateDirectory }: EmptyDirPaths,
  mounter: Mounter | undefined,
): Promise<boolean> {
  const options = mountOptions(medium, sizeLimit, pod);
  if (options && !mounter) {
    throw new Error(`emptyDir with medium ${medium} needs a kubelet that runs as root and can mount`);
  }
  const state = `${pod.spec.securityContext.fsGroup ?? ""}`;
  let known = readState(stateDirectory);
  if (!options && isMounted(directory)) {
    await mounter?.unmount(directory);
    known = undefined;
  }
  // A tmpfs is gone after a reboot, the notes on disk are not.
  const isThere = options ? isMounted(directory) : statSync(directory, { throwIfNoEntry: false }) !== undefined;
  if (isThere && options?.type === "tmpfs") await fitSize(directory, sizeLimit, pod, mounter);
  if (isThere && known === state) return true;
  if (!isThere || known === undefined) {
    makeDirectory(directory, 0o777);
    if (options && !isThere) await mounter?.mountFileSystem(options.type, directory, options.options);
    if (options?.type === "tmpfs") chmodSync(directory, 0o1777);
  }
  return false;
}

/** State files hold a group id. */
const MAX_STATE_BYTES = 64 * 1024;

/** The state of the last complete set-up of a volume: its fsGroup or "". */
export function readState(stateDirectory: string): string | undefined {
  const file = join(stateDirectory, "ready");
  return statSync(file, { throwIfNoEntry: false }) && readBoundedText(file, MAX_STATE_BYTES);
}

export function writeState(stateDirectory: string, state: string): void {
  mkdirSync(stateDirectory, { recursive: true, mode: 0o750 });
  writeFileSync(join(stateDirectory, "ready"), state);
}

async function fitSize(
  directory: string,
  sizeLimit: string | undefined,
  pod: Pod,
  mounter: Mounter | undefined,
): Promise<void> {
  const limit = computeTmpfsBytes(sizeLimit, pod);
  if (limit === 0) return;
  const { blocks, bsize } = statfsSync(directory);
  const wanted = Math.ceil(limit / bsize);
  if (blocks === wanted) return;
  // A pod that may have less memory is bounded anyway, and what is in the volume must not keep it from starting.
  const isOfPod = limit !== bytesOf(sizeLimit);
  if (isOfPod && wanted < blocks) return;
  await mounter?.resizeTmpfs(directory, limit);
}

const bytesOf = (sizeLimit: string | undefined) => (sizeLimit === undefined ? 0 : quantityToWhole(sizeLimit));

/**
 * Size of a tmpfs: sizeLimit, but at most the memory limit of the pod, otherwise its containers would be killed instead
 * of seeing a full disk. 0: only the kernel's limit. Source: upstream's `SizeMemoryBackedVolumes`.
 */
function computeTmpfsBytes(sizeLimit: string | undefined, pod: Pod): number {
  const bounds = [bytesOf(sizeLimit), computePodMemoryLimit(pod)].filter((bytes) => bytes > 0);
  return bounds.length === 0 ? 0 : Math.min(...bounds);
}

/** A file system of its own, as tmpfs and hugetlbfs are (a bind mount need not be). */
export function isMounted(directory: string): boolean {
  const own = statSync(directory, { throwIfNoEntry: false });
  return own !== undefined && own.dev !== statSync(dirname(directory)).dev;
}

interface EmptyDirMount {
  type: "tmpfs" | "hugetlbfs";
  options: string[];
}

/** @returns undefined for a plain directory. @throws Error for a medium there is not. */
export function mountOptions(medium: string, sizeLimit: string | undefined, pod: Pod): EmptyDirMount | undefined {
  if (medium === "") return undefined;
  if (medium === "Memory") {
    const limit = computeTmpfsBytes(sizeLimit, pod);
    // Without a limit the kernel's own: half of the memory of the machine.
    return { type: "tmpfs", options: limit > 0 ? [`size=${limit}`, "mode=1777"] : ["mode=1777"] };
  }
  const pageBytes = pageSizeBytes(medium, pod);
  if (pageBytes === undefined) throw new Error(`unknown storage medium "${medium}"`);
  const limit = bytesOf(sizeLimit);
  return { type: "hugetlbfs", options: [`pagesize=${pageBytes}`, ...(limit > 0 ? [`size=${limit}`] : [])] };
}

/** `HugePages` alone means the one page size the pod's containers ask for. */
function pageSizeBytes(medium: string, pod: Pod): number | undefined {
  if (medium.startsWith("HugePages-")) return quantityToWhole(medium.slice("HugePages-".length));
  if (medium !== "HugePages") return undefined;
  const sizes = new Set<string>();
  for (const { resources } of containersOf(pod.spec)) {
    for (const name of Object.keys({ ...resources.limits, ...resources.requests })) {
      if (name.startsWith("hugepages-")) sizes.add(name.slice("hugepages-".length));
    }
  }
  const [size] = sizes;
  if (size === undefined || sizes.size > 1) {
    throw new Error("medium HugePages needs exactly one hugepages-<size> among the resources of the pod's containers");
  }
  return quantityToWhole(size);
}
