/** A piece of a log line with its color: 0 = default, 1 to 8 = the ANSI colors, plus 8 when bright. */
interface Span {
  text: string;
  color: number;
  bold: boolean;
}

/** Control sequences (ESC [), strings that a terminal takes as commands (ESC ] P X ^ _), and all other escapes. Source: ECMA-48. */
const ESCAPE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])/g;
// An escape at the end of a text that was cut.
const CUT_ESCAPE = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*|[ -/]*)?$/;
// C0 and C1 controls except tab, and the marks that reorder text.
const INVISIBLE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
/** Characters shown of one line; a note follows. */
export const MAX_SHOWN_LINE = 4096;
const CUT_NOTE = " … the line is longer: the download has all of it";

/** Pieces of a line that have colors of their own; the rest has the color of the last. */
export const MAX_SPANS = 40;

/** Splits a line at its ANSI colors; all other escapes and control characters are dropped. */
export function toSpans(line: string): Span[] {
  const cut = line.length > MAX_SHOWN_LINE;
  const text = cut ? line.slice(0, MAX_SHOWN_LINE).replace(CUT_ESCAPE, "") : line;
  const spans: Span[] = [];
  let color = 0;
  let bold = false;
  let from = 0;
  const push = (piece: string) => {
    const clean = visibleText(piece);
    if (clean !== "") spans.push({ text: clean, color, bold });
  };
  for (const match of text.matchAll(ESCAPE)) {
    if (spans.length >= MAX_SPANS) {
      push(text.slice(from).replace(ESCAPE, ""));
      from = text.length;
      break;
    }
    push(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] !== "m" || /^[<=>?]/.test(match[1] ?? "")) continue;
    const codes = toCodes(match[1] ?? "");
    for (let code = codes.shift(); code !== undefined; code = codes.shift()) {
      if (code === 38) color = takeColor(codes);
      else if (code === 48) takeColor(codes);
      else if (code === 0) [color, bold] = [0, false];
      else if (code === 1) bold = true;
      else if (code === 22) bold = false;
      else if (code === 39) color = 0;
      else if (code >= 30 && code <= 37) color = code - 29;
      else if (code >= 90 && code <= 97) color = code - 81;
    }
  }
  push(text.slice(from));
  if (cut) spans.push({ text: CUT_NOTE, color: 9, bold: false });
  return spans;
}

/** Colons separate the parts of one color, where there may be an empty one: `38:2::255:0:0`. */
const toCodes = (parameters: string): number[] =>
  (parameters || "0")
    .replace(/(38:2|48:2)::/g, "$1:")
    .split(/[;:]/)
    .map(Number);

/** Finds a text in what a reader sees of a line: not its case. undefined for an empty text. Has the flag `g`. */
export const toPattern = (text: string): RegExp | undefined =>
  text === "" ? undefined : new RegExp(text.replace(/[\^$\\.*+?()[\]{}|/]/g, "\\$&"), "giu");

interface Piece {
  text: string;
  isMatch: boolean;
}

/** The pieces of each span; a match may begin in one span and end in another. */
export function splitMatches(spans: readonly Span[], pattern: RegExp | undefined): Piece[][] {
  if (!pattern) return spans.map(({ text }) => [{ text, isMatch: false }]);
  const matches = [
    ...spans
      .map(({ text }) => text)
      .join("")
      .matchAll(pattern),
  ];
  let start = 0;
  return spans.map(({ text }) => {
    const pieces: Piece[] = [];
    let from = 0;
    const push = (to: number, isMatch: boolean) => {
      const end = Math.min(to - start, text.length);
      if (end <= from) return;
      pieces.push({ text: text.slice(from, end), isMatch });
      from = end;
    };
    for (const { index, 0: found } of matches) {
      push(index, false);
      push(index + found.length, true);
    }
    push(start + text.length, false);
    start += text.length;
    return pieces;
  });
}

/** Programs that show progress write over their line: what they wrote before is kept, with a space between. */
const visibleText = (text: string): string =>
  text.replace(/\r+/g, (run, at: number) => (at + run.length < text.length ? " " : "")).replace(INVISIBLE, "");

/** The nearest ANSI color for one of the palette of 256 (`5;n`) or of red, green and blue (`2;r;g;b`); takes them from `codes`. */
function takeColor(codes: number[]): number {
  const mode = codes.shift();
  if (mode === 2) {
    const [red = 0, green = 0, blue = 0] = codes.splice(0, 3);
    return nearestColor(red / 255, green / 255, blue / 255);
  }
  if (mode !== 5) return 0;
  const index = codes.shift() ?? 0;
  if (index < 16) return index + 1;
  if (index >= 232) return 0;
  const cube = index - 16;
  return nearestColor(Math.floor(cube / 36) / 5, (Math.floor(cube / 6) % 6) / 5, (cube % 6) / 5);
}

/** 1 to 8. Shares of red, green and blue: 0 to 1. */
const nearestColor = (red: number, green: number, blue: number): number =>
  1 + (red >= 0.5 ? 1 : 0) + (green >= 0.5 ? 2 : 0) + (blue >= 0.5 ? 4 : 0);

/** The characters a reader sees: for search, and for output of programs within the kubelet's own messages. */
export const plainText = (line: string): string => visibleText(line.replace(ESCAPE, ""));

/** A line of a manifest: controls and marks of direction are shown as `\u202e`, since they can make it look like another one. */
export const withVisibleMarks = (line: string): string =>
  line.replace(/\r$/, "").replace(INVISIBLE, (mark) => `\\u${mark.charCodeAt(0).toString(16).padStart(4, "0")}`);

const MAX_PARTIAL_LINE = 1 << 20;
/** Characters kept of one line. */
const MAX_LINE = 16_384;
/** The time and the name of the container in front of a line. */
const MAX_PREFIX = 320;

/** A copy: JavaScript engines keep the whole string in memory for a substring. */
const copyOf = (text: string) => ` ${text}`.slice(1);
const cutAt = (text: string, length: number) => (text.length > length ? copyOf(text.slice(0, length)) : text);

/** Cuts a stream of text, whose pieces end anywhere, into lines. */
export class LineSplitter {
  #rest = "";

  /** @returns the lines that are complete now. A line without end is split at 1 MiB; a long one is cut. */
  push(text: string): string[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > MAX_PARTIAL_LINE) {
      lines.push(this.#rest);
      this.#rest = "";
    }
    return lines.map((line) => cutAt(line, MAX_LINE + MAX_PREFIX));
  }

  /** @returns the last line of a stream that has ended, where it has no line end */
  end(): string[] {
    const rest = this.#rest;
    this.#rest = "";
    return rest === "" ? [] : [cutAt(rest, MAX_LINE + MAX_PREFIX)];
  }
}

/** Runs of lines of one container, of lines as `name<TAB>line`. */
export function byContainer(lines: readonly string[]): [string, string[]][] {
  const runs: [string, string[]][] = [];
  for (const line of lines) {
    const tab = line.indexOf("\t");
    const name = line.slice(0, tab);
    const last = runs.at(-1);
    if (last?.[0] === name) last[1].push(line.slice(tab + 1));
    else runs.push([name, [line.slice(tab + 1)]]);
  }
  return runs;
}

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) ?/;

/** A line as the engine sends it. @returns its time, as RFC 3339 in UTC; "" for a line without one. At most 16 Ki characters of text */
export function splitStamp(line: string): { stamp: string; text: string } {
  const [prefix = "", stamp = ""] = STAMP.exec(line) ?? [];
  return { stamp, text: cutAt(line.slice(prefix.length), MAX_LINE) };
}

/** `2026-11-22 14:03:12.345` in the reader's time zone; what is no time stays as it is. */
export function toLocalTime(stamp: string): string {
  const at = new Date(stamp);
  if (Number.isNaN(at.getTime())) return stamp;
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
  return local.replace("T", " ").slice(0, -1);
}
