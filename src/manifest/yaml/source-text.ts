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
  const utf16 =
    bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "be" : "";
  if (utf16 !== "" && bytes.length % 2 === 1) {
    const whole = decodeText(bytes.subarray(0, bytes.length - 1));
    return { text: whole.text, broken: whole.broken ?? "the text ends in the middle of a UTF-16 character" };
  }
  if (utf16 === "be") return decodeAs("utf-16le", swapBytePairs(bytes));
  if (utf16 !== "") return decodeAs("utf-16le", bytes);
  return decodeAs("utf-8", bytes);
}

function decodeAs(encoding: "utf-8" | "utf-16le", bytes: Uint8Array): SourceText {
  const end = encoding === "utf-8" ? endOfUtf8(bytes) : endOfUtf16(bytes);
  const text = new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes.subarray(0, end));
  if (end === bytes.length) return { text };
  return { text, broken: `invalid ${encoding === "utf-8" ? "UTF-8" : "UTF-16"}` };
}

/** Offset of the first invalid UTF-8 sequence, or the length. */
function endOfUtf8(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length) {
    const lead = bytes[at]!;
    const length = lead < 0x80 ? 1 : lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (length === 0 || at + length > bytes.length) return at;
    for (let i = 1; i < length; i++) if ((bytes[at + i]! & 0xc0) !== 0x80) return at;
    const second = bytes[at + 1]!;
    const overlong = (lead === 0xe0 && second < 0xa0) || (lead === 0xf0 && second < 0x90);
    const tooHigh = lead === 0xf4 && second > 0x8f;
    const surrogate = lead === 0xed && second > 0x9f;
    if (overlong || tooHigh || surrogate) return at;
    at += length;
  }
  return at;
}

/** Offset of the first unpaired surrogate in little-endian UTF-16, or the length. */
function endOfUtf16(bytes: Uint8Array): number {
  const unit = (at: number) => (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8);
  for (let at = 0; at < bytes.length; at += 2) {
    const high = unit(at) & 0xfc00;
    if (high === 0xdc00) return at;
    if (high !== 0xd800) continue;
    if ((unit(at + 2) & 0xfc00) !== 0xdc00) return at;
    at += 2;
  }
  return bytes.length;
}

function swapBytePairs(bytes: Uint8Array): Uint8Array {
  const swapped = new Uint8Array(bytes.length);
  for (let i = 0; i + 1 < bytes.length; i += 2) {
    swapped[i] = bytes[i + 1]!;
    swapped[i + 1] = bytes[i]!;
  }
  return swapped;
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
