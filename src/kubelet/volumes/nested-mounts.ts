import { chmodSync, lstatSync, rmdirSync, unlinkSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import type { Container, Pod } from "../../base/api/pod.ts";
import { makeDirectory } from "./pod-directories.ts";

/** A mount below another one of the same container. */
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
