/** A piece of a log line with its colour: 0 = default, 1 to 8 = the ANSI colours, plus 8 when bright. */
export interface Span {
  text: string;
  color: number;
  bold: boolean;
}

// ESC [ … letter; ESC ] … BEL or ESC \ (titles, links); other two-byte escapes.
const ESCAPE = /\x1b(?:\[([0-9;?]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])/g;
// C0 and C1 controls except tab, and the marks that reorder text.
const INVISIBLE = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/** Characters shown of one line; a note gives the length of the rest. */
export const MAX_SHOWN_LINE = 4096;

/** Splits a line at its ANSI colours; all other escapes and control characters are dropped. */
export function toSpans(line: string): Span[] {
  const cut = line.length > MAX_SHOWN_LINE;
  const text = cut ? line.slice(0, MAX_SHOWN_LINE) : line;
  const spans: Span[] = [];
  let color = 0;
  let bold = false;
  let from = 0;
  const push = (piece: string) => {
    const clean = piece.replace(INVISIBLE, "");
    if (clean !== "") spans.push({ text: clean, color, bold });
  };
  for (const match of text.matchAll(ESCAPE)) {
    push(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] !== "m") continue;
    for (const code of (match[1] || "0").split(";").map(Number)) {
      if (code === 0) [color, bold] = [0, false];
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

/** The characters a reader sees; for search. */
export const plainText = (line: string): string => line.replace(ESCAPE, "").replace(INVISIBLE, "");

const MAX_PARTIAL_LINE = 1 << 20;
/** Characters kept of one line. */
export const MAX_LINE = 16_384;

/** A copy: engines let a part of a string keep the whole in memory. */
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
