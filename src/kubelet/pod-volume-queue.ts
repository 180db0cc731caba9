import type { Container, Pod } from "../base/api/pod.ts";
import { Turns } from "../base/concurrency/turns.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Mount } from "../base/model/container-engine.ts";
import type { ObjectIndex } from "../base/model/desired-pod.ts";
import { podFullName } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import { containersOf } from "../base/model/pod-containers.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import { podRefOf } from "../base/model/pod-ref.ts";
import { PodStepError, type WaitingReasonName } from "../plan/waiting-reasons.ts";
import type { VolumeManager } from "./volumes/volume-manager.ts";

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
