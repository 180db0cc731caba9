/**
 * The candidate nearest to a misspelled name, or undefined when none is close: at most one edit per three letters (insert,
 * delete, replace, swap of neighbors), at least two from four letters on. Ignores case; the first of equals wins.
 */
export function nearestName(written: string, candidates: Iterable<string>): string | undefined {
  // The comparison takes quadratic time; longer words are hardly misspelled names.
  if (written.length > 64) return undefined;
  const word = written.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(word.length > 3 ? 2 : 0, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - word.length) >= bestDistance) continue;
    const distance = editDistance(word, candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/**
 * As {@link nearestName}; without a near one the only candidate that begins with what was written (the flag of `pod-manifest`, the
 * ReplicaSet of `web`), or whose words are shorter or longer forms of those that were written (`root-directory` for `root-dir`).
 */
export function nearestByBeginning(written: string, candidates: readonly string[]): string | undefined {
  const found = candidates.filter((it) => it.startsWith(`${written}-`) || haveSameBeginnings(it, written));
  return nearestName(written, candidates) ?? (found.length === 1 ? found[0] : undefined);
}

function haveSameBeginnings(a: string, b: string): boolean {
  const words = a.toLowerCase().split("-");
  const others = b.toLowerCase().split("-");
  return words.length === others.length && words.every((word, i) => isFormOf(word, others[i] ?? ""));
}

/** One letter begins too many words: `v` is not `volume`. */
const isFormOf = (a: string, b: string): boolean =>
  a === b || (Math.min(a.length, b.length) > 2 && (a.startsWith(b) || b.startsWith(a)));

/** `; did you mean NAME?`, as the end of a message; "" when none is close. @param quote around the name */
export function didYouMean(written: string, candidates: Iterable<string>, quote = ""): string {
  const near = nearestName(written, candidates);
  return near === undefined ? "" : `; did you mean ${quote}${near}${quote}?`;
}

/**
 * The only candidate that ends with the same words: `fsNonRoot` means `runAsNonRoot`.
 * @param least words that must be the same; without it one of a name with one word, two of a longer one
 */
export function nearestByWords(written: string, candidates: Iterable<string>, least?: number): string | undefined {
  if (written.length > 64) return undefined;
  const words = wordsOf(written);
  const count = least ?? Math.min(words.length, 2);
  if (words.length < count) return undefined;
  const end = words.slice(-count).join(" ");
  const found = [...candidates].filter((candidate) => wordsOf(candidate).slice(-count).join(" ") === end);
  return found.length === 1 ? found[0] : undefined;
}

const wordsOf = (name: string): string[] =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[ _-]+/);

/** Optimal string alignment distance, at most `limit`. */
function editDistance(a: string, b: string, limit: number): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let smallest = i;
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let value = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        value = Math.min(value, beforeLast[j - 2]! + 1);
      row.push(value);
      smallest = Math.min(smallest, value);
    }
    if (smallest >= limit) return limit;
    beforeLast = last;
    last = row;
  }
  return last[b.length]!;
}
