/** A function that is called once for each object. */
export function memoized<T extends object, R>(make: (object: T) => R): (object: T) => R {
  const made = new WeakMap<T, R>();
  return (object) => {
    const result = made.get(object) ?? make(object);
    made.set(object, result);
    return result;
  };
}
