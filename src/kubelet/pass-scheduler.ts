import type { Clock } from "../base/model/clock.ts";

/** Schedules the passes of one pod worker: calls in one turn of the event loop make one pass, and one timer is set at most. */
export class PassScheduler {
  readonly #clock: Clock;
  readonly #pass: () => void;
  #isScheduled = false;
  #isStopped = false;
  #cancelTimer: (() => void) | undefined;

  /** @param pass must not throw */
  constructor(clock: Clock, pass: () => void) {
    this.#clock = clock;
    this.#pass = pass;
  }

  /** Schedules a pass now. */
  wake(): void {
    if (this.#isScheduled || this.#isStopped) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (!this.#isStopped) this.#pass();
    });
  }

  /** Replaces the time of the next pass. @param atMs monotonic; undefined: there is none until {@link wake} */
  wakeAt(atMs: number | undefined): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (atMs === undefined || this.#isStopped) return;
    const delayMs = Math.max(0, atMs - this.#clock.monotonicMs());
    this.#cancelTimer = this.#clock.schedule(delayMs, () => this.wake());
  }

  /** No pass begins after this. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelTimer?.();
  }
}
