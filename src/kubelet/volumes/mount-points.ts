import { chmodSync, lstatSync, mkdirSync, readlinkSync, rmdirSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import type { Container, Pod } from "../../base/api/pod.ts";
import { descriptorPath, type Held, openBeneath } from "../../base/files/beneath.ts";
import type { Mounter } from "./mounter.ts";
import { makeDirectory } from "./pod-directories.ts";

/** Tries before an entry that keeps changing during the walk ends the attempt until the next sync. */
const ATTEMPTS = 5;

/**
 * Makes the sub path of a volume a mount point of its own, which later changes to names in the volume cannot redirect:
 * the path is opened without ever leaving the volume, and what is held open is bound to `target`. A missing path becomes
 * a directory with the mode of the volume (parents 0755). Source: upstream's `subpath` package.
 * @param volumePath directory of the volume.
 * @param target `<pod>/volume-subpaths/<volume>/<container>/<index>`.
 * @throws EscapeError, a system error or the output of mount(8): for the log, not for the pod's owner.
 */
export async function bindSubPath(
  volumePath: string,
  subPath: string,
  target: string,
  mounter: Mounter,
): Promise<void> {
  const mode = statSync(volumePath).mode & 0o7777;
  for (let attempt = 1; ; attempt++) {
    using held = openExistingOr(volumePath, subPath, { mode });
    await bindHeld(held, target, mounter);
    if (isSame(held, target)) return;
    await mounter.unmount(target);
    if (attempt >= ATTEMPTS) throw new Error(`${target} does not show "${subPath}" of ${volumePath} after mounting it`);
  }
}

/**
 * Real path of something in a volume that only we write to. No mount is made, so it works without root.
 * @throws as {@link bindSubPath}.
 */
export function resolveOwnSubPath(volumePath: string, subPath: string): string {
  using held = openBeneath(volumePath, subPath);
  return readlinkSync(descriptorPath(held.descriptor));
}

/** Directories are only made when the path is missing, so that an existing one keeps its mode. */
function openExistingOr(volumePath: string, subPath: string, create: { mode: number }): Held {
  try {
    return openBeneath(volumePath, subPath);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return openBeneath(volumePath, subPath, create);
  }
}

async function bindHeld(held: Held, target: string, mounter: Mounter): Promise<void> {
  if (mounter.listBeneath(target).length > 0) {
    if (isSame(held, target)) return;
    await mounter.unmount(target);
  }
  mkdirSync(dirname(target), { recursive: true, mode: 0o750 });
  const stale = lstatSync(target, { throwIfNoEntry: false });
  // An edit of the pod changed the kind of the mount: a directory mounts over a directory only.
  if (stale && stale.isDirectory() !== held.stats.isDirectory()) removeTarget(target, stale.isDirectory());
  if (held.stats.isDirectory()) mkdirSync(target, { recursive: true, mode: 0o750 });
  else if (!lstatSync(target, { throwIfNoEntry: false })) writeFileSync(target, "", { mode: 0o640, flag: "wx" });
  await mounter.bindDescriptor(held.descriptor, target);
}

/** Only what is empty: an empty directory or an empty file is all we ever make here. */
function removeTarget(target: string, isDirectory: boolean): void {
  if (isDirectory) rmdirSync(target);
  else unlinkSync(target);
}

function isSame(held: Held, target: string): boolean {
  const seen = lstatSync(target, { throwIfNoEntry: false });
  return seen !== undefined && seen.dev === held.stats.dev && seen.ino === held.stats.ino;
}

interface NestedMount {
  /** Index of its parent among the targets: the nearest mount above. */
  outer: number;
  inner: number;
  /** Path from the outer mount to the inner one, e.g. `conf.d/extra`. */
  relative: string;
}

/** @param targets of all mounts of one container, absolute. */
export function findNestedMounts(targets: readonly string[]): NestedMount[] {
  const plain = targets.map((target) => normalize(target).replace(/(?<=.)\/$/, ""));
  return plain.flatMap((target, inner): NestedMount[] => {
    let outer = -1;
    for (const [index, other] of plain.entries()) {
      if (target.startsWith(`${other}/`) && other.length > (plain[outer]?.length ?? 0)) outer = index;
    }
    return outer < 0 ? [] : [{ outer, inner, relative: target.slice((plain[outer]?.length ?? 0) + 1) }];
  });
}

const toAbsolute = (path: string) => (path.startsWith("/") ? path : `/${path}`);

/** First names of all paths in a volume at which some container of the pod mounts something else. */
export function computeMountPointNames(pod: Pod, volumeName: string): Set<string> {
  const names = new Set<string>();
  const add = ({ volumeMounts = [] }: Container) => {
    const targets = volumeMounts.map(({ mountPath }) => toAbsolute(mountPath));
    for (const { outer, relative } of findNestedMounts(targets)) {
      if (volumeMounts[outer]?.name === volumeName) names.add(relative.split("/", 1)[0] ?? "");
    }
  };
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) add(container);
  return names;
}

/**
 * Makes what something can be mounted on, in a volume of files that containers see read-only, where the engine could not
 * make it. Where a file of the volume has the name nothing is made: the engine follows it. Source:
 * upstream's `MakeNestedMountpoints`, which makes directories only.
 */
export function makeMountPoint(directory: string, relative: string, isDirectory: boolean): void {
  const first = join(directory, relative.split("/", 1)[0] ?? "");
  if (lstatSync(first, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  const path = join(directory, relative);
  const present = lstatSync(path, { throwIfNoEntry: false });
  if (present?.isDirectory() === isDirectory) return;
  // An edit of the pod changed the kind of the mount; the directory or file that we created is empty.
  if (present) (present.isDirectory() ? rmdirSync : unlinkSync)(path);
  if (isDirectory) {
    makeDirectory(path, 0o755);
    return;
  }
  if (dirname(path) !== directory) makeDirectory(dirname(path), 0o755);
  writeFileSync(path, "", { flag: "wx" });
  chmodSync(path, 0o644);
}
