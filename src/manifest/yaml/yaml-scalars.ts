import { TextError } from "./source-node.ts";

// White space by libyaml's rules. The functions take a UTF-16 code; NaN is the end of the text.
export const isBlank = (code: number) => code === 0x20 || code === 0x09;
export const isBreak = (code: number) =>
  code === 0x0a || code === 0x0d || code === 0x85 || code === 0x2028 || code === 0x2029;
export const isBlankOrEnd = (code: number) => isBlank(code) || isBreak(code) || Number.isNaN(code);

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

/** White space between two lines of a folded scalar. */
class Fold {
  #blanks = "";
  #firstBreak = "";
  #moreBreaks = "";
  broken = false;

  addBlank(character: string): void {
    if (!this.broken) this.#blanks += character;
  }

  addBreak(lineBreak: string): void {
    if (this.broken) this.#moreBreaks += lineBreak;
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
      joined = this.#firstBreak === "\n" ? this.#moreBreaks || " " : this.#firstBreak + this.#moreBreaks;
    }
    this.#blanks = this.#firstBreak = this.#moreBreaks = "";
    this.broken = false;
    return joined;
  }
}

/** Scans an unquoted scalar. It ends at `: `, ` #`, a smaller indentation, or flow punctuation. */
export function scanPlainScalar(reader: YamlReader): ScannedScalar & { isFolded: boolean } {
  const { text } = reader;
  const start = reader.position;
  const indent = reader.indent + 1;
  const fold = new Fold();
  let value = "";
  let end = start;
  for (;;) {
    if (reader.atDocumentIndicator() || reader.code() === 0x23) break;
    const from = reader.position;
    while (!isBlankOrEnd(reader.code())) {
      const code = reader.code();
      if (code === 0x3a && isBlankOrEnd(reader.code(1))) break;
      if (reader.flowLevel > 0 && isFlowPunctuation(code)) break;
      reader.position++;
    }
    if (reader.position > from) {
      value += fold.take() + text.slice(from, reader.position);
      end = reader.position;
    }
    if (!isBlank(reader.code()) && !isBreak(reader.code())) break;
    skipWhiteSpace(reader, fold, indent);
    if (reader.flowLevel === 0 && reader.column < indent) break;
  }
  return { value, end, isFolded: fold.broken };
}

const isFlowPunctuation = (code: number) =>
  code === 0x2c || code === 0x3f || code === 0x5b || code === 0x5d || code === 0x7b || code === 0x7d;

/** @param tabIndent in a plain scalar: tabs left of this column are an error. */
function skipWhiteSpace(reader: YamlReader, fold: Fold, tabIndent = 0): void {
  for (;;) {
    const code = reader.code();
    if (isBlank(code)) {
      if (code === 0x09 && fold.broken && reader.column < tabIndent) {
        reader.fail("a tab cannot be used for indentation: use spaces");
      }
      fold.addBlank(String.fromCharCode(code));
      reader.position++;
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
  const { text } = reader;
  const start = reader.position++;
  const quote = single ? 0x27 : 0x22;
  const fold = new Fold();
  let value = "";
  for (;;) {
    if (reader.atDocumentIndicator()) reader.fail("a document marker is inside a quoted value");
    if (Number.isNaN(reader.code()))
      reader.fail(`the quoted value never ends: its closing ${single ? "'" : '"'} is missing`, start);
    let from = reader.position;
    while (!isBlankOrEnd(reader.code())) {
      const code = reader.code();
      if (code === quote && single && reader.code(1) === quote) {
        value += text.slice(from, reader.position + 1);
        reader.position += 2;
        from = reader.position;
      } else if (code === quote) break;
      else if (code === 0x5c && !single) {
        value += text.slice(from, reader.position);
        if (isBreak(reader.code(1))) {
          reader.position++;
          reader.readBreak();
          from = reader.position;
          // An escaped line break joins the lines without a space and drops the indentation.
          fold.addBreak("");
          break;
        }
        value += scanEscape(reader);
        from = reader.position;
      } else reader.position++;
    }
    value += text.slice(from, reader.position);
    if (reader.code() === quote) break;
    skipWhiteSpace(reader, fold);
    value += fold.take();
  }
  reader.position++;
  return { value, end: reader.position };
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

/** Scans a `|` or `>` scalar. */
export function scanBlockScalar(reader: YamlReader, literal: boolean): ScannedScalar {
  const { text } = reader;
  reader.position++;
  const header = /^(?:([+-])([0-9])?|([0-9])([+-])?)?/.exec(text.slice(reader.position, reader.position + 2))!;
  reader.position += header[0].length;
  const chomping = header[1] ?? header[4] ?? "";
  const increment = header[2] ?? header[3];
  if (increment === "0") reader.fail("the indentation of a block value cannot be 0");
  while (isBlank(reader.code())) reader.position++;
  if (reader.code() === 0x23) while (!isBreak(reader.code()) && !Number.isNaN(reader.code())) reader.position++;
  if (!isBlankOrEnd(reader.code()))
    reader.fail(`nothing may follow "${literal ? "|" : ">"}" on its line: begin the text on the next one`);
  if (isBreak(reader.code())) reader.readBreak();

  let indent = increment ? Math.max(reader.indent, 0) + Number(increment) : 0;
  let trailing: string;
  [indent, trailing] = scanBlockBreaks(reader, indent);
  let value = "";
  let lineBreak = "";
  let leadingBlank = false;
  while (reader.column === indent && !Number.isNaN(reader.code())) {
    const trailingBlank = isBlank(reader.code());
    if (!literal && lineBreak === "\n" && !leadingBlank && !trailingBlank) {
      if (trailing === "") value += " ";
    } else value += lineBreak;
    value += trailing;
    leadingBlank = isBlank(reader.code());
    const from = reader.position;
    while (!isBreak(reader.code()) && !Number.isNaN(reader.code())) reader.position++;
    value += text.slice(from, reader.position);
    lineBreak = isBreak(reader.code()) ? reader.readBreak() : "";
    [indent, trailing] = scanBlockBreaks(reader, indent);
  }
  if (chomping !== "-") value += lineBreak;
  if (chomping === "+") value += trailing;
  return { value, end: reader.position };
}

/** Skips indentation and empty lines; an indentation of 0 is detected from the first line that is not empty. */
function scanBlockBreaks(reader: YamlReader, known: number): [indent: number, breaks: string] {
  let widest = 0;
  let breaks = "";
  for (;;) {
    while ((known === 0 || reader.column < known) && reader.code() === 0x20) reader.position++;
    widest = Math.max(widest, reader.column);
    if ((known === 0 || reader.column < known) && reader.code() === 0x09) {
      reader.fail("a tab cannot be used for indentation: use spaces");
    }
    if (!isBreak(reader.code())) break;
    breaks += reader.readBreak();
  }
  return [known === 0 ? Math.max(widest, reader.indent + 1, 1) : known, breaks];
}
