import { join } from "node:path";
import type { Pod } from "../../base/api/pod.ts";
import type { HostFiles } from "./host-files.ts";
import type { Mounter } from "./mounter.ts";
import { type PodDirectories, pluginDirectory } from "./pod-directories.ts";
import { PLUGINS, pluginOf, usedVolumes } from "./pod-volumes.ts";
import type { VolumeEngine } from "./volume-engine.ts";

interface VolumeRemoverDeps {
  engine: Pick<VolumeEngine, "removeVolume">;
  hostFiles: HostFiles;
  /** Absent where mounts are impossible. */
  mounter: Mounter | undefined;
  /** Reads the list of mounts, for which no right is needed. */
  mounts: Mounter;
}

/** Removes volumes of pods from this machine. Nothing that is mounted, or that a link leads to, is removed. */
export class VolumeRemover {
  readonly #deps: VolumeRemoverDeps;

  constructor(deps: VolumeRemoverDeps) {
    this.#deps = deps;
  }

  /** Removes the mounts, nfs volumes and directory of a pod. @throws Error when something is still in use */
  async removeAll(directories: PodDirectories, signal: AbortSignal): Promise<void> {
    const { engine, hostFiles } = this.#deps;
    const nfsNotes = join(directories.pod, "plugins", "kubernetes.io~nfs");
    const volumes = await this.#list(nfsNotes);
    for (const name of (await hostFiles.listAll(volumes.map((volume) => join(nfsNotes, volume)))).flat()) {
      await engine.removeVolume(name, signal);
    }
    signal.throwIfAborted();
    await this.#remove(directories.pod);
  }

  /** Removes the volumes that the pod does not use any more. @throws Error when something is still in use */
  async removeUnused(pod: Pod, directories: PodDirectories, signal: AbortSignal): Promise<void> {
    const { engine, hostFiles } = this.#deps;
    const wanted = new Set(usedVolumes(pod).map((volume) => `${pluginOf(volume)} ${volume.name}`));
    const wantedNames = new Set(usedVolumes(pod).map(({ name }) => name));
    const tops = [directories.volumes, directories.plugins, directories.subPaths];
    const [volumes = [], states = [], subPaths = []] = await hostFiles.listAll(tops);
    const plugins = PLUGINS.filter((plugin) => [...volumes, ...states].includes(pluginDirectory(plugin)));
    const places = plugins.flatMap((plugin) => [directories.volumesOf(plugin), directories.statesOf(plugin)]);
    const found = places.length > 0 ? await hostFiles.listAll(places) : [];
    for (const [index, plugin] of plugins.entries()) {
      const known = new Set([...(found[2 * index] ?? []), ...(found[2 * index + 1] ?? [])]);
      for (const name of known) {
        if (wanted.has(`${plugin} ${name}`)) continue;
        signal.throwIfAborted();
        const state = directories.pluginState(plugin, name);
        if (plugin === "nfs") for (const volume of await this.#list(state)) await engine.removeVolume(volume, signal);
        await this.#remove(directories.volume(plugin, name));
        await this.#remove(state);
      }
    }
    for (const name of subPaths) {
      if (!wantedNames.has(name)) await this.#remove(join(directories.subPaths, name));
    }
  }

  /** Unmounts what is mounted at or beneath a directory, then removes it; a link is removed itself. */
  async #remove(directory: string): Promise<void> {
    const { mounter, mounts, hostFiles } = this.#deps;
    for (const target of mounts.listBeneath(directory).reverse()) await mounter?.unmount(target);
    const [left] = mounts.listBeneath(directory);
    if (left !== undefined) throw new Error(`cannot remove "${directory}": "${left}" is still mounted`);
    await hostFiles.removeTree(directory);
  }

  async #list(directory: string): Promise<string[]> {
    return (await this.#deps.hostFiles.listAll([directory])).flat();
  }
}
