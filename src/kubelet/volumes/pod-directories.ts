import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { PodUID } from "../../base/model/pod.ts";

/** Name of the directory of a volume plugin, which is called as the kubelet calls it: `empty-dir`. */
export const pluginDirectory = (plugin: string) => `kubernetes.io~${plugin}`;

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
