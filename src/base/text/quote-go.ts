const GO_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

/** Quotes as Go's `%q`, for upstream's messages and downward API files. Source: `strconv.Quote`. */
export function quoteGo(text: string): string {
  let quoted = "";
  for (const character of text) {
    const known = GO_ESCAPES[character];
    if (known) quoted += known;
    else if (/^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(character)) quoted += character;
    else quoted += escapeCodePoint(character.codePointAt(0) ?? 0);
  }
  return `"${quoted}"`;
}

function escapeCodePoint(code: number): string {
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, "0")}`;
  return `\\U${code.toString(16).padStart(8, "0")}`;
}
