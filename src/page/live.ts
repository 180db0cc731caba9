import { useEffect, useRef, useState } from "preact/hooks";

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

/** The part of a live value that a component shows. It is rendered again when that part changes, while `isActive`. */
export function useLive<T, Part>(live: Live<T>, isActive: boolean, select: (value: T) => Part): Part {
  const [, setPart] = useState(() => select(live.value));
  const latest = useRef(select);
  latest.current = select;
  useEffect(
    () => (isActive ? live.subscribe((value) => setPart(() => latest.current(value))) : undefined),
    [live, isActive],
  );
  return select(live.value);
}
