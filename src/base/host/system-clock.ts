import type { Clock } from "../model/clock.ts";

/** A timer with a longer delay fires at once: Node and Bun keep delays in 32 bits. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The clocks and timers of the machine. */
export class SystemClock implements Clock {
  /** Called whenever a timer fires, with how late it is in milliseconds. */
  onTimer: ((lagMs: number) => void) | undefined;
  #pending = 0;

  /** Timers that have neither fired nor been canceled. */
  get pendingTimers(): number {
    return this.#pending;
  }

  now(): Date {
    return new Date();
  }

  monotonicMs(): number {
    return performance.now();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const onAbort = () => {
        cancel();
        reject(signal?.reason);
      };
      const cancel = this.schedule(ms, () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  schedule(ms: number, callback: () => void): () => void {
    const delayMs = Math.min(Math.max(0, ms), LONGEST_TIMER_MS);
    const dueMs = performance.now() + delayMs;
    let isPending = true;
    const settle = () => {
      if (isPending) this.#pending--;
      isPending = false;
    };
    this.#pending++;
    const timer = setTimeout(() => {
      settle();
      this.onTimer?.(Math.max(0, performance.now() - dueMs));
      callback();
    }, delayMs);
    return () => {
      settle();
      clearTimeout(timer);
    };
  }
}
