import { mkdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Container, Pod, VolumeMount } from "../../base/api/pod.ts";
import { timed } from "../../base/concurrency/timed.ts";
import { Turns } from "../../base/concurrency/turns.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Mount } from "../../base/model/container-engine.ts";
import type { ObjectIndex } from "../../base/model/desired-state.ts";
import type { Logger } from "../../base/model/logger.ts";
import { containersOf, type PodUID, podFullName, podRefOf, usedVolumes } from "../../base/model/pod.ts";
import type { EventRecorder } from "../../base/model/pod-event.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { EnvironmentVariable } from "../../plan/environment.ts";
import { PodStepError } from "../../plan/waiting-reasons.ts";
import { countVolumeSetUp, type KubeletMetrics } from "../../stats/metrics/kubelet-metrics.ts";
import { Mounter } from "./mounter.ts";
import { toMounts } from "./mounts.ts";
import { isDirectoryName, PodDirectories } from "./pod-directories.ts";
import {
  directoryOf,
  findPlugin,
  mountSourceOf,
  pluginOf,
  pluginsWithDirectories,
  type VolumeHost,
  type VolumeUsagePath,
} from "./volume-plugins.ts";

/** The failure of one volume; `message` is the text of the pod's event. */
interface VolumeFailure {
  volume: string;
  message: string;
}

/** The text of a failed set-up, as upstream's events have it (with the blank before the colon). */
const setUpFailure = (volume: string, error: unknown): VolumeFailure => ({
  volume,
  message: `MountVolume.SetUp failed for volume "${volume}" : ${messageOf(error)}`,
});

interface VolumeManagerDeps {
  rootDir: string;
  logger: Logger;
  recorder: EventRecorder;
  metrics: KubeletMetrics;
}

/**
 * The volumes of pods on this machine, as the kubelet lays them out under `<root-dir>/pods/<uid>`. Every method may be
 * repeated at any time: what is already so stays. Work on the volumes of one pod never overlaps.
 */
export class VolumeManager {
  readonly #host: VolumeHost;
  readonly #deps: VolumeManagerDeps;
  readonly #rootDir: string;
  /** Reads the list of mounts, also where mounts are impossible. */
  readonly #mounts = new Mounter();
  readonly #failedMounts: FailedMounts;
  /** The pod object whose volumes are ready, by uid: an edit makes another object. */
  readonly #ready = new Map<PodUID, Pod>();
  readonly #turns = new Turns();

  constructor(host: VolumeHost, deps: VolumeManagerDeps) {
    this.#host = host;
    this.#deps = deps;
    this.#failedMounts = new FailedMounts(host.clock, deps.recorder);
    mkdirSync(deps.rootDir, { recursive: true, mode: 0o750 });
    // The kernel's list of mounts has real paths.
    this.#rootDir = realpathSync(deps.rootDir);
  }

  /** Paths of one pod. @throws Error when the uid is not a plain directory name. */
  directories(uid: PodUID): PodDirectories {
    return new PodDirectories(this.#rootDir, uid);
  }

  /**
   * Makes the pod's directory and every volume that some container of it mounts or reads its environment from; nothing when
   * they are ready for this very pod object. One that fails does not keep the others from being made.
   * @throws PodStepError `FailedMount` with the first failure; the others are events
   */
  async setUp(pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const uid = pod.metadata.uid ?? "";
    if (this.#ready.get(uid) === pod) return;
    const failures = await this.#inTurn(pod, () => this.#setUpAll(pod, objects, signal)).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new PodStepError("FailedMount", messageOf(cause), { cause });
    });
    const volumes = failures.map(({ volume }) => volume);
    if (volumes.length > 0) this.#failedMounts.failed(pod, volumes);
    this.#report(pod, failures);
    this.#ready.set(uid, pod);
    this.#failedMounts.settled(uid);
  }

  async #setUpAll(pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<VolumeFailure[]> {
    const { clock, hostFiles } = this.#host;
    const directories = this.#directoriesOf(pod);
    await hostFiles.makePodDirectories(this.#rootDir, pod.metadata.uid ?? "");
    const failures: VolumeFailure[] = [];
    for (const volume of usedVolumes(pod)) {
      signal.throwIfAborted();
      const setUp = async () => {
        const { plugin, source } = pluginOf(volume);
        await plugin.setUp(source, { pod, name: volume.name, directories }, this.#host, objects, signal);
      };
      await timed(clock, setUp, (durationMs, failed) => {
        if (!signal.aborted) countVolumeSetUp(this.#deps.metrics, volume, durationMs, failed);
      }).catch((error: unknown) => {
        signal.throwIfAborted();
        failures.push(setUpFailure(volume.name, error));
      });
    }
    return failures;
  }

  /** Finds what {@link setUp} would refuse, and changes no volume that is in use. @throws PodStepError FailedMount */
  async check(pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const directories = this.#directoriesOf(pod);
    for (const volume of usedVolumes(pod)) {
      try {
        const { plugin, source } = pluginOf(volume);
        await plugin.check?.(source, { pod, name: volume.name, directories }, this.#host, objects, signal);
      } catch (error) {
        signal.throwIfAborted();
        throw new PodStepError("FailedMount", setUpFailure(volume.name, error).message, { cause: error });
      }
    }
  }

  /** @throws PodStepError for the first failure; each of the others is an event of the pod */
  #report(pod: Pod, [first, ...others]: readonly VolumeFailure[]): void {
    for (const { message } of others) {
      this.#deps.recorder.record(podRefOf(pod), { type: "Warning", reason: "FailedMount", message });
    }
    if (first) throw new PodStepError("FailedMount", first.message);
  }

  /**
   * The volume mounts of a container of a pod that was set up, in the order of `volumeMounts`, sub paths bound.
   * @param env of the container, for `subPathExpr`.
   * @throws PodStepError `CreateContainerConfigError` when the container cannot have them
   */
  async mountsFor(
    pod: Pod,
    container: Container,
    env: readonly EnvironmentVariable[],
    signal: AbortSignal,
  ): Promise<Mount[]> {
    const { engine, mounter, hostFiles } = this.#host;
    const { logger } = this.#deps;
    if (!container.volumeMounts && !container.volumeDevices) return [];
    try {
      const directories = this.#directoriesOf(pod);
      const sourceOf = (mount: VolumeMount) => mountSourceOf(pod, mount, directories);
      const onDetail = (message: string) =>
        logger.warn(message, { pod: `${pod.metadata.namespace}/${pod.metadata.name}` });
      const request = { container, env, directories, sourceOf, engine, mounter, hostFiles, onDetail, signal };
      return await this.#inTurn(pod, () => toMounts(request));
    } catch (cause) {
      throw new PodStepError("CreateContainerConfigError", messageOf(cause), { cause });
    }
  }

  /**
   * Writes configMap, secret, projected and downwardAPI volumes again, from the objects and the pod as they are now, each
   * at once. Containers see it without a restart, except through subPath. Volumes not yet set up are left to {@link setUp}.
   * @throws PodStepError `FailedMount` with the first failure; a volume that failed keeps what it had
   */
  async refresh(pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const directories = this.#directoriesOf(pod);
    const failures: VolumeFailure[] = [];
    await this.#inTurn(pod, async () => {
      for (const volume of usedVolumes(pod)) {
        const { name } = volume;
        try {
          const { plugin, source } = findPlugin(volume) ?? {};
          if (!(await plugin?.refresh?.(source, { pod, name, directories }, this.#host, objects))) continue;
          this.#deps.logger.info(`Volume "${name}" of pod "${podFullName(pod.metadata)}" was brought up to date`);
        } catch (error) {
          failures.push(setUpFailure(name, error));
        }
      }
    });
    signal.throwIfAborted();
    this.#report(pod, failures);
  }

  /**
   * Text of a file in an emptyDir of the pod, for `fileKeyRef`; undefined when there is none. Links that lead out of the
   * volume are not followed.
   * @throws Error with a message for users.
   */
  async readEnvFile(pod: Pod, volumeName: string, path: string): Promise<string | undefined> {
    return await this.#host.hostFiles.readEnvFile(this.#directoriesOf(pod).volume("empty-dir", volumeName), path);
  }

  /**
   * Removes everything of a pod whose containers are gone: its mounts, its nfs volumes, its directory; claims stay.
   * Nothing that is mounted, or that a link leads to, is removed. A pod without a directory is success.
   * @throws Error when something is still in use; to be tried again.
   */
  async tearDown(uid: PodUID, signal: AbortSignal): Promise<void> {
    this.#ready.delete(uid);
    this.#failedMounts.settled(uid);
    await this.#turns.run(uid, () => this.#removeAll(this.directories(uid), signal));
  }

  async #removeAll(directories: PodDirectories, signal: AbortSignal): Promise<void> {
    const { engine, hostFiles } = this.#host;
    for (const { directory, remove } of pluginsWithDirectories()) {
      if (!remove) continue;
      const states = directories.statesOf(directory);
      const volumes = await this.#list(states);
      const notes = volumes.length === 0 ? [] : await hostFiles.listAll(volumes.map((volume) => join(states, volume)));
      await remove(notes.flat(), engine, signal);
    }
    signal.throwIfAborted();
    await this.#remove([directories.pod]);
  }

  /**
   * Removes the volumes an edit took out of the pod. To be called when no container of the earlier manifest runs any
   * more: one that is still stopping would lose its files.
   * @throws Error when something is still in use; to be tried again.
   */
  async removeUnused(pod: Pod, signal: AbortSignal): Promise<void> {
    await this.#inTurn(pod, () => this.#removeUnused(pod, signal));
  }

  /** Removes the volumes of a pod of which nothing runs any more; {@link setUp} makes them again. */
  async release(pod: Pod, signal: AbortSignal): Promise<void> {
    this.#ready.delete(pod.metadata.uid ?? "");
    await this.removeUnused({ ...pod, spec: { ...pod.spec, volumes: [] } }, signal);
  }

  async #removeUnused(pod: Pod, signal: AbortSignal): Promise<void> {
    const { engine, hostFiles } = this.#host;
    const directories = this.#directoriesOf(pod);
    // Most pods have none.
    const made = await hostFiles.listAll([directories.volumes, directories.plugins, directories.subPaths]);
    if (made.flat().length === 0) return;
    const used = usedVolumes(pod);
    const wanted = new Set(used.map((volume) => `${directoryOf(volume)} ${volume.name}`));
    const wantedNames = new Set(used.map(({ name }) => name));
    const plugins = pluginsWithDirectories();
    const places = plugins.flatMap(({ directory: of }) => [directories.volumesOf(of), directories.statesOf(of)]);
    // In one task: each costs another thread's time.
    const [subPaths = [], ...found] = await hostFiles.listAll([directories.subPaths, ...places]);
    const unused: string[] = [];
    for (const [index, { directory, remove }] of plugins.entries()) {
      for (const name of new Set(found.slice(2 * index, 2 * index + 2).flat())) {
        if (wanted.has(`${directory} ${name}`)) continue;
        signal.throwIfAborted();
        const state = directories.pluginState(directory, name);
        await remove?.(await this.#list(state), engine, signal);
        unused.push(directories.volume(directory, name), state);
      }
    }
    for (const name of subPaths) if (!wantedNames.has(name)) unused.push(join(directories.subPaths, name));
    if (unused.length > 0) await this.#remove(unused);
  }

  /** Unmounts what is mounted at or beneath these directories, then removes them; a link is removed itself. */
  async #remove(directories: readonly string[]): Promise<void> {
    const { mounter, hostFiles } = this.#host;
    const mounted = this.#mounts.listBeneath(...directories);
    for (const target of mounted.reverse()) await mounter?.unmount(target);
    const [left] = mounted.length === 0 ? [] : this.#mounts.listBeneath(...directories);
    if (left !== undefined) throw new Error(`cannot remove volumes: "${left}" is still mounted`);
    await hostFiles.removeTrees(directories);
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
    const canMount = this.#host.mounter !== undefined;
    return usedVolumes(pod).flatMap((volume) => {
      const { name } = volume;
      const { plugin, source } = findPlugin(volume) ?? {};
      const usage = plugin?.usage(source, { pod, name, directories }, { canMount, claimName: claims[name], engineDir });
      return usage ? [{ name, ...usage }] : [];
    });
  }

  async #list(directory: string): Promise<string[]> {
    return (await this.#host.hostFiles.listAll([directory])).flat();
  }

  #inTurn<T>(pod: Pod, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(pod.metadata.uid ?? "", work);
  }

  #directoriesOf(pod: Pod): PodDirectories {
    return this.directories(pod.metadata.uid ?? "");
  }
}

/** The kubelet's podAttachAndMountTimeout: longer than two attempts of a volume that hangs. Source: recorded kubelet. */
const MOUNT_TIMEOUT_MS = 123_000;

/** Reports pods that have waited for a volume for minutes: each failed attempt has its reason, this adds the duration. */
class FailedMounts {
  readonly #clock: Clock;
  readonly #recorder: EventRecorder;
  readonly #failing = new Map<string, { pod: Pod; volumes: readonly string[]; cancel: () => void }>();

  constructor(clock: Clock, recorder: EventRecorder) {
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
