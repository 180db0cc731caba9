/** Runs pieces of work one after the other, those of each key apart. One that fails does not keep the next from running. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** @throws what `work` throws */
  run<T>(key: string, work: () => T | Promise<T>): Promise<T> {
    const result = (this.#last.get(key) ?? Promise.resolve()).then(work);
    const settled = result
      .catch(() => {})
      .finally(() => {
        if (this.#last.get(key) === settled) this.#last.delete(key);
      });
    this.#last.set(key, settled);
    return result;
  }
}
