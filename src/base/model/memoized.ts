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

/** Parts made of each object of a list. One is the same object while it has the same content: who gets it need not compare. */
export class MadeOfEach<T extends object, R> {
  readonly #keyOf: (object: T) => string;
  #known = new Map<string, { inputs: readonly unknown[]; made: R }>();

  /** @param keyOf an object replaces the one of the same key: the same part may be made of it */
  constructor(keyOf: (object: T) => string) {
    this.#keyOf = keyOf;
  }

  /**
   * @param inputsOf all on which what is made depends: while they are the same ones, nothing is made again
   * @returns one for each of these objects; others are forgotten
   */
  update(objects: readonly T[], inputsOf: (object: T) => readonly unknown[], make: (object: T) => R): R[] {
    const before = this.#known;
    this.#known = new Map();
    return objects.map((object) => {
      const key = this.#keyOf(object);
      const inputs = inputsOf(object);
      const known = before.get(key);
      let made = known && isSameList(known.inputs, inputs) ? known.made : make(object);
      if (known && made !== known.made && Bun.deepEquals(made, known.made)) made = known.made;
      this.#known.set(key, { inputs, made });
      return made;
    });
  }
}
