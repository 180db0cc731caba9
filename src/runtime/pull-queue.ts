import type { Clock } from "../model/clock.ts";
import { type Rate, TokenBucket } from "../model/token-bucket.ts";

/** `perSecond` and `burst` count beginnings. */
export interface PullLimits extends Rate {
  /** At a time; 0 = no limit. 1 is `serializeImagePulls`. */
  maxParallel: number;
}

/** Lets pulls begin in the order they came, not too many at a time and not too often. Nothing is refused, only later. */
export class PullQueue {
  readonly #limits: PullLimits;
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  readonly #tokens: TokenBucket;
  #running = 0;

  constructor(limits: PullLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#tokens = new TokenBucket(limits, clock);
  }

  /** Runs `work` when it is its turn. @throws the signal's reason while waiting, and what `work` throws */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#takeTurn(signal);
    try {
      await this.#takeToken(signal);
      return await work();
    } finally {
      this.#running--;
      this.#waiting.shift()?.();
    }
  }

  async #takeTurn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { maxParallel } = this.#limits;
    if (maxParallel > 0 && this.#running >= maxParallel) {
      await new Promise<void>((resolve, reject) => {
        const go = () => {
          signal.removeEventListener("abort", giveUp);
          resolve();
        };
        const giveUp = () => {
          this.#waiting.splice(this.#waiting.indexOf(go), 1);
          reject(signal.reason);
        };
        signal.addEventListener("abort", giveUp, { once: true });
        this.#waiting.push(go);
      });
    }
    this.#running++;
  }

  async #takeToken(signal: AbortSignal): Promise<void> {
    const waitMs = this.#tokens.reserve();
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal);
  }
}
