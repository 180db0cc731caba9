import { mkdirSync, readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Container, Pod, Volume, VolumeMount } from "../api/pod.ts";
import { descriptorPath, openBeneath } from "../files/beneath.ts";
import { readBoundedText } from "../files/bounded-read.ts";
import type { Clock } from "../model/clock.ts";
import type { ObjectIndex } from "../model/desired-pod.ts";
import type { PodUID } from "../model/identity.ts";
import type { Logger } from "../model/logger.ts";
import type { Mount } from "../model/mount.ts";
import type { NodeInfo } from "../model/node.ts";
import { containersOf } from "../model/pod-containers.ts";
import { type NodeAllocatable, toNodeAllocatable } from "../plan/downward-api.ts";
import { ENV_FILE_LIMIT_BYTES } from "../plan/env-file.ts";
import type { EnvironmentVariable } from "../plan/environment.ts";
import { messageOf } from "../text/error-message.ts";
import { claimVolumeName, nfsVolumeName, setUpClaim, setUpNfs } from "./docker-volume.ts";
import { isMounted, setUpEmptyDir } from "./empty-dir.ts";
import { fetchTokens, fileVolumePlugin, writeFileVolume } from "./file-volume.ts";
import { type HostFiles, LocalHostFiles } from "./host-files.ts";
import { setUpImageVolume } from "./image-volume.ts";
import { Mounter } from "./mounter.ts";
import { type MountSource, toMounts } from "./mounts.ts";
import { isDirectoryName, type PluginName, PodDirectories } from "./pod-directories.ts";
import type { VolumeEngine } from "./volume-engine.ts";
import { setUpFailure, VolumeError, type VolumeFailure } from "./volume-error.ts";

export interface VolumeManagerOptions {
  /** `--root-dir`; made when missing. */
  rootDir: string;
  node: NodeInfo;
  /** Value of `resourceFieldRef` for a container without a limit; the whole machine when absent. */
  allocatable?: NodeAllocatable;
  clock: Clock;
  logger: Logger;
  engine: VolumeEngine;
  /** Default: in this thread. */
  hostFiles?: HostFiles;
  /** Absent where mounts are impossible (see `canMount`): then memory-backed emptyDirs and most subPaths are refused. */
  mounter?: Mounter;
  /** Whether ownership can be changed; default: whether we are root. */
  isRoot?: boolean;
  /** Called after each set-up of a volume, also of one that was ready. */
  onSetUp?: (volume: Volume, durationMs: number, failed: boolean) => void;
  /** Volumes that need an API server; absent: there is none. */
  cluster?: ClusterVolumes;
  /** Storage that a claim of the pod requests; undefined for a claim without a document. */
  claimBytesOf?: (pod: Pod, claimName: string) => number | undefined;
  /** Put on every Docker volume we make, e.g. `kubelet-ts.io/node`. */
  ownerLabels: Readonly<Record<string, string>>;
}

/** Volumes of pods as an API server knows them. */
export interface ClusterVolumes {
  /** Why a claim cannot be mounted; undefined for a pod that the API server does not know. */
  claimProblemOf(pod: Pod, claimName: string): string | undefined;
  /** A token of the pod's service account. @throws Error with a message for events */
  tokenFor(pod: Pod, wish: { audience: string; expirationSeconds: number }): Promise<string>;
}

/** Result of {@link VolumeManager.refresh}. */
export interface RefreshOutcome {
  /** Names of the volumes whose files are different now. */
  changed: string[];
  /** Volumes that could not be brought up to date; they keep what they had. */
  failures: VolumeFailure[];
}

/** Where the bytes of one volume of a pod are, for statistics and limits. */
export interface VolumeUsagePath {
  /** `spec.volumes[].name`. */
  name: string;
  path: string;
  /** `statfs`: the volume is a file system of its own. `du`: its files have to be added up. */
  method: "statfs" | "du";
  /** Counts against the pod's ephemeral-storage. */
  isEphemeral: boolean;
  /** Only emptyDir: canonical quantity. */
  sizeLimit?: string;
}

/**
 * The volumes of pods on this machine, as the kubelet lays them out under `<root-dir>/pods/<uid>`. Every method may be
 * repeated at any time: what is already so stays. Calls for one pod must not overlap (its worker sees to that).
 */
export class VolumeManager {
  readonly #options: VolumeManagerOptions;
  readonly #rootDir: string;
  readonly #isRoot: boolean;
  readonly #hostFiles: HostFiles;
  /** To see mounts one need not be able to make them. */
  readonly #mounts = new Mounter();

  constructor(options: VolumeManagerOptions) {
    this.#options = options;
    mkdirSync(options.rootDir, { recursive: true, mode: 0o750 });
    // The kernel's list of mounts has real paths.
    this.#rootDir = realpathSync(options.rootDir);
    this.#hostFiles = options.hostFiles ?? new LocalHostFiles(options.mounter);
    this.#isRoot = options.isRoot ?? process.getuid?.() === 0;
  }

  /** Paths of one pod. @throws Error when the uid is no plain directory name. */
  directories(uid: PodUID): PodDirectories {
    return new PodDirectories(this.#rootDir, uid);
  }

  /**
   * Makes the pod's directory and every volume that some container of it mounts or reads its environment from.
   * @throws VolumeError with every volume that failed; the others are ready.
   */
  async setUp(pod: Pod, { objects }: { objects: ObjectIndex }, signal: AbortSignal): Promise<void> {
    const { clock, onSetUp } = this.#options;
    this.#directoriesOf(pod).create();
    const failures: VolumeFailure[] = [];
    for (const volume of usedVolumes(pod)) {
      signal.throwIfAborted();
      const startedAtMs = clock.monotonicMs();
      try {
        await this.#setUpOne(volume, pod, objects, signal);
        onSetUp?.(volume, clock.monotonicMs() - startedAtMs, false);
      } catch (error) {
        signal.throwIfAborted();
        onSetUp?.(volume, clock.monotonicMs() - startedAtMs, true);
        failures.push(setUpFailure(volume.name, messageOf(error)));
      }
    }
    const [first, ...others] = failures;
    if (first) throw new VolumeError([first, ...others]);
  }

  /**
   * The volume mounts of a container of a pod that was set up, in the order of `volumeMounts`, sub paths bound.
   * @param env of the container, for `subPathExpr`.
   * @throws MountError when the container cannot have them.
   */
  async mountsFor(
    pod: Pod,
    container: Container,
    env: readonly EnvironmentVariable[],
    signal: AbortSignal,
  ): Promise<Mount[]> {
    const { engine, logger, mounter } = this.#options;
    return await toMounts({
      container,
      env,
      directories: this.#directoriesOf(pod),
      sourceOf: (mount) => this.#mountSource(pod, mount),
      engine,
      mounter,
      hostFiles: this.#hostFiles,
      onDetail: (message) => logger.warn(message, { pod: `${pod.metadata.namespace}/${pod.metadata.name}` }),
      signal,
    });
  }

  /**
   * Writes configMap, secret, projected and downwardAPI volumes again, from the objects and the pod as they are now, each
   * at once. Containers see it without a restart, except through subPath. Volumes not yet set up are left to `setUp`.
   */
  async refresh(pod: Pod, objects: ObjectIndex): Promise<RefreshOutcome> {
    const outcome: RefreshOutcome = { changed: [], failures: [] };
    for (const volume of usedVolumes(pod)) {
      const plugin = fileVolumePlugin(volume);
      if (!plugin || !this.#isSetUp(pod, plugin, volume.name)) continue;
      try {
        if (await this.#writeFiles(volume, pod, objects)) outcome.changed.push(volume.name);
      } catch (error) {
        outcome.failures.push(setUpFailure(volume.name, messageOf(error)));
      }
    }
    return outcome;
  }

  /**
   * Text of a file in an emptyDir of the pod, for `fileKeyRef`; undefined when there is none. Links that lead out of the
   * volume are not followed.
   * @throws Error with a message for people.
   */
  readEnvFile(pod: Pod, volumeName: string, path: string): string | undefined {
    const directory = this.#directoriesOf(pod).volume("empty-dir", volumeName);
    try {
      const held = openBeneath(directory, path);
      try {
        if (!held.stats.isFile()) throw new Error("not a regular file");
        if (held.stats.size > ENV_FILE_LIMIT_BYTES) throw new Error(`larger than ${ENV_FILE_LIMIT_BYTES} bytes`);
        return readBoundedText(descriptorPath(held.descriptor), ENV_FILE_LIMIT_BYTES);
      } finally {
        held.close();
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      throw error;
    }
  }

  /**
   * Removes everything of a pod whose containers are gone: its mounts, its nfs volumes, its directory; claims stay.
   * Nothing that is mounted, or that a link leads to, is removed. A pod without a directory is success.
   * @throws Error when something is still in use; to be tried again.
   */
  async tearDown(uid: PodUID, signal: AbortSignal): Promise<void> {
    const directories = this.directories(uid);
    const nfsNotes = join(directories.pod, "plugins", "kubernetes.io~nfs");
    for (const name of readNames(nfsNotes).flatMap((volume) => readNames(join(nfsNotes, volume)))) {
      await this.#options.engine.removeVolume(name, signal);
    }
    signal.throwIfAborted();
    await this.#remove(directories.pod);
  }

  /**
   * Removes the volumes an edit took out of the pod. To be called when no container of the earlier manifest runs any
   * more: one that is still stopping would lose its files.
   * @throws Error when something is still in use; to be tried again.
   */
  async removeUnused(pod: Pod, signal: AbortSignal): Promise<void> {
    const { engine } = this.#options;
    const directories = this.#directoriesOf(pod);
    const wanted = new Set(usedVolumes(pod).map((volume) => `${pluginOf(volume)} ${volume.name}`));
    const wantedNames = new Set(usedVolumes(pod).map(({ name }) => name));
    for (const plugin of PLUGINS) {
      const known = new Set([
        ...readNames(join(directories.volume(plugin, "x"), "..")),
        ...readNames(join(directories.pluginState(plugin, "x"), "..")),
      ]);
      for (const name of known) {
        if (wanted.has(`${plugin} ${name}`)) continue;
        signal.throwIfAborted();
        const state = directories.pluginState(plugin, name);
        if (plugin === "nfs") for (const volume of readNames(state)) await engine.removeVolume(volume, signal);
        await this.#remove(directories.volume(plugin, name));
        await this.#remove(state);
      }
    }
    for (const name of readNames(directories.subPaths)) {
      if (!wantedNames.has(name)) await this.#remove(join(directories.subPaths, name));
    }
  }

  /** Uids of all pods that have a directory, for the search for orphans. */
  listPodDirs(): PodUID[] {
    return readNames(join(this.#rootDir, "pods")).filter(isDirectoryName);
  }

  /** Where to look for what the pod's volumes use. Volumes that are not set up, or not ours to measure, are left out. */
  usagePaths(pod: Pod): VolumeUsagePath[] {
    const directories = this.#directoriesOf(pod);
    return usedVolumes(pod).flatMap((volume): VolumeUsagePath[] => {
      const plugin = volume.emptyDir ? "empty-dir" : fileVolumePlugin(volume);
      if (!plugin || !this.#isSetUp(pod, plugin, volume.name)) return [];
      const path = directories.volume(plugin, volume.name);
      const inMemory = isMounted(path);
      const sizeLimit = volume.emptyDir?.sizeLimit;
      const limit = sizeLimit === undefined ? {} : { sizeLimit };
      return [{ name: volume.name, path, method: inMemory ? "statfs" : "du", isEphemeral: !inMemory, ...limit }];
    });
  }

  async #setUpOne(volume: Volume, pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const { engine, mounter, ownerLabels } = this.#options;
    const uid = pod.metadata.uid ?? "";
    if (volume.hostPath) {
      const problem = await this.#hostFiles.prepareHostPath(volume.hostPath);
      if (problem) throw new Error(problem);
    } else if (volume.emptyDir) {
      await setUpEmptyDir(volume.emptyDir, pod, this.#placeOf(pod, "empty-dir", volume.name), mounter, this.#hostFiles);
    } else if (fileVolumePlugin(volume)) {
      await this.#writeFiles(volume, pod, objects);
    } else if (volume.image) {
      await setUpImageVolume(volume.image, pod, this.#placeOf(pod, "image", volume.name), engine, signal);
    } else if (volume.nfs) {
      const nfsVolume = { name: volume.name, nfs: volume.nfs };
      // First the note that says what tearDown has to remove.
      const { stateDirectory } = this.#placeOf(pod, "nfs", volume.name);
      mkdirSync(join(stateDirectory, nfsVolumeName(uid, nfsVolume)), { recursive: true, mode: 0o750 });
      await setUpNfs(nfsVolume, pod, engine, ownerLabels, signal);
    } else if (volume.persistentVolumeClaim) {
      const problem = this.#options.cluster?.claimProblemOf(pod, volume.persistentVolumeClaim.claimName);
      if (problem !== undefined) throw new Error(problem);
      if (mountsAsDevice(pod, volume.name)) throw new Error("a Docker volume cannot be used as a block device");
      const fsGroup = this.#isRoot ? this.#hostFiles.applyFsGroup.bind(this.#hostFiles) : undefined;
      const { claimName } = volume.persistentVolumeClaim;
      const sizeBytes = this.#options.claimBytesOf?.(pod, claimName);
      await setUpClaim(claimName, pod, engine, ownerLabels, fsGroup, signal, sizeBytes);
    } else {
      throw new Error(`volumes of type ${sourceName(volume)} are not supported without a cluster`);
    }
  }

  async #writeFiles(volume: Volume, pod: Pod, objects: ObjectIndex): Promise<boolean> {
    const plugin = fileVolumePlugin(volume);
    if (!plugin) return false;
    const { node, allocatable = toNodeAllocatable(node), clock, mounter, cluster } = this.#options;
    const place = { plugin, ...this.#placeOf(pod, plugin, volume.name) };
    let tokens: ReadonlyMap<string, string> | undefined;
    try {
      tokens = cluster && (await fetchTokens(volume, pod, cluster));
    } catch (error) {
      // Tokens that are there serve while the API server is away.
      if (!this.#isSetUp(pod, plugin, volume.name) || !isMounted(place.directory)) throw error;
      return false;
    }
    return await writeFileVolume(volume, pod, place, {
      objects,
      allocatable,
      now: clock.now(),
      mounter,
      ...(tokens && { tokens }),
    });
  }

  async #mountSource(pod: Pod, mount: VolumeMount): Promise<MountSource | undefined> {
    const volume = pod.spec.volumes?.find(({ name }) => name === mount.name);
    if (!volume) return undefined;
    const directories = this.#directoriesOf(pod);
    if (volume.hostPath) {
      return { kind: "path", path: volume.hostPath.path, readOnly: false, isOurs: false, isManaged: false };
    }
    if (volume.emptyDir) {
      const path = directories.volume("empty-dir", volume.name);
      return { kind: "path", path, readOnly: false, isOurs: false, isManaged: true };
    }
    const plugin = fileVolumePlugin(volume);
    if (plugin) {
      const path = directories.volume(plugin, volume.name);
      return { kind: "path", path, readOnly: true, isOurs: true, isManaged: true };
    }
    if (volume.image) return { kind: "image", place: this.#placeOf(pod, "image", volume.name) };
    if (volume.nfs) {
      const name = nfsVolumeName(pod.metadata.uid ?? "", { name: volume.name, nfs: volume.nfs });
      return { kind: "volume", name, readOnly: volume.nfs.readOnly ?? false };
    }
    if (volume.persistentVolumeClaim) {
      const { claimName, readOnly = false } = volume.persistentVolumeClaim;
      return { kind: "volume", name: claimVolumeName(pod, claimName), readOnly };
    }
    return undefined;
  }

  /** Unmounts what is mounted at or beneath a directory, then removes it; a link is removed itself. */
  async #remove(directory: string): Promise<void> {
    const { mounter } = this.#options;
    for (const target of this.#mounts.listBeneath(directory).reverse()) await mounter?.unmount(target);
    const [left] = this.#mounts.listBeneath(directory);
    if (left !== undefined) throw new Error(`cannot remove "${directory}": "${left}" is still mounted`);
    await this.#hostFiles.removeTree(directory);
  }

  #isSetUp(pod: Pod, plugin: PluginName, name: string): boolean {
    return readNames(this.#directoriesOf(pod).pluginState(plugin, name)).includes("ready");
  }

  #placeOf(pod: Pod, plugin: PluginName, name: string): { directory: string; stateDirectory: string } {
    const directories = this.#directoriesOf(pod);
    return { directory: directories.volume(plugin, name), stateDirectory: directories.pluginState(plugin, name) };
  }

  #directoriesOf(pod: Pod): PodDirectories {
    return this.directories(pod.metadata.uid ?? "");
  }
}

const PLUGINS: readonly PluginName[] = [
  "empty-dir",
  "configmap",
  "secret",
  "downward-api",
  "projected",
  "image",
  "nfs",
];

/** Whose directory a volume has under the pod's, if any. */
function pluginOf(volume: Volume): PluginName | undefined {
  if (volume.emptyDir) return "empty-dir";
  if (volume.image) return "image";
  return volume.nfs ? "nfs" : fileVolumePlugin(volume);
}

/** Volumes that a container of the pod mounts, or reads an env file from; no others are ever set up. */
export function usedVolumes(pod: Pod): Volume[] {
  const used = new Set<string>();
  for (const container of containersOf(pod.spec)) {
    for (const { name } of [...(container.volumeMounts ?? []), ...(container.volumeDevices ?? [])]) used.add(name);
    for (const { valueFrom } of container.env ?? [])
      if (valueFrom?.fileKeyRef) used.add(valueFrom.fileKeyRef.volumeName);
  }
  return (pod.spec.volumes ?? []).filter(({ name }) => used.has(name));
}

const mountsAsDevice = (pod: Pod, volume: string) =>
  containersOf(pod.spec).some(({ volumeDevices = [] }) => volumeDevices.some(({ name }) => name === volume));

const sourceName = (volume: Volume) => Object.keys(volume).find((key) => key !== "name") ?? "none";

function readNames(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}
