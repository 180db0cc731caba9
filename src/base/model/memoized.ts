/** A function that is called once for each object. */
export function memoized<T extends object, R>(make: (object: T) => R): (object: T) => R {
  const made = new WeakMap<T, R>();
  return (object) => {
    const result = made.get(object) ?? make(object);
    made.set(object, result);
    return result;
  };
}

/** Whether two lists have the same items, by identity. */
export const isSameList = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a === b || (a.length === b.length && a.every((one, index) => one === b[index]));
