import { useEffect, useState } from "preact/hooks";

/** A value with subscribers: a change renders the components that show it, not their parents. */
export class Live<T> {
  #value: T;
  readonly #readers = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    this.#value = value;
    for (const reader of this.#readers) reader(value);
  }

  /** @returns a function that ends it */
  subscribe(reader: (value: T) => void): () => void {
    this.#readers.add(reader);
    return () => this.#readers.delete(reader);
  }
}

/** A live value, for a component that is rendered again with each new one while `isActive`. */
export function useLive<T>(live: Live<T>, isActive: boolean): T {
  const [, setValue] = useState(live.value);
  useEffect(() => (isActive ? live.subscribe(setValue) : undefined), [live, isActive]);
  return live.value;
}
