/**
 * Replaces `$(NAME)` by its value. `$$` gives `$`, so `$$(NAME)` stays `$(NAME)`; a reference that `lookup` does not
 * know, one without its closing bracket and a lone `$` stay as they are. Source: upstream's `expansion.Expand`.
 */
export function expand(text: string, lookup: (name: string) => string | undefined): string {
  return text.replace(/\$(?:\$|\(([^)]*)\))/g, (found: string, name: string | undefined) =>
    name === undefined ? "$" : (lookup(name) ?? found),
  );
}

/**
 * As {@link expand}, for `subPathExpr`: a path must not contain an unresolved reference.
 * @returns the text, or the names that are unknown or empty, sorted.
 */
export function expandStrictly(
  text: string,
  lookup: (name: string) => string | undefined,
): { text: string } | { missing: string[] } {
  const missing = new Set<string>();
  const expanded = expand(text, (name) => {
    const value = lookup(name);
    if (!value) missing.add(name);
    return value;
  });
  return missing.size > 0 ? { missing: [...missing].sort() } : { text: expanded };
}
