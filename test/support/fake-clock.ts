import type { Clock } from "../../src/base/model/clock.ts";

interface Timer {
  dueMs: number;
  callback: () => void;
}

/** A clock that moves only on command. Timers run in the order they are due, promises settle in between. */
export class FakeClock implements Clock {
  #nowMs = 0;
  #wallMs: number;
  readonly #timers = new Set<Timer>();

  constructor(start: Date | string = "2026-01-02T03:04:05.000Z") {
    this.#wallMs = new Date(start).getTime();
  }

  now(): Date {
    return new Date(this.#wallMs);
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(ms: number, callback: () => void): () => void {
    const timer: Timer = { dueMs: this.#nowMs + Math.max(0, ms), callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    if (signal?.aborted) return Promise.reject(signal.reason);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = this.schedule(ms, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
    return promise;
  }

  /** How many timers wait; 0 means that nothing would ever wake. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  /** Moves both clocks on; runs what becomes due, at its time, and lets promises settle before, between and after. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    for (let timer = this.#next(endMs); timer; timer = this.#next(endMs)) {
      this.#timers.delete(timer);
      this.#moveTo(Math.max(this.#nowMs, timer.dueMs));
      timer.callback();
      await settle();
    }
    this.#moveTo(endMs);
  }

  /** The event loop is blocked: time passes, timers that become due fire late. */
  stall(ms: number): void {
    this.#moveTo(this.#nowMs + ms);
  }

  /** The wall clock jumps, as on an edge box that learns the time after boot; monotonic time does not. */
  jump(wall: Date | string): void {
    this.#wallMs = new Date(wall).getTime();
  }

  #moveTo(ms: number): void {
    this.#wallMs += ms - this.#nowMs;
    this.#nowMs = ms;
  }

  #next(endMs: number): Timer | undefined {
    // Sorting is stable: of two due at the same time the older one comes first.
    const due = [...this.#timers].filter(({ dueMs }) => dueMs <= endMs);
    return due.sort((a, b) => a.dueMs - b.dueMs)[0];
  }
}

/** Runs every promise reaction that can run now; the event loop turns once. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
