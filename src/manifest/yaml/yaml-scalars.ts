import { TextError } from "./source-node.ts";

// White space by libyaml's rules. The functions take a UTF-16 code; NaN is the end of the text.
export const isBlank = (code: number) => code === 0x20 || code === 0x09;
export const isBreak = (code: number) =>
  code === 0x0a || code === 0x0d || code === 0x85 || code === 0x2028 || code === 0x2029;
export const isBlankOrEnd = (code: number) => isBlank(code) || isBreak(code) || Number.isNaN(code);

export const TAB_INDENT = "a tab cannot be used for indentation: use spaces";
export const BLANKS = /[ \t]*/y;
/** The rest of a line. */
export const LINE = /[^\n\r\x85\u2028\u2029]*/y;

/** Reads a text character by character and keeps track of lines, indentation and open flow collections. */
export class YamlReader {
  readonly text: string;
  position = 0;
  /** Offset of the current line's first character. */
  lineStart = 0;
  line = 0;
  /** Column of the innermost open block collection, -1 outside of all. */
  indent = -1;
  flowLevel = 0;

  constructor(text: string) {
    this.text = text;
  }

  get column(): number {
    return this.position - this.lineStart;
  }

  code(ahead = 0): number {
    return this.text.charCodeAt(this.position + ahead);
  }

  /** Consumes what a sticky pattern matches here, if it does. */
  skip(pattern: RegExp): void {
    pattern.lastIndex = this.position;
    if (pattern.test(this.text)) this.position = pattern.lastIndex;
  }

  take(pattern: RegExp): string {
    const from = this.position;
    this.skip(pattern);
    return this.text.slice(from, this.position);
  }

  /** Consumes one line break; CR LF counts as one. Returns its value inside a scalar. */
  readBreak(): string {
    const code = this.code();
    this.position += code === 0x0d && this.code(1) === 0x0a ? 2 : 1;
    this.lineStart = this.position;
    this.line++;
    return code === 0x2028 || code === 0x2029 ? String.fromCharCode(code) : "\n";
  }

  /** Whether the current line begins with `---` or `...` followed by white space. */
  atDocumentIndicator(): boolean {
    if (this.position !== this.lineStart) return false;
    const code = this.code();
    return (
      (code === 0x2d || code === 0x2e) && this.code(1) === code && this.code(2) === code && isBlankOrEnd(this.code(3))
    );
  }

  fail(message: string, offset = this.position): never {
    throw new TextError(message, offset);
  }
}

/** Text of a scalar and the offset where it ends. */
export interface ScannedScalar {
  value: string;
  end: number;
}

/** A text of pieces. There may be millions of them, and each takes up to a hundred bytes until they are joined. */
class Pieces {
  #joined = "";
  #last = "";
  #count = 0;

  add(piece: string): void {
    this.#last += piece;
    if (++this.#count % 1024 === 0) this.take();
  }

  take(): string {
    // Reading a character joins the pieces.
    if (this.#last.charCodeAt(0) >= 0) this.#joined += this.#last;
    this.#last = "";
    return this.#joined;
  }
}

/** White space between two lines of a folded scalar. */
class Fold {
  #blanks = "";
  #firstBreak = "";
  #moreBreaks = new Pieces();
  broken = false;

  addBlanks(blanks: string): void {
    if (!this.broken) this.#blanks = blanks;
  }

  addBreak(lineBreak: string): void {
    if (this.broken) this.#moreBreaks.add(lineBreak);
    else {
      this.#blanks = "";
      this.#firstBreak = lineBreak;
      this.broken = true;
    }
  }

  /** A single line break becomes a space, several lose the first; blanks alone are kept. */
  take(): string {
    let joined = this.#blanks;
    if (this.broken) {
      const more = this.#moreBreaks.take();
      joined = this.#firstBreak === "\n" ? more || " " : this.#firstBreak + more;
      this.#moreBreaks = new Pieces();
    }
    this.#blanks = this.#firstBreak = "";
    this.broken = false;
    return joined;
  }
}

// Characters of a scalar that are themselves, up to white space.
const PLAIN_RUN = /[^: \t\n\r\x85\u2028\u2029]*/y;
const FLOW_RUN = /[^:,?[\]{} \t\n\r\x85\u2028\u2029]*/y;
const SINGLE_RUN = /[^' \t\n\r\x85\u2028\u2029]*/y;
const DOUBLE_RUN = /[^"\\ \t\n\r\x85\u2028\u2029]*/y;

/** Scans an unquoted scalar. It ends at `: `, ` #`, a smaller indentation, or flow punctuation. */
export function scanPlainScalar(reader: YamlReader): ScannedScalar & { isFolded: boolean } {
  const { text } = reader;
  const start = reader.position;
  const indent = reader.indent + 1;
  const fold = new Fold();
  const value = new Pieces();
  let end = start;
  for (;;) {
    if (reader.atDocumentIndicator() || reader.code() === 0x23) break;
    const from = reader.position;
    for (;;) {
      reader.skip(reader.flowLevel > 0 ? FLOW_RUN : PLAIN_RUN);
      if (reader.code() !== 0x3a || isBlankOrEnd(reader.code(1))) break;
      reader.position++;
    }
    if (reader.position > from) {
      value.add(fold.take() + text.slice(from, reader.position));
      end = reader.position;
    }
    if (!isBlank(reader.code()) && !isBreak(reader.code())) break;
    skipWhiteSpace(reader, fold, indent);
    if (reader.flowLevel === 0 && reader.column < indent) break;
  }
  return { value: value.take(), end, isFolded: fold.broken };
}

/** @param tabIndent in a plain scalar: tabs left of this column are an error. */
function skipWhiteSpace(reader: YamlReader, fold: Fold, tabIndent = 0): void {
  for (;;) {
    const code = reader.code();
    if (isBlank(code)) {
      const { position, column } = reader;
      const blanks = reader.take(BLANKS);
      const tab = blanks.indexOf("\t");
      if (tab >= 0 && fold.broken && column + tab < tabIndent) reader.fail(TAB_INDENT, position + tab);
      fold.addBlanks(blanks);
    } else if (isBreak(code)) fold.addBreak(reader.readBreak());
    else return;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  "0": "\0",
  a: "\x07",
  b: "\b",
  t: "\t",
  "\t": "\t",
  n: "\n",
  v: "\v",
  f: "\f",
  r: "\r",
  e: "\x1b",
  " ": " ",
  '"': '"',
  "'": "'",
  "\\": "\\",
  N: "\x85",
  _: "\xa0",
  L: "\u2028",
  P: "\u2029",
};
const HEX_LENGTH: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 };

export function scanQuotedScalar(reader: YamlReader, single: boolean): ScannedScalar {
  const start = reader.position++;
  const quote = single ? 0x27 : 0x22;
  const fold = new Fold();
  const value = new Pieces();
  for (;;) {
    if (reader.atDocumentIndicator()) reader.fail("a document marker is inside a quoted value");
    if (Number.isNaN(reader.code()))
      reader.fail(`the quoted value never ends: its closing ${single ? "'" : '"'} is missing`, start);
    for (;;) {
      const from = reader.position;
      reader.skip(single ? SINGLE_RUN : DOUBLE_RUN);
      const isQuote = single && reader.code() === quote && reader.code(1) === quote;
      value.add(reader.text.slice(from, reader.position + (isQuote ? 1 : 0)));
      if (isQuote) reader.position += 2;
      else if (single || reader.code() !== 0x5c) break;
      else if (isBreak(reader.code(1))) {
        reader.position++;
        reader.readBreak();
        // An escaped line break joins the lines without a space and drops the indentation.
        fold.addBreak("");
        break;
      } else value.add(scanEscape(reader));
    }
    if (reader.code() === quote) break;
    skipWhiteSpace(reader, fold);
    value.add(fold.take());
  }
  reader.position++;
  return { value: value.take(), end: reader.position };
}

function scanEscape(reader: YamlReader): string {
  const letter = reader.text[reader.position + 1] ?? "";
  const simple = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
  if (simple !== undefined) {
    reader.position += 2;
    return simple;
  }
  const length = Object.hasOwn(HEX_LENGTH, letter) ? HEX_LENGTH[letter]! : 0;
  const digits = reader.text.slice(reader.position + 2, reader.position + 2 + length);
  if (length === 0) reader.fail(`"\\${letter}" is not an escape of a double-quoted value: use "\\\\" or single quotes`);
  if (digits.length < length || !/^[0-9A-Fa-f]+$/.test(digits)) {
    reader.fail(`"\\${letter}" needs ${length} hexadecimal digits`);
  }
  const code = Number.parseInt(digits, 16);
  if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
    reader.fail('this is half a character: write characters beyond U+FFFF as they are, or as "\\U0001F600"');
  }
  reader.position += 2 + length;
  return String.fromCodePoint(code);
}

const BLOCK_HEADER = /(?:[+-][0-9]?|[0-9][+-]?)?/y;

/** Scans a `|` or `>` scalar. */
export function scanBlockScalar(reader: YamlReader, literal: boolean): ScannedScalar {
  reader.position++;
  const header = reader.take(BLOCK_HEADER);
  const [chomping = ""] = /[+-]/.exec(header) ?? [];
  const [increment] = /\d/.exec(header) ?? [];
  if (increment === "0") reader.fail("the indentation of a block value cannot be 0");
  reader.skip(BLANKS);
  if (reader.code() === 0x23) reader.skip(LINE);
  if (!isBlankOrEnd(reader.code()))
    reader.fail(`nothing may follow "${literal ? "|" : ">"}" on its line: begin the text on the next one`);
  if (isBreak(reader.code())) reader.readBreak();

  let indent = increment ? Math.max(reader.indent, 0) + Number(increment) : 0;
  let trailing: string;
  [indent, trailing] = scanBlockBreaks(reader, indent);
  const value = new Pieces();
  let lineBreak = "";
  let leadingBlank = false;
  while (reader.column === indent && !Number.isNaN(reader.code())) {
    const trailingBlank = isBlank(reader.code());
    if (!literal && lineBreak === "\n" && !leadingBlank && !trailingBlank) {
      if (trailing === "") value.add(" ");
    } else value.add(lineBreak);
    value.add(trailing);
    leadingBlank = isBlank(reader.code());
    value.add(reader.take(LINE));
    lineBreak = isBreak(reader.code()) ? reader.readBreak() : "";
    [indent, trailing] = scanBlockBreaks(reader, indent);
  }
  if (chomping !== "-") value.add(lineBreak);
  if (chomping === "+") value.add(trailing);
  return { value: value.take(), end: reader.position };
}

/** Skips indentation and empty lines; an indentation of 0 is detected from the first line that is not empty. */
function scanBlockBreaks(reader: YamlReader, known: number): [indent: number, breaks: string] {
  let widest = 0;
  const breaks = new Pieces();
  for (;;) {
    while ((known === 0 || reader.column < known) && reader.code() === 0x20) reader.position++;
    widest = Math.max(widest, reader.column);
    if ((known === 0 || reader.column < known) && reader.code() === 0x09) {
      reader.fail(TAB_INDENT);
    }
    if (!isBreak(reader.code())) break;
    breaks.add(reader.readBreak());
  }
  return [known === 0 ? Math.max(widest, reader.indent + 1, 1) : known, breaks.take()];
}

/** A scalar before resolution. */
export interface YamlScalar {
  start: number;
  value: string;
  /** Unquoted and untagged (or tagged `!`): the type follows from the text. */
  implicit: boolean;
  /** Full tag, "" when there is none. */
  tag: string;
}

/** Padded base64 without line breaks. */
export const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Beginning of the tags that YAML itself defines. */
export const CORE_TAG = "tag:yaml.org,2002:";

/** A resolved scalar. Source: go-yaml v2's `resolve`, which differs from YAML 1.1 and from 1.2. */
type Resolved =
  | { kind: "string"; value: string }
  | { kind: "bool"; value: boolean }
  | { kind: "null" }
  | { kind: "int"; value: bigint | number }
  | { kind: "float"; value: number };

const WORDS = new Map<string, Resolved>();
for (const word of ["y", "yes", "on", "true", "n", "no", "off", "false"]) {
  const value = ["y", "yes", "on", "true"].includes(word);
  for (const form of [word, word[0]!.toUpperCase() + word.slice(1), word.toUpperCase()]) {
    WORDS.set(form, { kind: "bool", value });
  }
}
for (const word of ["", "~", "null", "Null", "NULL"]) WORDS.set(word, { kind: "null" });
for (const word of [".nan", ".NaN", ".NAN"]) WORDS.set(word, { kind: "float", value: Number.NaN });
for (const [sign, value] of [
  ["", 1],
  ["+", 1],
  ["-", -1],
] as const) {
  for (const word of [".inf", ".Inf", ".INF"]) WORDS.set(sign + word, { kind: "float", value: value * Infinity });
}

const SHORT_INT = /^(?:0|-?[1-9][0-9]{0,14})$/;
const FLOAT = /^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$/;
const DOT_FLOAT = /^\.[0-9]+(?:[eE][-+]?[0-9]+)?$/;
/** Pattern, prefix for BigInt, and the digits of 64 bits: longer numbers are not integers. */
const INTEGERS: readonly [RegExp, string, number][] = [
  [/^0[xX]([0-9a-fA-F]+)$/, "0x", 16],
  [/^0[bB]([01]+)$/, "0b", 64],
  [/^0[oO]?([0-7]+)$/, "0o", 22],
  [/^([0-9])$/, "", 1],
  [/^([1-9][0-9]*)$/, "", 20],
];
const MAX_UINT64 = 2n ** 64n - 1n;
const MIN_INT64 = -(2n ** 63n);
/** Dates stay strings: go-yaml keeps them for backward compatibility. */
const DATE = /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}|$)/;

/** Resolves a scalar with its tag. @throws TextError when tag and value do not fit. */
export function resolveScalar(scalar: YamlScalar): Resolved {
  const { tag, value } = scalar;
  if (tag === "") return scalar.implicit ? resolvePlain(value) : { kind: "string", value };
  if (!tag.startsWith(CORE_TAG)) return { kind: "string", value };
  const wanted = tag.slice(CORE_TAG.length);
  if (wanted === "binary") return { kind: "string", value: decodeBase64(scalar) };
  if (!["bool", "int", "float", "null", "timestamp"].includes(wanted)) return { kind: "string", value };
  const resolved: Resolved = resolvePlain(value);
  if (wanted === "float" && resolved.kind === "int") return { kind: "float", value: Number(resolved.value) };
  if (wanted === "timestamp" ? DATE.test(value) : resolved.kind === wanted) return resolved;
  throw new TextError(`the value is tagged !!${wanted}, which it is not`, scalar.start);
}

/** Resolves a scalar without quotes and tag. */
function resolvePlain(text: string): Resolved {
  const word = WORDS.get(text);
  if (word) return word;
  const first = text.charCodeAt(0);
  const digit = first >= 0x30 && first <= 0x39;
  if (first === 0x2e) {
    const value = DOT_FLOAT.test(text) ? Number(text) : Number.NaN;
    return Number.isFinite(value) ? { kind: "float", value } : { kind: "string", value: text };
  }
  if (!digit && first !== 0x2b && first !== 0x2d) return { kind: "string", value: text };
  if (SHORT_INT.test(text)) return { kind: "int", value: Number(text) };
  const plain = text.replaceAll("_", "");
  return resolveInteger(plain) ?? resolveFloat(plain) ?? { kind: "string", value: text };
}

function resolveInteger(plain: string): Resolved | undefined {
  const negative = plain.startsWith("-");
  const digits = negative || plain.startsWith("+") ? plain.slice(1) : plain;
  for (const [pattern, prefix, maxDigits] of INTEGERS) {
    const match = pattern.exec(digits);
    if (!match) continue;
    const significant = withoutLeadingZeros(match[1]!);
    if (significant.length > maxDigits) continue;
    const magnitude = BigInt(prefix + significant);
    const value = negative ? -magnitude : magnitude;
    // go-yaml accepts an explicit plus sign for signed integers only.
    if (value >= MIN_INT64 && value <= (plain.startsWith("+") ? MAX_UINT64 / 2n : MAX_UINT64)) {
      return { kind: "int", value };
    }
  }
  return undefined;
}

/** The last digit is kept, also when it is 0. */
function withoutLeadingZeros(digits: string): string {
  let start = 0;
  while (start < digits.length - 1 && digits.charCodeAt(start) === 0x30) start++;
  return digits.slice(start);
}

function resolveFloat(plain: string): Resolved | undefined {
  if (!FLOAT.test(plain)) return undefined;
  const value = Number(plain);
  return Number.isFinite(value) ? { kind: "float", value } : undefined;
}

function decodeBase64(scalar: YamlScalar): string {
  const text = scalar.value.replace(/[\r\n]/g, "");
  if (!BASE64.test(text)) {
    throw new TextError("the value is tagged !!binary but is not base64", scalar.start);
  }
  return Buffer.from(text, "base64").toString("utf8");
}

/** A number as Go's encoding/json prints it. */
export const toJsonNumber = (value: bigint | number): string => (Object.is(value, -0) ? "-0" : String(value));

/** A float as a map key: Go prints it with 32 bits of precision, `1.10` as `1.1`. */
export function floatKey(value: number): string {
  const single = Math.fround(value);
  if (!Number.isFinite(single)) return single > 0 ? "+Inf" : "-Inf";
  let precision = 1;
  while (precision < 9 && Math.fround(Number(single.toPrecision(precision))) !== single) precision++;
  const [mantissa, exponentText] = single.toExponential(precision - 1).split("e") as [string, string];
  const exponent = Number(exponentText);
  if (exponent >= -4 && exponent < 6) return String(Number(single.toPrecision(precision)));
  const digits = String(Math.abs(exponent)).padStart(2, "0");
  return `${mantissa}e${exponent < 0 ? "-" : "+"}${digits}`;
}
