import { type LabelPieces, LineTable, type OwnLabels } from "../cgroups/line-table.ts";
import type { MetricFamily } from "./metrics-registry.ts";
import { familyHeader, numberText, type TextFormat } from "./prometheus-text.ts";

/** How far a line is searched for when another one stands where it was: as many as the samples of a pod in a family. */
const SEARCHED_LINES = 64;
const LINE_FEED = 10;

/**
 * Metrics as bytes, where from one time to the next only values and times change. What is the same is copied from the
 * page before, in pieces as long as possible; nothing of it is rendered again. Lines may come, go and change places: a
 * line is only taken over when name and labels are those asked for. Two pages take turns in the same room: made anew each time,
 * megabytes would wait for the garbage collector.
 */
export class MetricPage {
  readonly #format: TextFormat;
  #old = new LineTable();
  #new = new LineTable();
  #oldBytes: Uint8Array<ArrayBuffer> = new Uint8Array(0);
  /** The page before that one, whose room the next may take. */
  #spare: Uint8Array<ArrayBuffer> | undefined;
  #bytes: Buffer<ArrayBuffer> = Buffer.alloc(0);
  #length = 0;
  /** Next line of the page before. */
  #oldIndex = 0;
  /** Bytes of the page before that are taken over and not copied yet. */
  #runStart = 0;
  #runEnd = 0;
  #stamp = "";
  #oldStamp = "";
  #name = "";
  #isStamped = false;
  #header = "";

  constructor(format: TextFormat) {
    this.#format = format;
  }

  /**
   * Starts the next page.
   * @param stamp ` <time>`, put behind the values of stamped families
   * @param isInUse whether somebody still reads an earlier page
   */
  begin(stamp: string, isInUse: (page: Uint8Array) => boolean): void {
    const room = Math.max(64 * 1024, Math.ceil(this.#oldBytes.length * 1.02));
    const spare = this.#spare;
    const mayReuse = spare && spare.buffer.byteLength >= room && !isInUse(spare);
    this.#bytes = mayReuse ? Buffer.from(spare.buffer) : Buffer.allocUnsafeSlow(room);
    this.#spare = undefined;
    this.#length = 0;
    this.#oldIndex = 0;
    this.#runStart = 0;
    this.#runEnd = 0;
    this.#stamp = stamp;
    // Times of another length stand where they do not fit.
    if (stamp.length !== this.#oldStamp.length) this.#old.clear();
  }

  /** The samples that follow are this family's. It is left out when there are none. */
  family(name: string, help: string, type: MetricFamily["type"], isStamped: boolean): void {
    this.#name = name;
    this.#isStamped = isStamped;
    this.#header = familyHeader(name, help, type, this.#format);
  }

  /** @param labels the same object as the time before, if they are the same */
  sample(labels: LabelPieces, value: number, own?: OwnLabels): void {
    if (this.#header) {
      this.text(this.#header);
      this.#header = "";
    }
    const old = this.#old;
    const from = this.#find(this.#name, labels, own);
    const to = this.#new.add(this.#name, labels, own);
    const table = this.#new;
    table.values[to] = value;
    if (from < 0) {
      this.#flush();
      table.starts[to] = this.#length;
      this.#write(`${this.#name}${labelsText(labels, own)} `);
      table.valueStarts[to] = this.#length;
      this.#write(numberText(value));
      table.valueEnds[to] = this.#length;
      this.#write(this.#isStamped ? `${this.#stamp}\n` : "\n");
      table.ends[to] = this.#length;
      return;
    }
    this.#takeOver(old.starts[from]!, old.valueStarts[from]!);
    const valueStart = this.#position();
    table.starts[to] = valueStart - (old.valueStarts[from]! - old.starts[from]!);
    table.valueStarts[to] = valueStart;
    if (Object.is(old.values[from], value)) {
      this.#runEnd = old.ends[from]!;
      table.valueEnds[to] = valueStart + (old.valueEnds[from]! - old.valueStarts[from]!);
    } else {
      this.#flush();
      this.#write(numberText(value));
      table.valueEnds[to] = this.#length;
      this.#runStart = old.valueEnds[from]!;
      this.#runEnd = old.ends[from]!;
    }
    table.ends[to] = this.#position();
  }

  /** Whole lines that are no samples of a family. */
  text(text: string): void {
    const from = this.#find(text, undefined, undefined);
    const to = this.#new.add(text, undefined, undefined);
    if (from < 0) this.#flush();
    else this.#takeOver(this.#old.starts[from]!, this.#old.ends[from]!);
    const start = from < 0 ? this.#length : this.#position() - (this.#old.ends[from]! - this.#old.starts[from]!);
    if (from < 0) this.#write(text);
    const end = this.#position();
    this.#new.starts[to] = start;
    this.#new.valueStarts[to] = end;
    this.#new.valueEnds[to] = end;
    this.#new.ends[to] = end;
  }

  /** The page. Nobody may change it: the next one is made from it. The one after that may be made in its place. */
  end(): Uint8Array<ArrayBuffer> {
    this.#flush();
    this.#header = "";
    this.#renewStamps();
    const page = this.#bytes.subarray(0, this.#length);
    this.#spare = this.#oldBytes;
    this.#oldBytes = page;
    this.#oldStamp = this.#stamp;
    [this.#old, this.#new] = [this.#new, this.#old];
    this.#new.clear();
    return page;
  }

  /** Index of the line in the page before, -1 when it was not there (or not near). */
  #find(name: string, labels: LabelPieces | undefined, own: OwnLabels | undefined): number {
    const old = this.#old;
    const last = Math.min(old.count, this.#oldIndex + SEARCHED_LINES);
    for (let index = this.#oldIndex; index < last; index++) {
      if (!old.is(index, name, labels, own)) continue;
      this.#oldIndex = index + 1;
      return index;
    }
    return -1;
  }

  /** Takes over bytes of the page before. */
  #takeOver(start: number, end: number): void {
    if (start !== this.#runEnd) {
      this.#flush();
      this.#runStart = start;
    }
    this.#runEnd = end;
  }

  /** Where the next byte will stand. */
  #position(): number {
    return this.#length + (this.#runEnd - this.#runStart);
  }

  #flush(): void {
    const length = this.#runEnd - this.#runStart;
    if (length > 0) {
      this.#reserve(length);
      this.#bytes.set(this.#oldBytes.subarray(this.#runStart, this.#runEnd), this.#length);
      this.#length += length;
    }
    // No line of the page before begins there, so the next one taken over starts a new piece.
    this.#runStart = this.#runEnd = -1;
  }

  #write(text: string): void {
    this.#reserve(text.length * 3);
    this.#length += this.#bytes.write(text, this.#length);
  }

  #reserve(length: number): void {
    if (this.#length + length <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#length + length));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }

  /** What was taken over still carries the time of the page before. */
  #renewStamps(): void {
    const stamp = Buffer.from(this.#stamp);
    const { count, valueEnds, labels } = this.#new;
    const bytes = this.#bytes;
    const first = this.#firstChange();
    for (let line = 0; line < count; line++) {
      const start = valueEnds[line]!;
      if (labels[line] === undefined || bytes[start] === LINE_FEED) continue;
      for (let index = first; index < stamp.length; index++) bytes[start + index] = stamp[index]!;
    }
  }

  #firstChange(): number {
    let index = 0;
    while (index < this.#stamp.length && this.#stamp[index] === this.#oldStamp[index]) index++;
    return index;
  }
}

const labelsText = ({ head, middle, tail, end }: LabelPieces, own: OwnLabels = {}) =>
  `${head}${own.head ?? ""}${middle}${own.middle ?? ""}${tail}${own.tail ?? ""}${end}`;
