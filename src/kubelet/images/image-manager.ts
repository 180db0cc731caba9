import type { Secret } from "../../base/api/config-objects.ts";
import type { Container, Pod } from "../../base/api/pod.ts";
import { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import { Listeners } from "../../base/concurrency/listeners.ts";
import { SingleFlight } from "../../base/concurrency/single-flight.ts";
import { timed } from "../../base/concurrency/timed.ts";
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
import { containerFieldPath, podRefOf } from "../../base/model/pod.ts";
import type { EventRecorder, PodEvent } from "../../base/model/pod-event.ts";
import type { RegistryAuth } from "../../base/model/registry-auth.ts";
import { formatDuration } from "../../base/text/duration.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { applyDefaultTag, type ImageReference, parseImageReference } from "../../base/text/image-reference.ts";
import { type BackOffEntry, backOffRemainingMs, MAX_BACK_OFF_MS, nextBackOff } from "../../plan/restart-policy.ts";
import { PodStepError } from "../../plan/waiting-reasons.ts";
import { countOperation, type KubeletMetrics } from "../../stats/metrics/kubelet-metrics.ts";

/** Credentials of pods and of the machine: `ImageCredentials` of src/docker. */
interface Credentials {
  lookUp(reference: ImageReference, pullSecrets: readonly Secret[], signal: AbortSignal): Promise<RegistryAuth[]>;
}

/** `perSecond` and `burst` limit the starts of pulls. */
interface PullLimits extends Rate, Pick<PullRequest, "progressDeadlineMs"> {
  /** At a time; 0 = no limit. 1 is `serializeImagePulls`. */
  maxParallel: number;
}

export interface ImageManagerOptions extends Pick<PullRequest, "onProgress"> {
  images: Pick<ImageEngine, "imageStatus" | "pull">;
  clock: Clock;
  logger: Logger;
  /** Gets every event about images; callers of `ensureImage` record none. */
  recorder: EventRecorder;
  credentials: Credentials;
  limits: PullLimits;
  metrics: KubeletMetrics;
}

/**
 * How long a container shows `ErrImagePull` with the engine's message before another sync turns that into
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
  /** Each image that a pod is about to use. */
  readonly uses = new Listeners<ImageInfo>();
  readonly #options: ImageManagerOptions;
  readonly #limit: ConcurrencyLimit;
  readonly #tokens: TokenBucket;
  readonly #pulls = new SingleFlight<ImageInfo>();
  /** Back-off by pod UID and image. */
  readonly #backOff = new Map<string, BackOffEntry>();

  constructor(options: ImageManagerOptions) {
    this.#options = options;
    this.#limit = new ConcurrencyLimit(options.limits.maxParallel || Number.POSITIVE_INFINITY);
    this.#tokens = new TokenBucket(options.limits, options.clock);
  }

  /**
   * Ensures that a container's image is present, pulling it if the policy requires it.
   * @throws PodStepError when it is not available now (`retryAfterMs`: when to call again, if only to show the back-off);
   *   what the engine throws when it is gone; the signal's reason
   */
  async ensureImage(
    pod: Pod,
    container: Container,
    { pullSecrets }: { pullSecrets: readonly Secret[] },
    signal: AbortSignal,
  ): Promise<ImageInfo> {
    const image = container.image ?? "";
    const request = {
      image,
      backOffKey: `${pod.metadata.uid ?? ""}_${image}`,
      pullSecrets,
      report: this.#reportsOf(pod, container),
    };
    const ref = toReference(request);
    const present = await this.#inspect(request, ref, signal);
    const policy = container.imagePullPolicy ?? "IfNotPresent";
    if (policy === "Always" || (policy === "IfNotPresent" && !present)) return this.#pullForPod(request, ref, signal);
    if (!present) {
      const message = `Container image ${quoted(image)} is not present with pull policy of Never`;
      throw failed(request, "ErrImageNeverPull", message, "ErrImageNeverPull");
    }
    request.report("Normal", "Pulled", `Container image ${quoted(image)} already present on machine`);
    this.uses.emit(present);
    return present;
  }

  /** Pulls outside any pod (the sandbox's image), with the machine's credentials and without back-off. */
  async pull(image: string, signal: AbortSignal): Promise<ImageInfo> {
    return this.#pullShared(image, applyDefaultTag(image), [], signal);
  }

  /** Pulls an image that a pod is about to use. It counts as used, so that it may be removed later. */
  async pullAhead(image: string, pullSecrets: readonly Secret[], signal: AbortSignal): Promise<ImageInfo> {
    const pulled = await this.#pullShared(image, applyDefaultTag(image), pullSecrets, signal);
    this.uses.emit(pulled);
    return pulled;
  }

  async #inspect(request: ImageRequest, ref: string, signal: AbortSignal): Promise<ImageInfo | undefined> {
    try {
      return await this.#options.images.imageStatus(ref, signal);
    } catch (cause) {
      if (!(cause instanceof ImageRefusal)) throw cause;
      if (cause.kind === "bad-name") throw invalidName(request, cause.message, cause);
      const message = `Failed to inspect image ${quoted(request.image)}: ${cause.message}`;
      throw failed(request, "ImageInspectError", message, "InspectFailed", { cause });
    }
  }

  async #pullForPod(request: ImageRequest, ref: string, signal: AbortSignal): Promise<ImageInfo> {
    const { clock, logger } = this.#options;
    const { image, backOffKey, pullSecrets, report } = request;
    const entry = this.#backOff.get(backOffKey);
    const waitMs = entry ? backOffRemainingMs(entry, entry.updatedAtMs, clock.monotonicMs()) : 0;
    if (waitMs > 0) {
      const message = `Back-off pulling image ${quoted(image)}`;
      report("Normal", "BackOff", message);
      throw failed(request, "ImagePullBackOff", message, undefined, { retryAfterMs: waitMs });
    }
    report("Normal", "Pulling", `Pulling image ${quoted(image)}`);
    const startedAtMs = clock.monotonicMs();
    try {
      const pulled = await this.#pullShared(image, ref, pullSecrets, signal);
      this.uses.emit(pulled);
      this.#backOff.delete(backOffKey);
      const took = formatDuration(clock.monotonicMs() - startedAtMs);
      report("Normal", "Pulled", `Successfully pulled image ${quoted(image)} in ${took}`);
      return pulled;
    } catch (cause) {
      signal.throwIfAborted();
      // Without an engine nothing is known about the image: no back-off.
      if (!(cause instanceof ImageRefusal)) throw cause;
      const { message: detail, problem } = cause;
      report("Warning", "Failed", `Failed to pull image ${quoted(image)}: ${detail}`);
      // The hint is logged once per series of failures.
      const hint = REGISTRY_HINTS[problem];
      const isNews = ![...this.#backOff.keys()].some((known) => known.slice(known.indexOf("_") + 1) === image);
      if (isNews && hint !== "") logger.warn(`Image ${quoted(image)} cannot be pulled: ${hint}`);
      // Another container of the pod may have waited for the same pull: that was one failure.
      if (this.#backOff.get(backOffKey) === entry) this.#raiseBackOff(backOffKey);
      const options = { retryAfterMs: SHOW_FAILURE_MS, cause };
      if (cause.kind !== "unavailable") throw failed(request, "ErrImagePull", detail, undefined, options);
      const message = `image pull failed for ${image} because the registry is unavailable.`;
      throw failed(request, "RegistryUnavailable", message, undefined, options);
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
    const { images, credentials, limits, onProgress, clock, metrics } = this.#options;
    const { progressDeadlineMs } = limits;
    const auths = await credentials.lookUp(parseImageReference(ref), pullSecrets, signal).catch((cause: unknown) => {
      signal.throwIfAborted();
      throw new ImageRefusal("failed", messageOf(cause), "other", { cause });
    });
    // Pulls with other credentials are separate: a caller must not get an image that its own credentials do not allow.
    const key = `${ref}\n${new Bun.CryptoHasher("sha256").update(JSON.stringify(auths)).digest("hex")}`;
    // Attempts with different credentials count as one.
    const pull = (stop: AbortSignal) =>
      timed(
        clock,
        () => images.pull(ref, { image, auths, progressDeadlineMs, onProgress }, stop),
        (durationMs, failed) => countOperation(metrics, "pull_image", durationMs, failed),
      );
    return this.#pulls.do(key, (stop) => this.#inTurn(() => pull(stop), stop), signal);
  }

  /** Pulls start in order of arrival, within the limits of concurrency and rate. None is refused. */
  #inTurn<T>(pull: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#limit.run(signal, async () => {
      const waitMs = this.#tokens.reserve();
      if (waitMs > 0) await this.#options.clock.sleep(waitMs, signal);
      return pull();
    });
  }

  #reportsOf(pod: Pod, container: Container): ImageRequest["report"] {
    const fieldPath = containerFieldPath(pod.spec, container.name);
    return (type, reason, message) =>
      this.#options.recorder.record(podRefOf(pod), { type, reason, message, fieldPath });
  }
}

/** An image that a container of a pod needs. */
interface ImageRequest {
  /** As the manifest names it. */
  image: string;
  backOffKey: string;
  pullSecrets: readonly Secret[];
  /** Records an event of the container. */
  report: (type: PodEvent["type"], reason: string, message: string) => void;
}

function toReference(request: ImageRequest): string {
  try {
    return applyDefaultTag(request.image);
  } catch (cause) {
    throw invalidName(request, messageOf(cause), cause);
  }
}

function invalidName(request: ImageRequest, why: string, cause: unknown): PodStepError {
  const image = quoted(request.image);
  const message = `Failed to apply default image tag ${image}: couldn't parse image reference ${image}: ${why}`;
  return failed(request, "InvalidImageName", message, "InspectFailed", { cause });
}

/** Upstream's container start records the reason as a second event. */
function failed(
  { report }: ImageRequest,
  reason: PodStepError["reason"],
  message: string,
  /** Reason of an event with the message itself. */
  event: string | undefined,
  options: { retryAfterMs?: number; cause?: unknown } = {},
): PodStepError {
  if (event !== undefined) report("Warning", event, message);
  report("Warning", "Failed", `Error: ${reason}`);
  return new PodStepError(reason, message, options);
}

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
