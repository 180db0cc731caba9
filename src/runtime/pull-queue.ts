import type { Clock } from "../model/clock.ts";

export interface PullLimits {
  /** At a time; 0 = no limit. 1 is `serializeImagePulls`. */
  maxParallel: number;
  /** Begun per second on average; 0 = no limit. */
  perSecond: number;
  /** That many may begin at once after a quiet time. */
  burst: number;
}

/** Lets pulls begin in the order they came, not too many at a time and not too often. Nothing is refused, only later. */
export class PullQueue {
  readonly #limits: PullLimits;
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #running = 0;
  /** Token bucket: what is left, and as of when. */
  #tokens: number;
  #countedAtMs: number;

  constructor(limits: PullLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
    this.#tokens = Math.max(1, limits.burst);
    this.#countedAtMs = clock.monotonicMs();
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
    const { perSecond, burst } = this.#limits;
    if (perSecond <= 0) return;
    const now = this.#clock.monotonicMs();
    this.#tokens = Math.min(Math.max(1, burst), this.#tokens + ((now - this.#countedAtMs) / 1000) * perSecond);
    this.#countedAtMs = now;
    // Going below zero reserves a token of the future, which keeps the order of those who wait.
    this.#tokens -= 1;
    if (this.#tokens < 0) await this.#clock.sleep((-this.#tokens / perSecond) * 1000, signal);
  }
}
