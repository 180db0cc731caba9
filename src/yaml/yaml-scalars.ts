import { isBlank, isBlankOrEnd, isBreak } from "./yaml-characters.ts";
import type { YamlScanner } from "./yaml-scanner.ts";

/** What the white space between two lines of a folded scalar becomes. */
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

  /** One line break becomes a space, more of them lose the first; blanks alone stay. */
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

/** A scalar without quotes: ends at `: `, ` #`, a smaller indentation, or flow punctuation. */
export function scanPlainScalar(scanner: YamlScanner): void {
  const { text } = scanner;
  const start = scanner.position;
  const indent = scanner.indent + 1;
  const fold = new Fold();
  let value = "";
  let end = start;
  for (;;) {
    if (scanner.atDocumentIndicator() || scanner.code() === 0x23) break;
    const from = scanner.position;
    while (!isBlankOrEnd(scanner.code())) {
      const code = scanner.code();
      if (code === 0x3a && isBlankOrEnd(scanner.code(1))) break;
      if (scanner.flowLevel > 0 && isFlowPunctuation(code)) break;
      scanner.position++;
    }
    if (scanner.position > from) {
      value += fold.take() + text.slice(from, scanner.position);
      end = scanner.position;
    }
    if (!isBlank(scanner.code()) && !isBreak(scanner.code())) break;
    skipWhiteSpace(scanner, fold, indent);
    if (scanner.flowLevel === 0 && scanner.column < indent) break;
  }
  scanner.push("scalar", start, value, "", true);
  scanner.tokens[scanner.tokens.length - 1]!.end = end;
  if (fold.broken) scanner.simpleKeyAllowed = true;
}

const isFlowPunctuation = (code: number) =>
  code === 0x2c || code === 0x3f || code === 0x5b || code === 0x5d || code === 0x7b || code === 0x7d;

/** @param tabIndent in a plain scalar: tabs left of this column are an error. */
function skipWhiteSpace(scanner: YamlScanner, fold: Fold, tabIndent = 0): void {
  for (;;) {
    const code = scanner.code();
    if (isBlank(code)) {
      if (code === 0x09 && fold.broken && scanner.column < tabIndent) {
        scanner.fail("a tab cannot be used for indentation: use spaces");
      }
      fold.addBlank(String.fromCharCode(code));
      scanner.position++;
    } else if (isBreak(code)) fold.addBreak(scanner.readBreak());
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

export function scanQuotedScalar(scanner: YamlScanner, single: boolean): void {
  const { text } = scanner;
  const start = scanner.position++;
  const quote = single ? 0x27 : 0x22;
  const fold = new Fold();
  let value = "";
  for (;;) {
    if (scanner.atDocumentIndicator()) scanner.fail("a document marker stands inside a quoted value");
    if (Number.isNaN(scanner.code()))
      scanner.fail(`the quoted value never ends: its closing ${single ? "'" : '"'} is missing`, start);
    let from = scanner.position;
    while (!isBlankOrEnd(scanner.code())) {
      const code = scanner.code();
      if (code === quote && single && scanner.code(1) === quote) {
        value += text.slice(from, scanner.position + 1);
        scanner.position += 2;
        from = scanner.position;
      } else if (code === quote) break;
      else if (code === 0x5c && !single) {
        value += text.slice(from, scanner.position);
        if (isBreak(scanner.code(1))) {
          scanner.position++;
          scanner.readBreak();
          from = scanner.position;
          // An escaped line break joins without a space; the indentation that follows vanishes.
          fold.addBreak("");
          break;
        }
        value += scanEscape(scanner);
        from = scanner.position;
      } else scanner.position++;
    }
    value += text.slice(from, scanner.position);
    if (scanner.code() === quote) break;
    skipWhiteSpace(scanner, fold);
    value += fold.take();
  }
  scanner.position++;
  scanner.push("scalar", start, value);
}

function scanEscape(scanner: YamlScanner): string {
  const letter = scanner.text[scanner.position + 1] ?? "";
  const simple = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
  if (simple !== undefined) {
    scanner.position += 2;
    return simple;
  }
  const length = Object.hasOwn(HEX_LENGTH, letter) ? HEX_LENGTH[letter]! : 0;
  const digits = scanner.text.slice(scanner.position + 2, scanner.position + 2 + length);
  if (length === 0) scanner.fail(`"\\${letter}" is no escape of a double-quoted value: use "\\\\" or single quotes`);
  if (digits.length < length || !/^[0-9A-Fa-f]+$/.test(digits)) {
    scanner.fail(`"\\${letter}" needs ${length} hexadecimal digits`);
  }
  const code = Number.parseInt(digits, 16);
  if ((code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff) {
    scanner.fail('this is half a character: write characters beyond U+FFFF as they are, or as "\\U0001F600"');
  }
  scanner.position += 2 + length;
  return String.fromCodePoint(code);
}

/** A `|` or `>` scalar. */
export function scanBlockScalar(scanner: YamlScanner, literal: boolean): void {
  const { text } = scanner;
  const start = scanner.position++;
  const header = /^(?:([+-])([0-9])?|([0-9])([+-])?)?/.exec(text.slice(scanner.position, scanner.position + 2))!;
  scanner.position += header[0].length;
  const chomping = header[1] ?? header[4] ?? "";
  const increment = header[2] ?? header[3];
  if (increment === "0") scanner.fail("the indentation of a block value cannot be 0");
  while (isBlank(scanner.code())) scanner.position++;
  if (scanner.code() === 0x23) while (!isBreak(scanner.code()) && !Number.isNaN(scanner.code())) scanner.position++;
  if (!isBlankOrEnd(scanner.code()))
    scanner.fail(`nothing may follow "${literal ? "|" : ">"}" on its line: begin the text on the next one`);
  if (isBreak(scanner.code())) scanner.readBreak();

  let indent = increment ? Math.max(scanner.indent, 0) + Number(increment) : 0;
  let trailing: string;
  [indent, trailing] = scanBlockBreaks(scanner, indent);
  let value = "";
  let lineBreak = "";
  let leadingBlank = false;
  while (scanner.column === indent && !Number.isNaN(scanner.code())) {
    const trailingBlank = isBlank(scanner.code());
    if (!literal && lineBreak === "\n" && !leadingBlank && !trailingBlank) {
      if (trailing === "") value += " ";
    } else value += lineBreak;
    value += trailing;
    leadingBlank = isBlank(scanner.code());
    const from = scanner.position;
    while (!isBreak(scanner.code()) && !Number.isNaN(scanner.code())) scanner.position++;
    value += text.slice(from, scanner.position);
    lineBreak = isBreak(scanner.code()) ? scanner.readBreak() : "";
    [indent, trailing] = scanBlockBreaks(scanner, indent);
  }
  if (chomping !== "-") value += lineBreak;
  if (chomping === "+") value += trailing;
  scanner.push("scalar", start, value);
}

/** Skips indentation and empty lines; finds the indentation out (from the first line that is not empty) when it is 0. */
function scanBlockBreaks(scanner: YamlScanner, known: number): [indent: number, breaks: string] {
  let widest = 0;
  let breaks = "";
  for (;;) {
    while ((known === 0 || scanner.column < known) && scanner.code() === 0x20) scanner.position++;
    widest = Math.max(widest, scanner.column);
    if ((known === 0 || scanner.column < known) && scanner.code() === 0x09) {
      scanner.fail("a tab cannot be used for indentation: use spaces");
    }
    if (!isBreak(scanner.code())) break;
    breaks += scanner.readBreak();
  }
  return [known === 0 ? Math.max(widest, scanner.indent + 1, 1) : known, breaks];
}
