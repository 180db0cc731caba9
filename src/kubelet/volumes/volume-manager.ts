import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Container, Pod } from "../../base/api/pod.ts";
import { timed } from "../../base/concurrency/timed.ts";
import { Turns } from "../../base/concurrency/turns.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Mount } from "../../base/model/container-engine.ts";
import type { ObjectIndex } from "../../base/model/desired-pod.ts";
import { type PodUID, podFullName } from "../../base/model/identity.ts";
import type { Logger } from "../../base/model/logger.ts";
import { containersOf } from "../../base/model/pod-containers.ts";
import type { EventRecorder } from "../../base/model/pod-event.ts";
import { podRefOf } from "../../base/model/pod-ref.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { EnvironmentVariable } from "../../plan/environment.ts";
import { PodStepError, type WaitingReasonName } from "../../plan/waiting-reasons.ts";
import { countVolumeSetUp, type KubeletMetrics } from "../../stats/metrics/kubelet-metrics.ts";
import { Mounter } from "./mounter.ts";
import { toMounts } from "./mounts.ts";
import { isDirectoryName, PodDirectories, pluginDirectory } from "./pod-directories.ts";
import {
  directoryOf,
  findPlugin,
  mountSourceOf,
  pluginOf,
  pluginsWithDirectories,
  usedVolumes,
  type VolumeHost,
  type VolumeUsagePath,
} from "./volume-plugins.ts";

/** The failure of one volume; `message` is the text of the pod's event. */
interface VolumeFailure {
  volume: string;
  message: string;
}

/**
 * The volumes of a pod cannot be made ready. `FailedMount`: no container of the pod may start, the pod stays in
 * ContainerCreating; worth another try later. `message` is the first failure's, `failures` has all, one event each.
 */
export class VolumeError extends Error {
  override readonly name = "VolumeError";

  constructor(readonly failures: readonly [VolumeFailure, ...VolumeFailure[]]) {
    super(failures[0].message);
  }
}

/** The text of a failed set-up, as upstream's events have it (with the blank before the colon). */
const setUpFailure = (volume: string, error: unknown): VolumeFailure => ({
  volume,
  message: `MountVolume.SetUp failed for volume "${volume}" : ${messageOf(error)}`,
});

interface VolumeManagerOptions extends VolumeHost {
  rootDir: string;
  logger: Logger;
  metrics: KubeletMetrics;
}

interface RefreshOutcome {
  changed: string[];
  /** Volumes that could not be brought up to date; they keep what they had. */
  failures: VolumeFailure[];
}

/**
 * The volumes of pods on this machine, as the kubelet lays them out under `<root-dir>/pods/<uid>`. Every method may be
 * repeated at any time: what is already so stays. Calls for one pod must not overlap (its worker sees to that).
 */
export class VolumeManager {
  readonly #options: VolumeManagerOptions;
  readonly #rootDir: string;
  /** Reads the list of mounts, also where mounts are impossible. */
  readonly #mounts = new Mounter();

  constructor(options: VolumeManagerOptions) {
    this.#options = options;
    mkdirSync(options.rootDir, { recursive: true, mode: 0o750 });
    // The kernel's list of mounts has real paths.
    this.#rootDir = realpathSync(options.rootDir);
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
    const { clock, metrics, hostFiles } = this.#options;
    const directories = this.#directoriesOf(pod);
    await hostFiles.makePodDirectories(this.#rootDir, pod.metadata.uid ?? "");
    const failures: VolumeFailure[] = [];
    for (const volume of usedVolumes(pod)) {
      signal.throwIfAborted();
      const setUp = async () => {
        const { plugin, source } = pluginOf(volume);
        await plugin.setUp(source, { pod, name: volume.name, directories }, this.#options, objects, signal);
      };
      await timed(clock, setUp, (durationMs, failed) => {
        if (!signal.aborted) countVolumeSetUp(metrics, volume, durationMs, failed);
      }).catch((error: unknown) => {
        signal.throwIfAborted();
        failures.push(setUpFailure(volume.name, error));
      });
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
    const { engine, logger, mounter, hostFiles } = this.#options;
    const directories = this.#directoriesOf(pod);
    return await toMounts({
      container,
      env,
      directories,
      sourceOf: (mount) => mountSourceOf(pod, mount, directories),
      engine,
      mounter,
      hostFiles,
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
    const directories = this.#directoriesOf(pod);
    for (const volume of usedVolumes(pod)) {
      const { name } = volume;
      try {
        const { plugin, source } = findPlugin(volume) ?? {};
        const isChanged = await plugin?.refresh?.(source, { pod, name, directories }, this.#options, objects);
        if (isChanged) outcome.changed.push(name);
      } catch (error) {
        outcome.failures.push(setUpFailure(name, error));
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
    return await this.#options.hostFiles.readEnvFile(this.#directoriesOf(pod).volume("empty-dir", volumeName), path);
  }

  /**
   * Removes everything of a pod whose containers are gone: its mounts, its nfs volumes, its directory; claims stay.
   * Nothing that is mounted, or that a link leads to, is removed. A pod without a directory is success.
   * @throws Error when something is still in use; to be tried again.
   */
  async tearDown(uid: PodUID, signal: AbortSignal): Promise<void> {
    const directories = this.directories(uid);
    for (const { directory, remove } of pluginsWithDirectories()) {
      if (!remove) continue;
      const states = directories.statesOf(directory);
      const volumes = await this.#list(states);
      const notes = await this.#options.hostFiles.listAll(volumes.map((volume) => join(states, volume)));
      await remove(notes.flat(), this.#options.engine, signal);
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
    const { engine, hostFiles } = this.#options;
    const directories = this.#directoriesOf(pod);
    const used = usedVolumes(pod);
    const wanted = new Set(used.map((volume) => `${directoryOf(volume)} ${volume.name}`));
    const wantedNames = new Set(used.map(({ name }) => name));
    const tops = [directories.volumes, directories.plugins, directories.subPaths];
    const [volumes = [], states = [], subPaths = []] = await hostFiles.listAll(tops);
    for (const { directory, remove } of pluginsWithDirectories()) {
      if (![...volumes, ...states].includes(pluginDirectory(directory))) continue;
      const found = await hostFiles.listAll([directories.volumesOf(directory), directories.statesOf(directory)]);
      for (const name of new Set(found.flat())) {
        if (wanted.has(`${directory} ${name}`)) continue;
        signal.throwIfAborted();
        const state = directories.pluginState(directory, name);
        await remove?.(await this.#list(state), engine, signal);
        await this.#remove(directories.volume(directory, name));
        await this.#remove(state);
      }
    }
    for (const name of subPaths) {
      if (!wantedNames.has(name)) await this.#remove(join(directories.subPaths, name));
    }
  }

  /** Unmounts what is mounted at or beneath a directory, then removes it; a link is removed itself. */
  async #remove(directory: string): Promise<void> {
    const { mounter, hostFiles } = this.#options;
    for (const target of this.#mounts.listBeneath(directory).reverse()) await mounter?.unmount(target);
    const [left] = this.#mounts.listBeneath(directory);
    if (left !== undefined) throw new Error(`cannot remove "${directory}": "${left}" is still mounted`);
    await hostFiles.removeTree(directory);
  }

  /** Uids of all pods that have a directory, for the search for orphans. */
  async listPodDirs(): Promise<PodUID[]> {
    return (await this.#list(join(this.#rootDir, "pods"))).filter(isDirectoryName);
  }

  /**
   * Directories that the pod's volumes use, without access to the disk: one of them may not be set up yet. Volumes
   * that do not count as the pod's usage are left out.
   * @param claims names of claims by the name of the volume that took their place
   * @param engineDir the engine's own directory; undefined while it is not known
   */
  usagePaths(pod: Pod, claims: Readonly<Record<string, string>> = {}, engineDir?: string): VolumeUsagePath[] {
    const directories = this.#directoriesOf(pod);
    const canMount = this.#options.mounter !== undefined;
    return usedVolumes(pod).flatMap((volume) => {
      const { name } = volume;
      const { plugin, source } = findPlugin(volume) ?? {};
      const usage = plugin?.usage(source, { pod, name, directories }, { canMount, claimName: claims[name], engineDir });
      return usage ? [{ name, ...usage }] : [];
    });
  }

  async #list(directory: string): Promise<string[]> {
    return (await this.#options.hostFiles.listAll([directory])).flat();
  }

  #directoriesOf(pod: Pod): PodDirectories {
    return this.directories(pod.metadata.uid ?? "");
  }
}

interface PodVolumeQueueDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  volumes: VolumeManager;
}

/** The volumes of each pod, one piece of work at a time, and the events of failures. */
export class PodVolumeQueue {
  readonly #deps: PodVolumeQueueDeps;
  readonly #failedMounts: FailedMounts;
  /** The pod object whose volumes are ready, by uid: an edit makes another object. */
  readonly #ready = new Map<string, Pod>();
  /** Work on the volumes of one pod never overlaps. */
  readonly #turns = new Turns();

  constructor(deps: PodVolumeQueueDeps) {
    this.#deps = deps;
    this.#failedMounts = new FailedMounts(deps);
  }

  /** Nothing to do when they are ready for this very revision. @throws PodStepError `FailedMount` */
  async setUp(pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const uid = pod.metadata.uid ?? "";
    if (this.#ready.get(uid) === pod) return;
    try {
      await this.#inTurn(pod, () => this.#deps.volumes.setUp(pod, { objects }, signal));
    } catch (error) {
      throw this.#reportFailedMounts(pod, error as Error);
    }
    this.#ready.set(uid, pod);
    this.#failedMounts.settled(uid);
  }

  /** @throws PodStepError, `CreateContainerConfigError` unless the volume has a name for it */
  async mountsFor(
    pod: Pod,
    container: Container,
    env: readonly { name: string; value: string }[],
    signal: AbortSignal,
  ): Promise<Mount[]> {
    try {
      return await this.#inTurn(pod, () => this.#deps.volumes.mountsFor(pod, container, env, signal));
    } catch (error) {
      const { reason = "CreateContainerConfigError" } = error as { reason?: WaitingReasonName };
      throw new PodStepError(reason, (error as Error).message, { cause: error });
    }
  }

  /** @throws PodStepError `FailedMount`; what failed keeps what it had */
  async refresh(pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const { volumes, logger } = this.#deps;
    const { changed, failures } = await this.#inTurn(pod, () => volumes.refresh(pod, objects));
    signal.throwIfAborted();
    for (const volume of changed) {
      logger.info(`Volume "${volume}" of pod "${podFullName(pod.metadata)}" was brought up to date`);
    }
    const [first, ...others] = failures;
    this.#recordFailures(pod, others);
    if (first) throw new PodStepError("FailedMount", first.message);
  }

  /** Text of a file in a volume; undefined when there is none. @throws Error with a message for users */
  readEnvFile(pod: Pod, volumeName: string, path: string): Promise<string | undefined> {
    return this.#deps.volumes.readEnvFile(pod, volumeName, path);
  }

  async removeUnused(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#inTurn(pod, () => this.#deps.volumes.removeUnused(pod, signal));
  }

  /** Nothing of the pod runs any more; {@link setUp} creates them again. */
  async release(pod: Pod, signal: AbortSignal): Promise<void> {
    this.#ready.delete(pod.metadata.uid ?? "");
    await this.removeUnused({ ...pod, spec: { ...pod.spec, volumes: [] } }, signal);
  }

  async tearDown(uid: string, signal: AbortSignal): Promise<void> {
    this.#ready.delete(uid);
    this.#failedMounts.settled(uid);
    await this.#turns.run(uid, () => this.#deps.volumes.tearDown(uid, signal));
  }

  #inTurn<T>(pod: Pod, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(pod.metadata.uid ?? "", work);
  }

  /** Each failed volume gets its event; the returned error is that of the first. */
  #reportFailedMounts(pod: Pod, error: Error): PodStepError {
    const { failures = [] } = error as { failures?: readonly { volume: string; message: string }[] };
    const volumes = failures.map(({ volume }) => volume);
    if (volumes.length > 0) this.#failedMounts.failed(pod, volumes);
    this.#recordFailures(pod, failures.slice(1));
    return new PodStepError("FailedMount", error.message, { cause: error });
  }

  #recordFailures(pod: Pod, failures: readonly { message: string }[]): void {
    for (const { message } of failures) {
      this.#deps.recorder.record(podRefOf(pod), { type: "Warning", reason: "FailedMount", message });
    }
  }
}

/** The kubelet's podAttachAndMountTimeout: longer than two attempts of a volume that hangs. Source: recorded kubelet. */
export const MOUNT_TIMEOUT_MS = 123_000;

interface FailingPod {
  pod: Pod;
  volumes: readonly string[];
  cancel: () => void;
}

/** Reports pods that have waited for a volume for minutes: each failed attempt has its reason, this adds the duration. */
export class FailedMounts {
  readonly #clock: Clock;
  readonly #recorder: EventRecorder;
  readonly #failing = new Map<string, FailingPod>();

  constructor({ clock, recorder }: { clock: Clock; recorder: EventRecorder }) {
    this.#clock = clock;
    this.#recorder = recorder;
  }

  /** A try has failed for these volumes. */
  failed(pod: Pod, volumes: readonly string[]): void {
    const uid = pod.metadata.uid ?? "";
    const known = this.#failing.get(uid);
    this.#failing.set(uid, { pod, volumes, cancel: known?.cancel ?? this.#schedule(uid) });
  }

  settled(uid: string): void {
    this.#failing.get(uid)?.cancel();
    this.#failing.delete(uid);
  }

  #schedule(uid: string): () => void {
    return this.#clock.schedule(MOUNT_TIMEOUT_MS, () => this.#reportAgain(uid));
  }

  #reportAgain(uid: string): void {
    const failing = this.#failing.get(uid);
    if (!failing) return;
    const { pod, volumes } = failing;
    const message = `Unable to attach or mount volumes: unmounted volumes=[${volumes.join(" ")}], unattached volumes=[${usedVolumeNames(pod).join(" ")}]: timed out waiting for the condition`;
    this.#recorder.record(podRefOf(pod), { type: "Warning", reason: "FailedMount", message });
    this.#failing.set(uid, { ...failing, cancel: this.#schedule(uid) });
  }
}

function usedVolumeNames({ spec }: Pod): string[] {
  const containers = containersOf(spec);
  const mounted = new Set(containers.flatMap(({ volumeMounts = [] }) => volumeMounts.map(({ name }) => name)));
  return (spec.volumes ?? []).map(({ name }) => name).filter((name) => mounted.has(name));
}
