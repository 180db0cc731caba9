/** A piece of a log line with its colour: 0 = default, 1 to 8 = the ANSI colours, plus 8 when bright. */
export interface Span {
  text: string;
  color: number;
  bold: boolean;
}

// ESC [ … letter; ESC ] … BEL or ESC \ (titles, links); other two-byte escapes.
const ESCAPE = /\x1b(?:\[([0-9;?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g;
// An escape at the end of a text that was cut.
const CUT_ESCAPE = /\x1b(?:\[[0-9;?]*|\][^\x07\x1b]*)?$/;
// C0 and C1 controls except tab, and the marks that reorder text.
const INVISIBLE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/g;
/** Characters shown of one line; a note gives the length of the rest. */
export const MAX_SHOWN_LINE = 4096;

/** Pieces of a line that have colours of their own; the rest has the colour of the last. */
export const MAX_SPANS = 40;

/** Splits a line at its ANSI colours; all other escapes and control characters are dropped. */
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
    if (match[2] !== "m") continue;
    const codes = (match[1] || "0").split(";").map(Number);
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
  if (cut) spans.push({ text: ` … ${line.length - MAX_SHOWN_LINE} more characters`, color: 9, bold: false });
  return spans;
}

/** Programs that show progress write over their line: what they wrote before is kept, with a space between. */
const visibleText = (text: string): string =>
  text.replace(/\r+/g, (run, at: number) => (at + run.length < text.length ? " " : "")).replace(INVISIBLE, "");

/**
 * The nearest of the ANSI colours for a colour of the palette of 256 (`5;n`) or of red, green and blue (`2;r;g;b`).
 * Removes its parameters from `codes`.
 */
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

/** A copy: JavaScript engines keep the whole string in memory for a substring. */
const copyOf = (text: string) => ` ${text}`.slice(1);

/** Cuts a stream of text, whose pieces end anywhere, into lines. */
export class LineSplitter {
  #rest = "";

  /** @returns the lines that are complete now. A line without end is split at 1 MiB; a long one is cut at 16 Ki characters. */
  push(text: string): string[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > MAX_PARTIAL_LINE) {
      lines.push(this.#rest);
      this.#rest = "";
    }
    return lines.map((line) => (line.length > MAX_LINE ? copyOf(line.slice(0, MAX_LINE)) : line));
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

const STAMP = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z) /;

/** Puts the reader's time, `2026-11-22 14:03:12.345`, in place of the time in UTC with which the engine begins a line. */
export function withLocalTime(line: string): string {
  const time = STAMP.exec(line)?.[1];
  if (time === undefined) return line;
  const at = new Date(time);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const clock = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${day} ${clock}.${String(at.getMilliseconds()).padStart(3, "0")} ${line.slice(time.length + 1)}`;
}
