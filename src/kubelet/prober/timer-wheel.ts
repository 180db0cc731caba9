import type { Clock } from "../../base/model/clock.ts";

interface Entry {
  callback: () => void;
  isCancelled: boolean;
}

/**
 * Many timers that share their wake-ups: each runs at the first tick that is not before its time. A wake-up of the
 * process costs forty callbacks, so a few hundred probes on a grid cost less than fifty timers of their own.
 * Nothing is armed while nothing waits.
 */
export class TimerWheel {
  readonly #clock: Clock;
  readonly #tickMs: number;
  /** Entries by number of the tick. */
  readonly #slots = new Map<number, Set<Entry>>();
  #armed: { tick: number; cancel: () => void } | undefined;

  constructor(clock: Clock, tickMs: number) {
    this.#clock = clock;
    this.#tickMs = tickMs;
  }

  /** Runs `callback` once at the first tick at or after `dueMs` (monotonic). @returns cancels it. */
  schedule(dueMs: number, callback: () => void): () => void {
    const tick = Math.ceil(Math.max(dueMs, this.#clock.monotonicMs()) / this.#tickMs);
    let slot = this.#slots.get(tick);
    if (!slot) {
      slot = new Set();
      this.#slots.set(tick, slot);
    }
    const entry: Entry = { callback, isCancelled: false };
    slot.add(entry);
    if (!this.#armed || tick < this.#armed.tick) this.#arm(tick);
    return () => {
      // Its tick may be running just now.
      entry.isCancelled = true;
      const current = this.#slots.get(tick);
      if (!current?.delete(entry) || current.size > 0) return;
      this.#slots.delete(tick);
      if (this.#armed?.tick === tick) this.#armNext();
    };
  }

  #arm(tick: number): void {
    this.#armed?.cancel();
    const delayMs = Math.max(0, tick * this.#tickMs - this.#clock.monotonicMs());
    this.#armed = { tick, cancel: this.#clock.schedule(delayMs, () => this.#run()) };
  }

  #armNext(): void {
    this.#armed?.cancel();
    this.#armed = undefined;
    let next = Number.POSITIVE_INFINITY;
    for (const tick of this.#slots.keys()) next = Math.min(next, tick);
    if (next !== Number.POSITIVE_INFINITY) this.#arm(next);
  }

  #run(): void {
    this.#armed = undefined;
    const now = this.#clock.monotonicMs();
    // A timer may fire a fraction of a millisecond early.
    const reached = Math.floor((now + 1) / this.#tickMs);
    const due = [...this.#slots.keys()].filter((tick) => tick <= reached).sort((a, b) => a - b);
    const entries: Entry[] = [];
    for (const tick of due) {
      entries.push(...this.#slots.get(tick)!);
      this.#slots.delete(tick);
    }
    this.#armNext();
    for (const { callback, isCancelled } of entries) if (!isCancelled) callback();
  }
}
