import type { Clock } from "../model/clock.ts";

/** How often something may happen. */
export interface Rate {
  /** On average; 0 = no limit. */
  perSecond: number;
  /** That many at once after a quiet time; below 1 counts as 1. */
  burst: number;
}

/** A token bucket: tokens arrive at a steady rate, at most `burst` are saved, each operation takes one. */
export class TokenBucket {
  readonly #rate: Rate;
  readonly #clock: Clock;
  #tokens: number;
  #countedAtMs: number;

  constructor(rate: Rate, clock: Clock) {
    this.#rate = rate;
    this.#clock = clock;
    this.#tokens = this.#most;
    this.#countedAtMs = clock.monotonicMs();
  }

  /** Takes a token if there is one. */
  tryTake(): boolean {
    if (this.#rate.perSecond <= 0) return true;
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Takes a token, or reserves a future one, in order. @returns milliseconds until it is there */
  reserve(): number {
    const { perSecond } = this.#rate;
    if (perSecond <= 0) return 0;
    this.#refill();
    this.#tokens -= 1;
    return this.#tokens < 0 ? (-this.#tokens / perSecond) * 1000 : 0;
  }

  get #most(): number {
    return Math.max(1, this.#rate.burst);
  }

  #refill(): void {
    const nowMs = this.#clock.monotonicMs();
    const grown = ((nowMs - this.#countedAtMs) / 1000) * this.#rate.perSecond;
    this.#tokens = Math.min(this.#most, this.#tokens + grown);
    this.#countedAtMs = nowMs;
  }
}
