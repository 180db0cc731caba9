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
