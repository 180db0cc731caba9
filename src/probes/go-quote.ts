const ESCAPES: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  '"': '\\"',
  "\\": "\\\\",
};

/** Text as Go's `%q` prints it: upstream's event messages are full of it. Source: `strconv.Quote`. */
export function goQuote(text: string): string {
  const inner = text.replace(/["\\]|[^\x20-\x7e]/gu, (char) => {
    const short = ESCAPES[char];
    if (short) return short;
    const code = char.codePointAt(0)!;
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
    if (/[\p{L}\p{M}\p{N}\p{P}\p{S}]/u.test(char)) return char;
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return `"${inner}"`;
}
