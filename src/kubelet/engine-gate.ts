/**
 * Lets so many pieces of work at a time through to the engine. More would only queue up inside it, where a short call
 * has to wait behind long ones. First come, first served.
 */
export class EngineGate {
  readonly #width: number;
  #busy = 0;
  readonly #queue: (() => void)[] = [];

  constructor(width: number) {
    this.#width = width;
  }

  /** @throws the signal's reason when it aborts before the work's turn; whatever the work throws */
  async pass<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    if (this.#busy >= this.#width) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#busy++;
    try {
      signal.throwIfAborted();
      return await work();
    } finally {
      const next = this.#queue.shift();
      // The place is handed on, so that nobody slips in between.
      if (next) next();
      else this.#busy--;
    }
  }
}
