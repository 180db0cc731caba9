/** Labels of one cgroup, in the three pieces between which a family puts its own: Prometheus' libraries sort them. */
export interface LabelPieces {
  /** `{container="…",` */
  head: string;
  /** `id="…",image="…",` */
  middle: string;
  /** `name="…",namespace="…",pod="…"` */
  tail: string;
  /** `}` */
  end: string;
}

/** Of a sample that has none. */
export const WITHOUT_LABELS: LabelPieces = { head: "", middle: "", tail: "", end: "" };

/** What one family or one device adds; each with its comma. */
export interface OwnLabels {
  /** Behind `head`: `device="/dev/vda",` */
  head?: string;
  /** Behind `middle`: `interface="eth0",` */
  middle?: string;
  /** Behind `tail`: `,scope="container"` */
  tail?: string;
}

/** Which line is where in a page. Columns, because a page has tens of thousands of lines. */
export class LineTable {
  count = 0;
  /** Name of the family; of a line that is only text, that text. */
  readonly names: string[] = [];
  readonly labels: (LabelPieces | undefined)[] = [];
  readonly owns: (OwnLabels | undefined)[] = [];
  values = new Float64Array(1024);
  starts = new Uint32Array(1024);
  /** Where the value begins and ends; where the line ends, for one that is only text. */
  valueStarts = new Uint32Array(1024);
  valueEnds = new Uint32Array(1024);
  /** Behind the line feed. */
  ends = new Uint32Array(1024);

  /** Forgets all lines and keeps the room. */
  clear(): void {
    this.count = 0;
  }

  /** @returns index of the line added, whose figures are still those of an earlier one */
  add(name: string, labels: LabelPieces | undefined, own: OwnLabels | undefined): number {
    const index = this.count++;
    if (index === this.values.length) this.#grow();
    this.names[index] = name;
    this.labels[index] = labels;
    this.owns[index] = own;
    return index;
  }

  is(index: number, name: string, labels: LabelPieces | undefined, own: OwnLabels | undefined): boolean {
    return (
      index < this.count &&
      this.labels[index] === labels &&
      this.names[index] === name &&
      isSameLabels(this.owns[index], own)
    );
  }

  #grow(): void {
    const more = <T extends Float64Array | Uint32Array>(column: T): T => {
      const grown = new (column.constructor as new (length: number) => T)(column.length * 2);
      grown.set(column);
      return grown;
    };
    this.values = more(this.values);
    this.starts = more(this.starts);
    this.valueStarts = more(this.valueStarts);
    this.valueEnds = more(this.valueEnds);
    this.ends = more(this.ends);
  }
}

function isSameLabels(a: OwnLabels | undefined, b: OwnLabels | undefined): boolean {
  return a === b || (a?.head === b?.head && a?.middle === b?.middle && a?.tail === b?.tail);
}
