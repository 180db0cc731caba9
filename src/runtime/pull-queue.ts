import { ConcurrencyLimit } from "../concurrency/concurrency-limit.ts";
import { type Rate, TokenBucket } from "../concurrency/token-bucket.ts";
import type { Clock } from "../model/clock.ts";

/** `perSecond` and `burst` count beginnings. */
export interface PullLimits extends Rate {
  /** At a time; 0 = no limit. 1 is `serializeImagePulls`. */
  maxParallel: number;
}

/** Lets pulls begin in the order they came, not too many at a time and not too often. Nothing is refused, only later. */
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
