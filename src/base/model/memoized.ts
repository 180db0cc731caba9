/** A function that is called once for each object, and again when another argument is not the one of the last call. */
export function memoized<T extends object, A extends unknown[], R>(
  make: (object: T, ...others: A) => R,
): (object: T, ...others: A) => R {
  const made = new WeakMap<T, { others: A; result: R }>();
  return (object, ...others) => {
    // A callback gets more arguments than it takes.
    others.length = make.length - 1;
    const known = made.get(object);
    if (known && isSameList(known.others, others)) return known.result;
    const result = make(object, ...others);
    made.set(object, { others, result });
    return result;
  };
}

/** Whether two lists have the same items, by identity. */
export const isSameList = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a === b || (a.length === b.length && a.every((one, index) => one === b[index]));

interface Part<T, R> {
  object: T;
  key: string;
  inputs: readonly unknown[];
  made: R;
}

/**
 * Parts made of each object of a list. One is the same object while it has the same content: who gets it need not compare. Of a
 * long list only what has changed is looked at.
 */
export class MadeOfEach<T extends object, R> {
  readonly #keyOf: (object: T) => string;
  #parts: readonly Part<T, R>[] = [];
  #context: readonly unknown[] = [];

  /** @param keyOf an object replaces the one of the same key: the same part may be made of it */
  constructor(keyOf: (object: T) => string) {
    this.#keyOf = keyOf;
  }

  /**
   * @param context all on which inputs depend: while these are the same ones, an object that is the same one has the same inputs
   * @param inputsOf all on which what is made depends: while they are the same ones, nothing is made again
   * @returns one for each of these objects; others are forgotten
   */
  update(
    objects: readonly T[],
    context: readonly unknown[],
    inputsOf: (object: T) => readonly unknown[],
    make: (object: T) => R,
  ): R[] {
    const before = this.#parts;
    const isSameContext = isSameList(context, this.#context);
    this.#context = context;
    let byKey: ReadonlyMap<string, Part<T, R>> | undefined;
    this.#parts = objects.map((object, index) => {
      const there = before[index];
      if (isSameContext && there?.object === object) return there;
      const key = this.#keyOf(object);
      byKey ??= there?.key === key ? undefined : new Map(before.map((part) => [part.key, part]));
      const known = there?.key === key ? there : byKey?.get(key);
      if (isSameContext && known?.object === object) return known;
      const inputs = inputsOf(object);
      let made = known && isSameList(known.inputs, inputs) ? known.made : make(object);
      if (known && made !== known.made && Bun.deepEquals(made, known.made)) made = known.made;
      return { object, key, inputs, made };
    });
    return this.#parts.map(({ made }) => made);
  }
}
