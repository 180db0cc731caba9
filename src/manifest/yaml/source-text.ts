/** Decoded text, cut off at the first byte or character that is not allowed. */
export interface SourceText {
  text: string;
  /** Why the text was cut off; absent when it is complete. */
  broken?: string;
}

/** Limit of a manifest, exclusive. Unit: bytes. Source: kubelet `maxConfigLength`. */
export const MAX_MANIFEST_BYTES = 10 * 1024 * 1024;

/** Characters that go-yaml's reader refuses, also in comments. A byte order mark is allowed. */
const ILLEGAL = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;

/** Decodes UTF-8, or UTF-16 with a byte order mark. Stops at the first invalid byte. */
export function decodeText(bytes: Uint8Array): SourceText {
  const mark = Buffer.from(bytes.subarray(0, 2)).toString("hex");
  if (mark !== "fffe" && mark !== "feff") return decodeUtf8(bytes);
  const whole = Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2)));
  const text = (mark === "feff" ? whole.swap16() : whole).toString("utf16le");
  // Only halves of surrogate pairs match.
  const end = text.search(/[\ud800-\udfff]/u);
  if (end !== -1) return { text: text.slice(0, end), broken: "invalid UTF-16" };
  return bytes.length % 2 === 0 ? { text } : { text, broken: "the text ends in the middle of a UTF-16 character" };
}

function decodeUtf8(bytes: Uint8Array): SourceText {
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  let byteOffset = 0;
  let from = 0;
  // The decoder writes U+FFFD for what is not UTF-8; the text may also hold that character.
  for (let at = text.indexOf("\ufffd"); at !== -1; at = text.indexOf("\ufffd", from)) {
    byteOffset += Buffer.byteLength(text.slice(from, at));
    const isWritten = bytes[byteOffset] === 0xef && bytes[byteOffset + 1] === 0xbf && bytes[byteOffset + 2] === 0xbd;
    if (!isWritten) return { text: text.slice(0, at), broken: "invalid UTF-8" };
    byteOffset += 3;
    from = at + 1;
  }
  return { text };
}

/** Cuts the text before the first character that YAML does not allow. */
export function stopAtIllegalCharacter(source: SourceText): SourceText {
  const at = source.text.search(ILLEGAL);
  if (at === -1) return source;
  const code = source.text.codePointAt(at)!.toString(16).toUpperCase().padStart(4, "0");
  return { text: source.text.slice(0, at), broken: `the character U+${code} is not allowed in YAML` };
}

/** Maps UTF-16 offsets to lines and columns. */
export class LineTable {
  readonly #text: string;
  readonly #starts: number[] = [0];
  /** Offsets of byte order marks and low surrogates, which have no column. */
  readonly #withoutColumn: number[] = [];

  constructor(text: string) {
    this.#text = text;
    for (const match of text.matchAll(/[\ufeff\udc00-\udfff]/g)) this.#withoutColumn.push(match.index);
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === 10 || (code === 13 && text.charCodeAt(i + 1) !== 10)) this.#starts.push(i + 1);
    }
  }

  /** 1-based line, and 1-based column in characters. A byte order mark has no column. */
  locate(offset: number): { line: number; column: number } {
    const at = Math.min(offset, this.#text.length);
    const line = countUpTo(this.#starts, at);
    const start = this.#starts[line - 1]!;
    const skipped = countUpTo(this.#withoutColumn, at - 1) - countUpTo(this.#withoutColumn, start - 1);
    return { line, column: at - start - skipped + 1 };
  }

  /** Whether a pattern occurs anywhere in the text. */
  matches(pattern: RegExp): boolean {
    return pattern.test(this.#text);
  }

  /** The text of a 1-based line, without its line break. */
  lineText(line: number): string {
    const start = this.#starts[line - 1];
    if (start === undefined) return "";
    return this.#text.slice(start, this.#starts[line] ?? this.#text.length).replace(/[\r\n]+$/, "");
  }
}

/** Number of items of a sorted list that are at most `limit`. */
function countUpTo(sorted: readonly number[], limit: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}
