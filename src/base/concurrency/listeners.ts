/** Callbacks that receive each value, in the order in which they were added. */
export class Listeners<T = void> {
  readonly #all = new Set<(value: T) => void>();

  /** @returns removes the callback */
  add(listener: (value: T) => void): () => void {
    this.#all.add(listener);
    return () => this.#all.delete(listener);
  }

  emit(value: T): void {
    for (const listener of this.#all) listener(value);
  }
}
