import type { Container, Pod } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { ObjectIndex } from "../base/model/desired-pod.ts";
import type { Logger } from "../base/model/logger.ts";
import type { Mount } from "../base/model/mount.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import { podRefOf } from "../base/model/pod-ref.ts";
import { PodStepError } from "../base/model/pod-services.ts";
import { FailedMounts } from "./failed-mounts.ts";
import type { PodVolumes } from "./pod-effects.ts";

interface PodVolumeQueueDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  volumes: PodVolumes;
}

/** The volumes of each pod, one piece of work at a time, and the events of failures. */
export class PodVolumeQueue {
  readonly #deps: PodVolumeQueueDeps;
  readonly #failedMounts: FailedMounts;
  /** The pod object whose volumes are ready, by uid: an edit makes another object. */
  readonly #ready = new Map<string, Pod>();
  readonly #turns = new Map<string, Promise<unknown>>();

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
      const { reason = "CreateContainerConfigError" } = error as { reason?: string };
      throw new PodStepError(reason, (error as Error).message, { cause: error });
    }
  }

  /** @throws PodStepError `FailedMount`; what failed keeps what it had */
  async refresh(pod: Pod, objects: ObjectIndex, signal: AbortSignal): Promise<void> {
    const { volumes, logger } = this.#deps;
    const { changed, failures } = await this.#inTurn(pod, () => volumes.refresh(pod, objects));
    signal.throwIfAborted();
    for (const volume of changed) {
      logger.info(`Volume "${volume}" of pod "${pod.metadata.namespace}/${pod.metadata.name}" was brought up to date`);
    }
    const [first, ...others] = failures;
    this.#recordFailures(pod, others);
    if (first) throw new PodStepError("FailedMount", first.message);
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
    await this.#turns.get(uid);
    this.#turns.delete(uid);
    await this.#deps.volumes.tearDown(uid, signal);
  }

  /** Work on the volumes of one pod never overlaps. */
  #inTurn<T>(pod: Pod, work: () => Promise<T>): Promise<T> {
    const uid = pod.metadata.uid ?? "";
    const result = (this.#turns.get(uid) ?? Promise.resolve()).then(work);
    this.#turns.set(
      uid,
      result.catch(() => {}),
    );
    return result;
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
