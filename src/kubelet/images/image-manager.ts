import { formatDuration } from "../../base/api/duration.ts";
import type { Container, Pod } from "../../base/api/pod.ts";
import type { Secret } from "../../base/api/secret.ts";
import { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import { Listeners } from "../../base/concurrency/listeners.ts";
import { SingleFlight } from "../../base/concurrency/single-flight.ts";
import { type Rate, TokenBucket } from "../../base/concurrency/token-bucket.ts";
import type { Clock } from "../../base/model/clock.ts";
import {
  type ImageEngine,
  type ImageInfo,
  ImageRefusal,
  type PullRequest,
  type RegistryProblem,
} from "../../base/model/container-engine.ts";
import type { Logger } from "../../base/model/logger.ts";
import { containerFieldPath } from "../../base/model/pod-containers.ts";
import type { EventRecorder, PodEvent } from "../../base/model/pod-event.ts";
import type { RegistryAuth } from "../../base/model/registry-auth.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { applyDefaultTag, type ImageReference, parseImageReference } from "../../base/text/image-reference.ts";
import { type BackOffEntry, backOffRemainingMs, MAX_BACK_OFF_MS, nextBackOff } from "../../plan/back-off.ts";
import { PodStepError } from "../../plan/waiting-reasons.ts";

/** Credentials of pods and of the machine: `ImageCredentials` of src/docker. */
interface Credentials {
  lookUp(reference: ImageReference, pullSecrets: readonly Secret[], signal: AbortSignal): Promise<RegistryAuth[]>;
}

export interface ImageManagerOptions extends Pick<PullRequest, "progressDeadlineMs" | "onProgress"> {
  images: Pick<ImageEngine, "imageStatus" | "pull" | "forget">;
  clock: Clock;
  logger: Logger;
  /** Gets every event about images; callers of `ensureImage` record none. */
  recorder: EventRecorder;
  credentials: Credentials;
  limits: PullLimits;
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
export class ImageManager {
  readonly #options: ImageManagerOptions;
  readonly #queue: PullQueue;
  readonly #pulls = new SingleFlight<ImageInfo>();
  /** Back-off by pod UID and image. */
  readonly #backOff = new Map<string, BackOffEntry>();
  readonly #uses = new Listeners<ImageInfo>();

  constructor(options: ImageManagerOptions) {
    this.#options = options;
    this.#queue = new PullQueue(options.limits, options.clock);
  }

  /** Called with each image that a pod is about to use. @returns removes the callback */
  onUse(listener: (image: ImageInfo) => void): () => void {
    return this.#uses.add(listener);
  }

  /**
   * Ensures that a container's image is present, pulling it if the policy requires it.
   * @throws ImageError when it is not available now (`retryAfterMs`: when to call again, if only to show the back-off);
   *   what the engine throws when it is gone; the signal's reason
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

  /** The engine has no such image for a create: the next caller inspects the image again. */
  forget(image: string): void {
    this.#options.images.forget(image);
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
      return await this.#options.images.imageStatus(ref, signal);
    } catch (cause) {
      if (!(cause instanceof ImageRefusal)) throw cause;
      if (cause.kind === "bad-name") throw this.#invalidName(image, cause.message, record, cause);
      const message = `Failed to inspect image ${quoted(image)}: ${cause.message}`;
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
      if (!(cause instanceof ImageRefusal)) throw cause;
      const { kind, message: detail, problem } = cause;
      record("Warning", "Failed", `Failed to pull image ${quoted(image)}: ${detail}`);
      // The hint is logged once per series of failures.
      const hint = REGISTRY_HINTS[problem];
      const isNews = ![...this.#backOff.keys()].some((known) => known.slice(known.indexOf("_") + 1) === image);
      if (isNews && hint !== "") this.#options.logger.warn(`Image ${quoted(image)} cannot be pulled: ${hint}`);
      // Another container of the pod may have waited for the same pull: that was one failure.
      if (this.#backOff.get(key) === entry) this.#raiseBackOff(key);
      const retryAfterMs = SHOW_FAILURE_MS;
      const [reason, message] =
        kind === "unavailable"
          ? (["RegistryUnavailable", `image pull failed for ${image} because the registry is unavailable.`] as const)
          : (["ErrImagePull", detail] as const);
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
    const { images, credentials, progressDeadlineMs, onProgress } = this.#options;
    const auths = await credentials.lookUp(parseImageReference(ref), pullSecrets, signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new ImageRefusal("failed", messageOf(cause), "other", { cause });
    });
    // Pulls with other credentials are separate: a caller must not get an image that its own credentials do not allow.
    const key = `${ref}\n${new Bun.CryptoHasher("sha256").update(JSON.stringify(auths)).digest("hex")}`;
    const pull = (stop: AbortSignal) =>
      this.#timed(() => images.pull(ref, { image, auths, progressDeadlineMs, onProgress }, stop));
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

/** Suggested fix in a few words; "" when the message suffices. */
const REGISTRY_HINTS: Readonly<Record<RegistryProblem, string>> = {
  unknown: "check the name and the tag",
  denied: "check the name, and the credentials in config.json or imagePullSecrets",
  unreachable:
    "check the registry's address and the network; the image can also be loaded from a directory (--images-dir)",
  tls: "add the registry's CA to /etc/docker/certs.d, or list it in insecure-registries of /etc/docker/daemon.json",
  stalled: "the network to the registry is too slow or broken; see --image-pull-progress-deadline",
  other: "",
};

/** Upstream's words, as they are in a waiting container's state. */
type ImageErrorReason =
  | "ErrImagePull"
  | "ImagePullBackOff"
  | "ErrImageNeverPull"
  | "InvalidImageName"
  | "ImageInspectError"
  | "RegistryUnavailable";

/** An image is not available now. `reason` and `message` are for the container's status. */
export class ImageError extends PodStepError {
  declare readonly reason: ImageErrorReason;
  readonly image: string;
  /** Only where a registry was asked. */
  readonly problem: RegistryProblem | undefined;

  constructor(
    reason: ImageErrorReason,
    image: string,
    message: string,
    options: { retryAfterMs?: number | undefined; problem?: RegistryProblem | undefined; cause?: unknown } = {},
  ) {
    super(reason, message, options);
    this.image = image;
    this.problem = options.problem;
  }
}

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
