/** Limits the number of concurrent calls; the others wait, first come first served. */
export class ConcurrencyLimit {
  readonly #max: number;
  #running = 0;
  /** In the order of their coming. */
  readonly #waiting = new Set<() => void>();
  /** Before all of {@link #waiting}, in the order of their coming. */
  readonly #preferred = new Set<() => void>();

  /** @param max Infinity: no limit */
  constructor(max: number) {
    this.#max = max;
  }

  /** Rejects with the signal's reason when it aborts before `work` begins. @param isPreferred before all that is not */
  async run<T>(signal: AbortSignal, work: () => Promise<T>, isPreferred = false): Promise<T> {
    signal.throwIfAborted();
    // Finished work hands its slot to the next waiter, so a new caller cannot overtake.
    if (this.#running < this.#max) this.#running++;
    else await this.#turn(signal, isPreferred ? this.#preferred : this.#waiting);
    try {
      // The signal may have aborted after the slot was assigned.
      signal.throwIfAborted();
      return await work();
    } finally {
      this.#handOn();
    }
  }

  #handOn(): void {
    for (const queue of [this.#preferred, this.#waiting]) {
      const [next] = queue;
      if (!next) continue;
      queue.delete(next);
      return next();
    }
    this.#running--;
  }

  #turn(signal: AbortSignal, queue: Set<() => void>): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const begin = (): void => {
      signal.removeEventListener("abort", giveUp);
      resolve();
    };
    const giveUp = (): void => {
      queue.delete(begin);
      reject(signal.reason);
    };
    queue.add(begin);
    signal.addEventListener("abort", giveUp, { once: true });
    return promise;
  }
}
