import type { Clock } from "../model/clock.ts";

/** How long a slice of work keeps the event loop. */
const SLICE_MS = 10;
/** Work that needs no pause after a quiet time. */
const MAX_CREDIT_MS = 200;
/** Share of the time that is left for such work in the long run. */
const SHARE = 0.5;

/** More work waits than the lane accepts. */
export class LaneFullError extends Error {
  override readonly name = "LaneFullError";
}

/** Runs pieces of computing work, one in each turn of the event loop; in the long run they get half of the time. */
export class WorkLane {
  readonly #clock: Clock;
  readonly #maxWaiting: number;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();
  #creditMs = MAX_CREDIT_MS;
  #creditedMs: number;

  /** @param maxWaiting pieces that may wait for their turn */
  constructor(clock: Clock, maxWaiting: number) {
    this.#clock = clock;
    this.#maxWaiting = maxWaiting;
    this.#creditedMs = clock.monotonicMs();
  }

  /** Runs one short piece of work. @throws LaneFullError; what `piece` throws */
  run<T>(piece: () => T): Promise<T> {
    if (this.#waiting >= this.#maxWaiting) return Promise.reject(new LaneFullError("too much work is waiting"));
    this.#waiting++;
    const done = this.#last.then(() => this.#take(piece));
    this.#last = done.catch(() => {});
    return done.finally(() => {
      this.#waiting--;
    });
  }

  /** Every item of `work`, which is continued in slices of 10 ms. @throws LaneFullError; the reason of `stop` */
  async collect<T>(work: Iterable<T>, stop: AbortSignal): Promise<T[]> {
    const iterator = work[Symbol.iterator]();
    const items: T[] = [];
    const slice = (): boolean => {
      stop.throwIfAborted();
      const endMs = performance.now() + SLICE_MS;
      do {
        const next = iterator.next();
        if (next.done) return false;
        items.push(next.value);
      } while (performance.now() < endMs);
      return true;
    };
    while (await this.run(slice));
    return items;
  }

  async #take<T>(piece: () => T): Promise<T> {
    await new Promise<void>((resolve) => setImmediate(resolve));
    const startMs = this.#clock.monotonicMs();
    this.#creditMs = Math.min(MAX_CREDIT_MS, this.#creditMs + (startMs - this.#creditedMs) * SHARE);
    this.#creditedMs = startMs;
    if (this.#creditMs < 0) await this.#clock.sleep(-this.#creditMs / SHARE);
    const beganMs = this.#clock.monotonicMs();
    try {
      return piece();
    } finally {
      this.#creditMs -= this.#clock.monotonicMs() - beganMs;
    }
  }
}
