/** Lets at most so many pieces of work run at a time; the others wait their turn, first come first served. */
export class ConcurrencyLimit {
  readonly #max: number;
  #running = 0;
  /** In the order of their coming. */
  readonly #waiting = new Set<() => void>();

  /** @param max Infinity: no limit */
  constructor(max: number) {
    this.#max = max;
  }

  /** Runs `work` when there is room. Rejects with the signal's reason when it aborts before that; `work` never begins then. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    // Finished work hands its slot to the next waiter, so a new caller cannot overtake.
    if (this.#running < this.#max) this.#running++;
    else await this.#turn(signal);
    try {
      // The signal may have aborted after the slot was assigned.
      signal.throwIfAborted();
      return await work();
    } finally {
      const [next] = this.#waiting;
      if (next) {
        this.#waiting.delete(next);
        next();
      } else this.#running--;
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const begin = (): void => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = (): void => {
      this.#waiting.delete(begin);
      reject(signal.reason);
    };
    this.#waiting.add(begin);
    signal.addEventListener("abort", giveUp, { once: true });
    return promise;
  }
}
