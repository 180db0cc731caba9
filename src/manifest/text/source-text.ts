/** A manifest as characters, and how far it may be read. */
export interface SourceText {
  text: string;
  /** Set when the bytes stop being text there: `text` ends just before it. */
  broken?: string;
}

/** Upstream reads manifests up to here; one of exactly this size is already too long. Unit: bytes. */
export const MAX_MANIFEST_BYTES = 10 * 1024 * 1024;

/** Everything go-yaml's reader refuses, even in a comment. A BOM is fine (at the start of a line). */
const ILLEGAL = /[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u;

/** Decodes UTF-8, or UTF-16 where a byte order mark says so. Stops at the first byte that is not text. */
export function decodeText(bytes: Uint8Array): SourceText {
  const utf16 =
    bytes[0] === 0xff && bytes[1] === 0xfe ? "utf-16le" : bytes[0] === 0xfe && bytes[1] === 0xff ? "be" : "";
  if (utf16 !== "" && bytes.length % 2 === 1) {
    const whole = decodeText(bytes.subarray(0, bytes.length - 1));
    return { text: whole.text, broken: whole.broken ?? "half a UTF-16 character" };
  }
  if (utf16 === "be") return decodeAs("utf-16le", swapBytePairs(bytes));
  if (utf16 !== "") return decodeAs("utf-16le", bytes);
  return decodeAs("utf-8", bytes);
}

function decodeAs(encoding: "utf-8" | "utf-16le", bytes: Uint8Array): SourceText {
  try {
    return { text: new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch {
    const end = longestValidPrefix(encoding, bytes);
    const text = new TextDecoder(encoding, { ignoreBOM: true }).decode(bytes.subarray(0, end));
    return { text, broken: encoding === "utf-8" ? "these bytes are not UTF-8" : "these bytes are not UTF-16" };
  }
}

/** By halving: decoding a prefix fails exactly when it holds the bad byte (a character cut in two is streamed). */
function longestValidPrefix(encoding: "utf-8" | "utf-16le", bytes: Uint8Array): number {
  let good = 0;
  let bad = bytes.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    try {
      new TextDecoder(encoding, { fatal: true }).decode(bytes.subarray(0, middle), { stream: true });
      good = middle;
    } catch {
      bad = middle;
    }
  }
  // Back to the start of the character that was being read.
  if (encoding === "utf-8") while (good > 0 && ((bytes[good] ?? 0) & 0xc0) === 0x80) good--;
  return good;
}

function swapBytePairs(bytes: Uint8Array): Uint8Array {
  const swapped = new Uint8Array(bytes.length);
  for (let i = 0; i + 1 < bytes.length; i += 2) {
    swapped[i] = bytes[i + 1]!;
    swapped[i + 1] = bytes[i]!;
  }
  return swapped;
}

/** Cuts the text before the first character YAML does not allow. */
export function stopAtIllegalCharacter(source: SourceText): SourceText {
  const at = source.text.search(ILLEGAL);
  if (at === -1) return source;
  const code = source.text.codePointAt(at)!.toString(16).toUpperCase().padStart(4, "0");
  return { text: source.text.slice(0, at), broken: `the character U+${code} is not allowed in YAML` };
}

/** Lines and columns of a text, as an editor counts them. */
export class LineTable {
  readonly #text: string;
  readonly #starts: number[] = [0];

  constructor(text: string) {
    this.#text = text;
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code === 10 || (code === 13 && text.charCodeAt(i + 1) !== 10)) this.#starts.push(i + 1);
    }
  }

  /** 1-based line, and 1-based column in characters. A byte order mark has no column. */
  locate(offset: number): { line: number; column: number } {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= offset) low = middle;
      else high = middle - 1;
    }
    let column = 1;
    for (let i = this.#starts[low]!; i < offset && i < this.#text.length; i++) {
      const code = this.#text.charCodeAt(i);
      if (code !== 0xfeff && (code & 0xfc00) !== 0xdc00) column++;
    }
    return { line: low + 1, column };
  }

  /** The text of a 1-based line, without its line break. */
  lineText(line: number): string {
    const start = this.#starts[line - 1];
    if (start === undefined) return "";
    return this.#text.slice(start, this.#starts[line] ?? this.#text.length).replace(/[\r\n]+$/, "");
  }
}
