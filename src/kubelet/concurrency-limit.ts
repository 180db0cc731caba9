/** Lets at most so many pieces of work run at a time; the others wait their turn, first come first served. */
export class ConcurrencyLimit {
  readonly #max: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Runs `work` when there is room. Never begins it once `signal` has aborted; rejects with the signal's reason then. */
  async run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    // Whoever leaves hands its place on, so a newcomer cannot overtake.
    if (this.#running < this.#max) this.#running++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
