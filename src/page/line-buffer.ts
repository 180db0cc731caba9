const MAX_LINES = 5000;
/** Characters kept of all lines together. */
const MAX_CHARACTERS = 8_000_000;
/** Lines of several containers may arrive this much out of order. */
const OVERLAP_MS = 5000;

export interface LogLine {
  container: string;
  /** Time of the engine, RFC 3339 in UTC with nine decimals; "" for the rest of a line that was split. */
  stamp: string;
  text: string;
}

export interface ShownLine extends LogLine {
  id: number;
}

/** The newest lines, and those that wait while the former are held. */
export class LineBuffer {
  lines: readonly ShownLine[] = [];
  /** Lines that are not kept any more. */
  dropped = 0;
  /** Lines that arrived since the last {@link release}. */
  waiting = 0;
  #pending: ShownLine[] = [];
  #pendingDropped = 0;
  #nextId = 0;
  readonly #isMerged: boolean;

  /** @param isMerged lines of several containers, which may arrive out of order: they are sorted by time */
  constructor(isMerged: boolean) {
    this.#isMerged = isMerged;
  }

  add(added: readonly LogLine[]): void {
    this.waiting += added.length;
    for (const line of added.slice(-MAX_LINES)) {
      // The rest of a line that was split stays behind its start.
      const stamp = line.stamp || (this.#pending.at(-1) ?? this.lines.at(-1))?.stamp || "";
      this.#pending.push({ ...line, stamp, id: this.#nextId++ });
    }
    this.#pendingDropped += Math.max(0, added.length - MAX_LINES);
    if (this.#pending.length <= MAX_LINES) return;
    const kept = newestLines(this.#pending);
    this.#pendingDropped += this.#pending.length - kept.length;
    this.#pending = kept;
  }

  release(): void {
    if (this.#pending.length === 0) return;
    const all = [...this.lines, ...this.#pending];
    if (this.#isMerged) all.sort((a, b) => (a.stamp < b.stamp ? -1 : a.stamp > b.stamp ? 1 : 0));
    this.lines = newestLines(all);
    this.dropped += this.#pendingDropped + all.length - this.lines.length;
    this.#pending = [];
    this.#pendingDropped = 0;
    this.waiting = 0;
  }
}

function newestLines<T extends { text: string }>(lines: T[]): T[] {
  let from = lines.length;
  for (let characters = 0; from > 0 && lines.length - from < MAX_LINES; from--) {
    characters += lines[from - 1]?.text.length ?? 0;
    if (characters > MAX_CHARACTERS) break;
  }
  return from === 0 ? lines : lines.slice(from);
}

/** Where a log continues after a break: no line is lost or shown twice. */
export class ResumePoint {
  /** Newest line of each container. */
  readonly #newest = new Map<string, string>();
  /** The same at the start of the connection. */
  #known: ReadonlyMap<string, string> = new Map();
  #from = "";

  /** @returns from when lines are asked for, as RFC 3339; "" before the first line */
  begin(containers: number): string {
    this.#known = new Map(this.#newest);
    const newest = [...this.#newest.values()].sort().at(-1) ?? "";
    if (newest === "") return "";
    const since = new Date(Date.parse(newest) - (containers > 1 ? OVERLAP_MS : 0)).toISOString();
    this.#from = since.replace("Z", "000000Z");
    return since;
  }

  /** @returns lines that were not received before */
  take(lines: readonly LogLine[]): LogLine[] {
    return lines.filter(({ container, stamp }) => {
      if (stamp === "") return true;
      const known = this.#known.get(container);
      // Older lines than were asked for are those of a clock that was set back.
      if (known !== undefined && stamp <= known && stamp >= this.#from) return false;
      this.#newest.set(container, stamp);
      return true;
    });
  }
}
