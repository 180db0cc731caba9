import type { Clock } from "../model/clock.ts";

/** Longest time without a timer while a window is open. Unit: milliseconds. */
const TICK_MS = 50;

interface Window {
  maxLagMs: number;
}

/** Measures how late timers of this process fire. Nothing is armed while no window is open. */
export class LoopLagMonitor {
  readonly #clock: Pick<Clock, "monotonicMs" | "schedule">;
  readonly #windows = new Set<Window>();
  #tick: { dueMs: number; cancel: () => void } | undefined;

  constructor(clock: Pick<Clock, "monotonicMs" | "schedule">) {
    this.#clock = clock;
  }

  /** A timer fired this much too late. Unit: milliseconds. */
  observe(lagMs: number): void {
    for (const window of this.#windows) window.maxLagMs = Math.max(window.maxLagMs, lagMs);
  }

  /** Opens a window. @returns closes it and returns the greatest lag within it, in milliseconds */
  openWindow(): () => number {
    const window: Window = { maxLagMs: 0 };
    this.#windows.add(window);
    if (!this.#tick) this.#arm();
    return () => {
      // An overdue tick has not run yet when an I/O event of the same turn closes the window.
      if (this.#tick) this.observe(this.#clock.monotonicMs() - this.#tick.dueMs);
      this.#windows.delete(window);
      if (this.#windows.size === 0) this.#disarm();
      return window.maxLagMs;
    };
  }

  #arm(): void {
    const dueMs = this.#clock.monotonicMs() + TICK_MS;
    const cancel = this.#clock.schedule(TICK_MS, () => {
      this.observe(this.#clock.monotonicMs() - dueMs);
      this.#tick = undefined;
      if (this.#windows.size > 0) this.#arm();
    });
    this.#tick = { dueMs, cancel };
  }

  #disarm(): void {
    this.#tick?.cancel();
    this.#tick = undefined;
  }
}
