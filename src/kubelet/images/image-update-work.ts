import type { Secret } from "../../base/api/secret.ts";
import { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { ImageUpdateSettings } from "../../plan/image-update-settings.ts";
import {
  type ImageCandidate,
  type LookedUp,
  noteFailed,
  noteLookedUp,
  notePulled,
  noteSame,
} from "../../plan/image-updates.ts";
import type { ImageUpdateRecords } from "./image-update-records.ts";
import type { Target } from "./image-update-targets.ts";
import type { ImageUpdateTrials } from "./image-update-trials.ts";

/** Name of an image for the engine, and the tag that has this digest. */
export interface BaselineImage {
  ref: string;
  tag: string;
}

export interface ImageUpdateWorkDeps {
  clock: Clock;
  logger: Logger;
  /** Asks the registry. @param present tag that runs now */
  lookUp: (
    image: string,
    policy: ImageUpdateSettings["policy"],
    present: string,
    pullSecrets: readonly Secret[],
    signal: AbortSignal,
  ) => Promise<LookedUp>;
  /** Gets an image onto the machine. @returns its id */
  pull: (ref: string, pullSecrets: readonly Secret[], signal: AbortSignal) => Promise<string>;
  /** A reference by which the image that runs can be pulled again. */
  describe: (imageId: string, image: string, signal: AbortSignal) => Promise<BaselineImage>;
}

interface ImageUpdateWorkHost {
  /** The next regular look-up. */
  nextCheck: (target: Target) => Date | undefined;
  /** The running image is pinned now. */
  onAdopted: () => void;
  /** A look-up has ended. @param candidate undefined: nothing newer was found */
  onLookedUp: (target: Target, candidate: ImageCandidate | undefined) => void;
  onFailed: (target: Target) => void;
  /** Work on an image ended, successful or not. */
  onEnd: () => void;
}

const MAX_LOOK_UPS = 2;

/** Work on images in the background, one piece for each image at a time: naming the running one, look-ups, pulls. */
export class ImageUpdateWork {
  readonly #deps: ImageUpdateWorkDeps;
  readonly #records: ImageUpdateRecords;
  readonly #trials: ImageUpdateTrials;
  readonly #host: ImageUpdateWorkHost;
  readonly #busy = new Set<string>();
  readonly #lookUps = new ConcurrencyLimit(MAX_LOOK_UPS);
  readonly #stop = new AbortController();

  constructor(
    deps: ImageUpdateWorkDeps,
    records: ImageUpdateRecords,
    trials: ImageUpdateTrials,
    host: ImageUpdateWorkHost,
  ) {
    this.#deps = deps;
    this.#records = records;
    this.#trials = trials;
    this.#host = host;
  }

  isBusy({ id }: Target): boolean {
    return this.#busy.has(id);
  }

  stop(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
  }

  /** Notes the image that runs under the name of the manifest, so that it stays. */
  adopt(target: Target): void {
    const imageId = this.#trials.runningImageOf(target);
    if (imageId === undefined) return;
    this.#begin(target, async (signal) => {
      const { ref, tag } = await this.#deps.describe(imageId, target.image, signal);
      this.#records.put({ ...this.#records.of(target), current: { ref, tag, isBaseline: true } });
      this.#host.onAdopted();
    });
  }

  lookUp(target: Target): void {
    const { settings, image, pullSecrets } = target;
    const present = this.#records.of(target).current?.tag ?? "";
    this.#begin(target, async (signal) => {
      const found = await this.#lookUps.run(signal, () =>
        this.#deps.lookUp(image, settings.policy, present, pullSecrets, signal),
      );
      const nextCheckAt = this.#host.nextCheck(target);
      const record = noteLookedUp(this.#records.of(target), found, this.#deps.clock.now(), nextCheckAt);
      this.#records.put(record);
      this.#host.onLookedUp(target, record.candidate);
    });
  }

  pull(target: Target, ref: string): void {
    this.#begin(target, async (signal) => {
      const id = await this.#deps.pull(ref, target.pullSecrets, signal);
      const record = this.#records.of(target);
      if (record.candidate?.ref !== ref) return;
      this.#records.put(this.#trials.allRun(target, id) ? noteSame(record) : notePulled(record));
    });
  }

  /** Starts work and returns at once; a failure is noted in the record. */
  #begin(target: Target, work: (signal: AbortSignal) => Promise<void>): void {
    this.#busy.add(target.id);
    work(this.#stop.signal)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#noteFailed(target, messageOf(error));
      })
      .finally(() => {
        this.#busy.delete(target.id);
        this.#host.onEnd();
      });
  }

  #noteFailed(target: Target, message: string): void {
    const record = this.#records.of(target);
    if (record.error !== message) {
      this.#deps.logger.warn(`Image ${target.image} of "${target.owner}" is not updated: ${message}`);
    }
    this.#records.put(noteFailed(record, message, this.#deps.clock.now()));
    this.#host.onFailed(target);
  }
}
