import { chmodSync, chownSync, fstatSync, lchownSync, lstatSync, mkdirSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";
import { descriptorPath, HANDLE_ONLY } from "../../base/files/beneath.ts";
import { openFile } from "../../base/files/whole-file.ts";
import type { PodUID } from "../../base/model/pod.ts";
import { codeOf, unlessCode } from "../../base/text/error-message.ts";

/** Name of the directory of a volume plugin, which is called as the kubelet calls it: `empty-dir`. */
const pluginDirectory = (plugin: string) => `kubernetes.io~${plugin}`;

/** Directories of one volume of a pod. */
export interface VolumePaths {
  /** Its files. */
  directory: string;
  /** Notes of its plugin, e.g. the file `ready`, by which contents and modes survive a restart of the kubelet. */
  stateDirectory: string;
}

/** Paths of one pod under `<root-dir>/pods/<uid>`, laid out as the kubelet does it. */
export class PodDirectories {
  readonly pod: string;

  /** @throws Error when the uid (a manifest may choose it) is not a plain directory name. */
  constructor(rootDir: string, uid: PodUID) {
    if (!isDirectoryName(uid)) throw new Error(`pod uid ${JSON.stringify(uid)} cannot be a directory name`);
    this.pod = join(rootDir, "pods", uid);
  }

  get etcHosts(): string {
    return join(this.pod, "etc-hosts");
  }

  get volumes(): string {
    return join(this.pod, "volumes");
  }

  get plugins(): string {
    return join(this.pod, "plugins");
  }

  get subPaths(): string {
    return join(this.pod, "volume-subpaths");
  }

  volumesOf(plugin: string): string {
    return join(this.volumes, pluginDirectory(plugin));
  }

  volume(plugin: string, name: string): string {
    return join(this.volumesOf(plugin), name);
  }

  statesOf(plugin: string): string {
    return join(this.plugins, pluginDirectory(plugin));
  }

  /** Where a plugin keeps its notes on a volume, e.g. the file `ready`. */
  pluginState(plugin: string, name: string): string {
    return join(this.statesOf(plugin), name);
  }

  paths(plugin: string, name: string): VolumePaths {
    return { directory: this.volume(plugin, name), stateDirectory: this.pluginState(plugin, name) };
  }

  /** Bind mount of the `index`-th volumeMount of a container. */
  subPath(volume: string, container: string, index: number): string {
    return join(this.subPaths, volume, container, String(index));
  }

  /** Makes the pod's directory and its first level; existing ones keep their mode. */
  create(): void {
    for (const directory of [this.volumes, this.plugins, join(this.pod, "containers")]) {
      mkdirSync(directory, { recursive: true, mode: 0o750 });
    }
  }
}

/** Names that stay inside the directory they are joined to. */
export const isDirectoryName = (name: string) =>
  name !== "" && name !== "." && name !== ".." && !name.includes("/") && !name.includes("\0");

/** Makes a directory (and parents of mode 0755) with exactly this mode, regardless of the umask. */
export function makeDirectory(path: string, mode: number): void {
  mkdirSync(join(path, ".."), { recursive: true, mode: 0o755 });
  mkdirSync(path, { recursive: true, mode });
  chmodSync(path, mode);
}

/** Group access of entries in a volume whose pod has an fsGroup. Source: upstream's `SetVolumeOwnership`. */
const READ_WRITE = 0o660;
export const READ_ONLY = 0o440;
const EXECUTE = 0o110;
const SET_GROUP_ID = 0o2000;

/** Each level takes an open descriptor. */
const MAX_DEPTH = 1000;

/** Source: core/v1 `PodSecurityContext.fsGroupChangePolicy`. */
type FsGroupChangePolicy = "OnRootMismatch" | "Always";

interface FsGroupOptions {
  fsGroup: number;
  /** No container writes to the volume: the group may only read. */
  readOnly: boolean;
  /** `OnRootMismatch` does nothing when the top directory is as it should be. Default `Always`. */
  policy?: FsGroupChangePolicy;
}

/**
 * Gives a volume to a group: every entry gets the group and group access, directories the setgid bit, so that later
 * entries belong to the group, too. Links are changed themselves and never followed, also when entries are exchanged
 * meanwhile: all work goes through open descriptors.
 */
export function applyFsGroup(root: string, options: FsGroupOptions): void {
  const stats = lstatSync(root);
  const matches = stats.gid === options.fsGroup && (stats.mode & 0o7777) === wantedMode(stats, options);
  if (options.policy === "OnRootMismatch" && matches) return;
  changeEntry(root, options, 0);
}

/** Children first: the top directory then shows whether the work was finished. */
function changeEntry(path: string, options: FsGroupOptions, depth: number): void {
  if (depth > MAX_DEPTH)
    throw new Error(`cannot give the volume to fsGroup: more than ${MAX_DEPTH} levels of directories`);
  using entry = unlessCode(["ENOENT"], () => openFile(path, HANDLE_ONLY));
  if (!entry) return;
  const stats = fstatSync(entry.descriptor);
  const self = descriptorPath(entry.descriptor);
  if (stats.isSymbolicLink()) {
    if (stats.gid !== options.fsGroup) giveTo(lchownSync, path, stats.uid, options.fsGroup);
    return;
  }
  if (stats.isDirectory()) {
    for (const name of readdirSync(self)) changeEntry(`${self}/${name}`, options, depth + 1);
  }
  if (stats.gid !== options.fsGroup) giveTo(chownSync, self, stats.uid, options.fsGroup);
  // The change of group has cleared setgid on files.
  const wanted = wantedMode(stats, options);
  if ((fstatSync(entry.descriptor).mode & 0o7777) !== wanted) chmodSync(self, wanted);
}

function giveTo(change: typeof chownSync, path: string, uid: number, gid: number): void {
  try {
    change(path, uid, gid);
  } catch (error) {
    if (codeOf(error) !== "EPERM") throw error;
    const message = `cannot give the volume to fsGroup ${gid}: it takes a kubelet that runs as root, or is in that group`;
    throw new Error(message, { cause: error });
  }
}

function wantedMode(stats: Stats, { readOnly }: FsGroupOptions): number {
  const mode = (stats.mode & 0o7777) | (readOnly ? READ_ONLY : READ_WRITE);
  return stats.isDirectory() ? mode | SET_GROUP_ID | EXECUTE : mode;
}
