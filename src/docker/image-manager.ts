import { formatDuration } from "../base/api/duration.ts";
import type { Container, Pod } from "../base/api/pod.ts";
import type { Secret } from "../base/api/secret.ts";
import { ConcurrencyLimit } from "../base/concurrency/concurrency-limit.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import { SingleFlight } from "../base/concurrency/single-flight.ts";
import { type Rate, TokenBucket } from "../base/concurrency/token-bucket.ts";
import type { Clock } from "../base/model/clock.ts";
import type { EngineImage, ImageEngine, ImageInfo } from "../base/model/container-engine.ts";
import type { Logger } from "../base/model/logger.ts";
import { containerFieldPath } from "../base/model/pod-containers.ts";
import type { EventRecorder, PodEvent } from "../base/model/pod-event.ts";
import { messageOf } from "../base/text/error-message.ts";
import { applyDefaultTag, parseImageReference } from "../base/text/image-reference.ts";
import { type BackOffEntry, backOffRemainingMs, MAX_BACK_OFF_MS, nextBackOff } from "../plan/back-off.ts";
import type { DockerImages, ImageStore } from "./docker-images.ts";
import type { DockerClient, RegistryAuth } from "./engine/docker-client.ts";
import { DockerError, DockerUnreachableError } from "./engine/docker-error.ts";
import type { ProgressLine } from "./engine/schemas.ts";
import type { ImageCredentials } from "./image-credentials.ts";
import { engineText, ImageError, registryHint, toPullFailure } from "./image-error.ts";

export interface ImageManagerOptions {
  client: DockerClient;
  images: DockerImages;
  clock: Clock;
  logger: Logger;
  /** Gets every event about images; callers of `ensureImage` record none. */
  recorder: EventRecorder;
  credentials: ImageCredentials;
  limits: PullLimits;
  /** A pull without progress for this time is aborted; 0 = never. */
  progressDeadlineMs: number;
  onProgress?: ((progress: ImageProgress) => void) | undefined;
  /** A pull ended; attempts with different credentials count as one. */
  onPull?: (durationMs: number, failed: boolean) => void;
}

/**
 * How long a container shows `ErrImagePull` with the engine's words before another pass turns that into
 * `ImagePullBackOff`. Upstream shows it until the next sync, measured at 2 to 14 s.
 */
const SHOW_FAILURE_MS = 2000;

/** Older back-off entries have expired. */
const BACK_OFF_KEPT_MS = 2 * MAX_BACK_OFF_MS;

/**
 * Provides images on the engine by the pull policy of a pod, with one pull per image and credentials. After a failure the
 * same pod waits 10 s, 20 s, … 300 s.
 * Source: kubelet `imageManager.EnsureImageExists`; the texts are those recorded of kubelet 1.20.
 */
export class ImageManager implements ImageEngine {
  readonly #options: ImageManagerOptions;
  readonly #queue: PullQueue;
  readonly #pulls = new SingleFlight<ImageInfo>();
  /** Back-off by pod UID and image. */
  readonly #backOff = new Map<string, BackOffEntry>();
  readonly #cache: DockerImages;
  readonly #uses = new Listeners<ImageInfo>();

  constructor(options: ImageManagerOptions) {
    this.#options = options;
    this.#queue = new PullQueue(options.limits, options.clock);
    this.#cache = options.images;
  }

  /** Called with each image that a pod is about to use. @returns removes the callback */
  onUse(listener: (image: ImageInfo) => void): () => void {
    return this.#uses.add(listener);
  }

  /** Watches the engine's image events, so that properties can be remembered. Ends when the signal aborts. */
  run(signal: AbortSignal): Promise<void> {
    return this.#cache.run(signal);
  }

  /**
   * Ensures that a container's image is present, pulling it if the policy requires it.
   * @throws ImageError when it is not available now (`retryAfterMs`: when to call again, if only to show the back-off);
   *   DockerUnreachableError when there is no engine; the signal's reason
   */
  async ensureImage(
    pod: Pod,
    container: Container,
    { pullSecrets }: { pullSecrets: readonly Secret[] },
    signal: AbortSignal,
  ): Promise<ImageInfo> {
    const image = container.image ?? "";
    const record = this.#recorderFor(pod, container);
    const ref = this.#toReference(image, record);
    const present = await this.#inspect(image, ref, record, signal);
    const policy = container.imagePullPolicy ?? "IfNotPresent";
    if (policy === "Never" || (policy === "IfNotPresent" && present)) {
      if (present) {
        record("Normal", "Pulled", `Container image ${quoted(image)} already present on machine`);
        this.#uses.emit(present);
        return present;
      }
      const message = `Container image ${quoted(image)} is not present with pull policy of Never`;
      record("Warning", "ErrImageNeverPull", message);
      throw this.#failed(record, new ImageError("ErrImageNeverPull", image, message));
    }
    return this.#pullForPod(pod, image, ref, pullSecrets, record, signal);
  }

  /**
   * Properties of an image, or undefined when the engine does not have it.
   * @param image as a manifest names it, or an id
   * @throws InvalidImageReferenceError, DockerError, DockerUnreachableError
   */
  imageStatus(image: string, signal?: AbortSignal): Promise<ImageInfo | undefined> {
    return this.#cache.get(applyDefaultTag(image), signal);
  }

  list(signal: AbortSignal): Promise<EngineImage[]> {
    return this.#cache.list(signal);
  }

  remove(image: EngineImage, signal: AbortSignal): Promise<boolean> {
    return this.#cache.remove(image, signal);
  }

  /** Every image of the engine, at most a minute old. */
  inventory(): Promise<ImageStore> {
    return this.#cache.inventory();
  }

  /** The engine has no such image for a create: the next caller inspects the image again. */
  forget(image: string): void {
    this.#cache.forget(image);
  }

  /** Pulls outside any pod (the sandbox's image), with the machine's credentials and without back-off. */
  async pull(image: string, signal: AbortSignal): Promise<ImageInfo> {
    return this.#pullShared(image, applyDefaultTag(image), [], signal);
  }

  /** Pulls an image that a pod is about to use. It counts as used, so that it may be removed later. */
  async pullAhead(image: string, pullSecrets: readonly Secret[], signal: AbortSignal): Promise<ImageInfo> {
    const pulled = await this.#pullShared(image, applyDefaultTag(image), pullSecrets, signal);
    this.#uses.emit(pulled);
    return pulled;
  }

  #toReference(image: string, record: RecordEvent): string {
    try {
      return applyDefaultTag(image);
    } catch (cause) {
      throw this.#invalidName(image, messageOf(cause), record, cause);
    }
  }

  #invalidName(image: string, why: string, record: RecordEvent, cause: unknown): ImageError {
    const message = `Failed to apply default image tag ${quoted(image)}: couldn't parse image reference ${quoted(image)}: ${why}`;
    record("Warning", "InspectFailed", message);
    return this.#failed(record, new ImageError("InvalidImageName", image, message, { cause }));
  }

  async #inspect(image: string, ref: string, record: RecordEvent, signal: AbortSignal): Promise<ImageInfo | undefined> {
    try {
      return await this.#cache.get(ref, signal);
    } catch (cause) {
      if (!(cause instanceof DockerError)) throw cause;
      // Newer grammar reads `UPPER/x` as a registry and a name; older engines refuse it.
      if (cause.status === 400)
        throw this.#invalidName(image, cause.daemonMessage.replace(/^no such image: \S+: /i, ""), record, cause);
      const message = `Failed to inspect image ${quoted(image)}: ${engineText(cause)}`;
      record("Warning", "InspectFailed", message);
      throw this.#failed(record, new ImageError("ImageInspectError", image, message, { cause }));
    }
  }

  async #pullForPod(
    pod: Pod,
    image: string,
    ref: string,
    pullSecrets: readonly Secret[],
    record: RecordEvent,
    signal: AbortSignal,
  ): Promise<ImageInfo> {
    const { clock } = this.#options;
    const key = `${pod.metadata.uid ?? ""}_${image}`;
    const entry = this.#backOff.get(key);
    const waitMs = entry ? backOffRemainingMs(entry, entry.updatedAtMs, clock.monotonicMs()) : 0;
    if (waitMs > 0) {
      const message = `Back-off pulling image ${quoted(image)}`;
      record("Normal", "BackOff", message);
      throw this.#failed(record, new ImageError("ImagePullBackOff", image, message, { retryAfterMs: waitMs }));
    }
    record("Normal", "Pulling", `Pulling image ${quoted(image)}`);
    const startedAtMs = clock.monotonicMs();
    try {
      const pulled = await this.#pullShared(image, ref, pullSecrets, signal);
      this.#uses.emit(pulled);
      this.#backOff.delete(key);
      const took = formatDuration(clock.monotonicMs() - startedAtMs);
      record("Normal", "Pulled", `Successfully pulled image ${quoted(image)} in ${took}`);
      return pulled;
    } catch (cause) {
      signal.throwIfAborted();
      // Without an engine nothing is known about the image: no back-off.
      if (isEngineGone(cause)) throw cause;
      const failure = toPullFailure(image, cause);
      record("Warning", "Failed", `Failed to pull image ${quoted(image)}: ${failure.detail}`);
      // The hint is logged once per series of failures.
      const hint = registryHint(failure.problem);
      const isNews = ![...this.#backOff.keys()].some((known) => known.slice(known.indexOf("_") + 1) === image);
      if (isNews && hint !== "") this.#options.logger.warn(`Image ${quoted(image)} cannot be pulled: ${hint}`);
      // Another container of the pod may have waited for the same pull: that was one failure.
      if (this.#backOff.get(key) === entry) this.#raiseBackOff(key);
      const retryAfterMs = SHOW_FAILURE_MS;
      const { reason, message, problem } = failure;
      throw this.#failed(record, new ImageError(reason, image, message, { retryAfterMs, problem, cause }));
    }
  }

  #raiseBackOff(key: string): void {
    const now = this.#options.clock.monotonicMs();
    for (const [other, entry] of this.#backOff) {
      if (now - entry.updatedAtMs > BACK_OFF_KEPT_MS) this.#backOff.delete(other);
    }
    this.#backOff.set(key, nextBackOff(this.#backOff.get(key), now, now, MAX_BACK_OFF_MS));
  }

  /** Joins a pull of the same image with the same credentials; the pull is aborted when no caller waits for it. */
  async #pullShared(
    image: string,
    ref: string,
    pullSecrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<ImageInfo> {
    const auths = await this.#options.credentials.lookUp(parseImageReference(ref), pullSecrets, signal);
    // Pulls with other credentials are separate: a caller must not get an image that its own credentials do not allow.
    const key = `${ref}\n${new Bun.CryptoHasher("sha256").update(JSON.stringify(auths)).digest("hex")}`;
    const pull = (stop: AbortSignal) => this.#timed(() => this.#pullNow(image, ref, auths, stop));
    return this.#pulls.do(key, (stop) => this.#queue.run(() => pull(stop), stop), signal);
  }

  async #timed<T>(pull: () => Promise<T>): Promise<T> {
    const { clock, onPull } = this.#options;
    const startedAtMs = clock.monotonicMs();
    let failed = true;
    try {
      const result = await pull();
      failed = false;
      return result;
    } finally {
      onPull?.(clock.monotonicMs() - startedAtMs, failed);
    }
  }

  async #pullNow(image: string, ref: string, auths: readonly RegistryAuth[], signal: AbortSignal): Promise<ImageInfo> {
    const { client, onProgress, progressDeadlineMs, logger } = this.#options;
    const errors: unknown[] = [];
    for (const auth of auths.length > 0 ? auths : [undefined]) {
      const progress = new PullProgress(image);
      try {
        await client.pullImage(ref, {
          auth,
          signal,
          idleTimeoutMs: progressDeadlineMs,
          onProgress: (line) => {
            const sum = progress.add(line);
            onProgress?.(sum);
          },
        });
        this.#cache.forget(ref);
        return await this.#cache.inspect(ref, signal);
      } catch (error) {
        signal.throwIfAborted();
        if (isEngineGone(error)) throw error;
        logger.debug("A pull failed", { image, why: messageOf(error) });
        errors.push(error);
      }
    }
    throw errors.length === 1 ? errors[0] : new AggregateError(errors, `no credentials worked for ${image}`);
  }

  #recorderFor(pod: Pod, container: Container): RecordEvent {
    const fieldPath = containerFieldPath(pod.spec, container.name);
    const { uid = "", name = "", namespace = "default" } = pod.metadata;
    return (type, reason, message) => {
      this.#options.recorder.record({ uid, name, namespace }, { type, reason, message, fieldPath });
    };
  }

  /** Upstream's container start records the reason as a second event. */
  #failed(record: RecordEvent, error: ImageError): ImageError {
    record("Warning", "Failed", `Error: ${error.reason}`);
    return error;
  }
}

type RecordEvent = (type: PodEvent["type"], reason: string, message: string) => void;

const quoted = (text: string) => JSON.stringify(text);

/** A stalled pull is `timeout` too, but concerns the image, not the engine. */
const isEngineGone = (error: unknown) => error instanceof DockerUnreachableError && error.kind !== "timeout";

/** `perSecond` and `burst` limit the starts of pulls. */
export interface PullLimits extends Rate {
  /** At a time; 0 = no limit. 1 is `serializeImagePulls`. */
  maxParallel: number;
}

/** Starts pulls in order of arrival, with limits of concurrency and rate. None is refused. */
export class PullQueue {
  readonly #clock: Clock;
  readonly #limit: ConcurrencyLimit;
  readonly #tokens: TokenBucket;

  constructor(limits: PullLimits, clock: Clock) {
    this.#clock = clock;
    this.#limit = new ConcurrencyLimit(limits.maxParallel || Number.POSITIVE_INFINITY);
    this.#tokens = new TokenBucket(limits, clock);
  }

  /** Runs `work` when it is its turn. @throws the signal's reason while waiting, and what `work` throws */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#limit.run(signal, async () => {
      const waitMs = this.#tokens.reserve();
      if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
      return work();
    });
  }
}

/** How far a pull has come. */
export interface ImageProgress {
  /** As the manifest names the image. */
  image: string;
  layers: number;
  /** Unpacked, or there already. */
  layersDone: number;
  /** Totals over the layers whose size is known so far; both grow as layers start. Unit: bytes. */
  downloadedBytes: number;
  totalBytes: number;
}

interface Layer {
  done: boolean;
  current: number;
  total: number;
}

/** Adds up what the engine reports layer by layer. */
export class PullProgress {
  readonly #image: string;
  readonly #layers = new Map<string, Layer>();

  constructor(image: string) {
    this.#image = image;
  }

  add(line: ProgressLine): ImageProgress {
    // Lines about the whole image have no id, or (`Pulling from library/nginx`) the tag for an id.
    if (line.id !== "" && !line.status.startsWith("Pulling from")) this.#addLayer(line);
    const layers = [...this.#layers.values()];
    return {
      image: this.#image,
      layers: layers.length,
      layersDone: layers.filter((layer) => layer.done).length,
      downloadedBytes: layers.reduce((sum, layer) => sum + layer.current, 0),
      totalBytes: layers.reduce((sum, layer) => sum + layer.total, 0),
    };
  }

  #addLayer({ id, status, progressDetail }: ProgressLine): void {
    const layer = this.#layers.get(id) ?? { done: false, current: 0, total: 0 };
    this.#layers.set(id, layer);
    switch (status) {
      case "Downloading":
        layer.current = progressDetail.current;
        layer.total = Math.max(progressDetail.total, progressDetail.current);
        break;
      case "Download complete":
        layer.current = layer.total;
        break;
      case "Pull complete":
      case "Already exists":
        layer.current = layer.total;
        layer.done = true;
        break;
    }
  }
}
