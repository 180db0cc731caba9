import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Container, EmptyDirVolumeSource, LocalVolumeUse, Pod, Volume } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { ObjectIndex } from "../../base/model/desired-pod.ts";
import type { PodUID } from "../../base/model/identity.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { Mount } from "../../base/model/mount.ts";
import type { NodeInfo } from "../../base/model/node.ts";
import type { TokenSpec } from "../../base/model/token-spec.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { type NodeAllocatable, toNodeAllocatable } from "../../plan/downward-api.ts";
import type { EnvironmentVariable } from "../../plan/environment.ts";
import { nfsVolumeName, setUpClaim, setUpNfs } from "./docker-volume.ts";
import type { EmptyDirPlace } from "./empty-dir.ts";
import { computeFileVolume, fetchTokens, fileVolumePlugin, isInMemory } from "./file-volume.ts";
import type { HostFiles } from "./host-files.ts";
import { setUpImageVolume } from "./image-volume.ts";
import { Mounter } from "./mounter.ts";
import { toMounts } from "./mounts.ts";
import { isDirectoryName, type PluginName, PodDirectories } from "./pod-directories.ts";
import { mountSourceOf, mountsAsDevice, sourceName, usedVolumes } from "./pod-volumes.ts";
import type { VolumeEngine } from "./volume-engine.ts";
import { setUpFailure, VolumeError, type VolumeFailure } from "./volume-error.ts";
import { VolumeRemover } from "./volume-remover.ts";

interface VolumeManagerOptions {
  /** `--root-dir`; made when missing. */
  rootDir: string;
  node: NodeInfo;
  /** Value of `resourceFieldRef` for a container without a limit; the whole machine when absent. */
  allocatable?: NodeAllocatable;
  clock: Clock;
  logger: Logger;
  engine: VolumeEngine;
  hostFiles: HostFiles;
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
interface ClusterVolumes {
  /** Why a claim cannot be mounted; undefined for a pod that the API server does not know. */
  claimProblemOf(pod: Pod, claimName: string): string | undefined;
  /** A token of the pod's service account. @throws Error with a message for events */
  tokenFor(pod: Pod, spec: TokenSpec): Promise<string>;
}

/** Result of {@link VolumeManager.refresh}. */
interface RefreshOutcome {
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
  /** PersistentVolumeClaim behind it. */
  claimName?: string;
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
  /** Reads the list of mounts, also where mounts are impossible. */
  readonly #mounts = new Mounter();
  readonly #remover: VolumeRemover;

  constructor(options: VolumeManagerOptions) {
    this.#options = options;
    mkdirSync(options.rootDir, { recursive: true, mode: 0o750 });
    // The kernel's list of mounts has real paths.
    this.#rootDir = realpathSync(options.rootDir);
    this.#hostFiles = options.hostFiles;
    this.#isRoot = options.isRoot ?? process.getuid?.() === 0;
    const { engine, mounter } = options;
    this.#remover = new VolumeRemover({ engine, mounter, hostFiles: this.#hostFiles, mounts: this.#mounts });
  }

  /** Paths of one pod. @throws Error when the uid is not a plain directory name. */
  directories(uid: PodUID): PodDirectories {
    return new PodDirectories(this.#rootDir, uid);
  }

  /**
   * Makes the pod's directory and every volume that some container of it mounts or reads its environment from.
   * @throws VolumeError with every volume that failed; the others are ready.
   */
  async setUp(pod: Pod, { objects }: { objects: ObjectIndex }, signal: AbortSignal): Promise<void> {
    const { clock, onSetUp } = this.#options;
    await this.#hostFiles.makePodDirectories(this.#rootDir, pod.metadata.uid ?? "");
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
    const directories = this.#directoriesOf(pod);
    return await toMounts({
      container,
      env,
      directories,
      sourceOf: (mount) => mountSourceOf(pod, mount, directories),
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
      if (!plugin || !(await this.#isSetUp(pod, plugin, volume.name))) continue;
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
   * @throws Error with a message for users.
   */
  async readEnvFile(pod: Pod, volumeName: string, path: string): Promise<string | undefined> {
    return await this.#hostFiles.readEnvFile(this.#directoriesOf(pod).volume("empty-dir", volumeName), path);
  }

  /**
   * Removes everything of a pod whose containers are gone: its mounts, its nfs volumes, its directory; claims stay.
   * Nothing that is mounted, or that a link leads to, is removed. A pod without a directory is success.
   * @throws Error when something is still in use; to be tried again.
   */
  async tearDown(uid: PodUID, signal: AbortSignal): Promise<void> {
    await this.#remover.removeAll(this.directories(uid), signal);
  }

  /**
   * Removes the volumes an edit took out of the pod. To be called when no container of the earlier manifest runs any
   * more: one that is still stopping would lose its files.
   * @throws Error when something is still in use; to be tried again.
   */
  async removeUnused(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#remover.removeUnused(pod, this.#directoriesOf(pod), signal);
  }

  /** Uids of all pods that have a directory, for the search for orphans. */
  async listPodDirs(): Promise<PodUID[]> {
    return (await this.#list(join(this.#rootDir, "pods"))).filter(isDirectoryName);
  }

  /**
   * Directories that the pod's volumes use, without access to the disk: one of them may not be set up yet. Volumes
   * that do not count as the pod's usage are left out.
   */
  usagePaths(pod: Pod): VolumeUsagePath[] {
    const directories = this.#directoriesOf(pod);
    return usedVolumes(pod).flatMap((volume): VolumeUsagePath[] => {
      const plugin = volume.emptyDir ? "empty-dir" : fileVolumePlugin(volume);
      if (!plugin) return [];
      const path = directories.volume(plugin, volume.name);
      const inMemory =
        plugin === "empty-dir"
          ? (volume.emptyDir?.medium ?? "") !== ""
          : this.#options.mounter !== undefined && isInMemory(plugin);
      const sizeLimit = volume.emptyDir?.sizeLimit;
      const limit = sizeLimit === undefined ? {} : { sizeLimit };
      return [{ name: volume.name, path, method: inMemory ? "statfs" : "du", isEphemeral: !inMemory, ...limit }];
    });
  }

  async #setUpOne(volume: Volume, pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const { engine, ownerLabels } = this.#options;
    const uid = pod.metadata.uid ?? "";
    if (volume.hostPath) {
      const problem = await this.#hostFiles.prepareHostPath(volume.hostPath);
      if (problem) throw new Error(problem);
      if (volume.hostPath.local) await this.#setUpLocal(volume.name, volume.hostPath.path, volume.hostPath.local, pod);
    } else if (volume.emptyDir) {
      await this.#setUpEmptyDir(volume.emptyDir, pod, this.#directoriesOf(pod).place("empty-dir", volume.name));
    } else if (fileVolumePlugin(volume)) {
      await this.#writeFiles(volume, pod, objects);
    } else if (volume.image) {
      const place = this.#directoriesOf(pod).place("image", volume.name);
      await setUpImageVolume(volume.image, pod, place, engine, this.#hostFiles, signal);
    } else if (volume.nfs) {
      const nfsVolume = { name: volume.name, nfs: volume.nfs };
      // First the note that says what tearDown has to remove.
      const { stateDirectory } = this.#directoriesOf(pod).place("nfs", volume.name);
      await this.#hostFiles.makeDirectory(join(stateDirectory, nfsVolumeName(uid, nfsVolume)));
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

  /**
   * A PersistentVolume of the kind `local`: once in the life of the pod it gets the pod's fsGroup, and is mounted where it
   * has mount options. Source: the kubelet's local volume plugin.
   */
  async #setUpLocal(name: string, path: string, { readOnly, mountOptions }: LocalVolumeUse, pod: Pod): Promise<void> {
    const { mounter } = this.#options;
    const { directory, stateDirectory } = this.#directoriesOf(pod).place("local-volume", name);
    if (mountOptions && !this.#isMountPoint(directory)) {
      if (!mounter) throw new Error("mount options of local volumes need a kubelet that runs as root and can mount");
      await this.#hostFiles.makeDirectory(directory);
      await mounter.bind(path, directory, mountOptions);
    }
    const { fsGroup, fsGroupChangePolicy: policy } = pod.spec.securityContext;
    if (fsGroup === undefined || readOnly || !this.#isRoot) return;
    if (await this.#isSetUp(pod, "local-volume", name)) return;
    await this.#hostFiles.applyFsGroup(path, { fsGroup, readOnly: false, ...(policy && { policy }) });
    await this.#hostFiles.writeVolumeState(stateDirectory, `${fsGroup}`);
  }

  async #setUpEmptyDir(source: EmptyDirVolumeSource, pod: Pod, place: EmptyDirPlace): Promise<void> {
    if (await this.#hostFiles.prepareEmptyDir(source, pod, place, this.#canMount)) return;
    const { fsGroup } = pod.spec.securityContext;
    if (fsGroup !== undefined) await this.#hostFiles.applyFsGroup(place.directory, { fsGroup, readOnly: false });
    await this.#hostFiles.writeVolumeState(place.stateDirectory, `${fsGroup ?? ""}`);
  }

  async #writeFiles(volume: Volume, pod: Pod, objects: ObjectIndex): Promise<boolean> {
    const plugin = fileVolumePlugin(volume);
    if (!plugin) return false;
    const { node, allocatable = toNodeAllocatable(node), clock, cluster } = this.#options;
    const place = { plugin, ...this.#directoriesOf(pod).place(plugin, volume.name) };
    let tokens: ReadonlyMap<string, string> | undefined;
    try {
      tokens = cluster && (await fetchTokens(volume, pod, cluster));
    } catch (error) {
      // Tokens that are there serve while the API server is unreachable.
      if (!(await this.#isSetUp(pod, plugin, volume.name)) || !this.#isMountPoint(place.directory)) throw error;
      return false;
    }
    const content = computeFileVolume(volume, pod, {
      objects,
      allocatable,
      now: clock.now(),
      ...(tokens && { tokens }),
    });
    return await this.#hostFiles.writeFileVolume(place, content, this.#canMount);
  }

  async #isSetUp(pod: Pod, plugin: PluginName, name: string): Promise<boolean> {
    return (await this.#list(this.#directoriesOf(pod).pluginState(plugin, name))).includes("ready");
  }

  async #list(directory: string): Promise<string[]> {
    return (await this.#hostFiles.listAll([directory])).flat();
  }

  get #canMount(): boolean {
    return this.#options.mounter !== undefined;
  }

  #isMountPoint(path: string): boolean {
    return this.#mounts.listBeneath(path).includes(path);
  }

  #directoriesOf(pod: Pod): PodDirectories {
    return this.directories(pod.metadata.uid ?? "");
  }
}
