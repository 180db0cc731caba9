type Words<S extends string> = S extends `${infer First} ${infer Rest}` ? First | Words<Rest> : S;

/** Rows of a table with one value: `{ a: 1, b: 1 }` for "a b". The compiler knows each word. */
export const rowsOf = <const S extends string, const Value>(words: S, value: Value) =>
  Object.fromEntries(words.split(" ").map((word) => [word, value])) as { readonly [Word in Words<S>]: Value };
