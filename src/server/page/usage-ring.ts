/** More pods than a node has; a history beyond this is not kept, pods that are gone first. */
const MAX_SUBJECTS = 500;
const NEWLINE = 10;

/** Values of one pod, or of the node, at one time. NaN where it is not known. */
export interface Values {
  cpuCores: number;
  memoryBytes: number;
  receivedBytesPerSecond: number;
  sentBytesPerSecond: number;
  diskBytes: number;
}

const KEYS = [
  "cpuCores",
  "memoryBytes",
  "receivedBytesPerSecond",
  "sentBytesPerSecond",
  "diskBytes",
] as const satisfies readonly (keyof Values)[];

/** Times and series of fixed length; the oldest value is overwritten. */
export class UsageRing {
  readonly times: Float64Array;
  readonly #series = new Map<string, Float32Array>();
  #next = 0;

  constructor(readonly slots: number) {
    this.times = new Float64Array(slots);
  }

  add(timeMs: number, values: ReadonlyMap<string, Values>): void {
    const slot = this.#next;
    this.#next = (slot + 1) % this.slots;
    this.times[slot] = timeMs;
    for (const [subject, series] of this.#series) {
      const value = values.get(subject);
      KEYS.forEach((key, index) => {
        series[slot * KEYS.length + index] = value?.[key] ?? Number.NaN;
      });
    }
    for (const [subject, value] of values) {
      if (this.#series.has(subject) || !this.#hasRoom(values)) continue;
      const series = new Float32Array(this.slots * KEYS.length).fill(Number.NaN);
      KEYS.forEach((key, index) => {
        series[slot * KEYS.length + index] = value[key];
      });
      this.#series.set(subject, series);
    }
  }

  /** Whether there is room for one more subject, if need be that of one without a present value. */
  #hasRoom(values: ReadonlyMap<string, Values>): boolean {
    if (this.#series.size < MAX_SUBJECTS) return true;
    const gone = this.#series.keys().find((subject) => !values.has(subject));
    return gone !== undefined && this.#series.delete(gone);
  }

  retain(subjects: ReadonlySet<string>): void {
    for (const subject of this.#series.keys()) if (!subjects.has(subject)) this.#series.delete(subject);
  }

  /**
   * Slots with a time after `sinceMs`, times rising. Values that a clock which was set back has overtaken are left out.
   */
  slotsSince(sinceMs: number): number[] {
    const found: number[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (let age = 1; age <= this.slots; age++) {
      const slot = (this.#next + this.slots - age) % this.slots;
      const time = this.times[slot] ?? 0;
      if (time <= Math.max(sinceMs, 0) || time >= next) continue;
      next = time;
      found.push(slot);
    }
    return found.reverse();
  }

  /** @param round applied to what is known */
  values(
    subject: string,
    slots: readonly number[],
    key: keyof Values,
    round: (value: number) => number,
  ): (number | null)[] {
    const series = this.#series.get(subject);
    const index = KEYS.indexOf(key);
    return slots.map((slot) => {
      const value = series?.[slot * KEYS.length + index];
      return value === undefined || Number.isNaN(value) ? null : round(value);
    });
  }

  /** Time of the newest values; 0 when there are none. */
  get lastMs(): number {
    return this.times[(this.#next + this.slots - 1) % this.slots] ?? 0;
  }

  get subjects(): Iterable<string> {
    return this.#series.keys();
  }

  /** The whole ring, for a later process. */
  save(): Uint8Array {
    const subjects = [...this.#series.keys()];
    const header = { slots: this.slots, keys: KEYS.length, next: this.#next, subjects };
    const parts = [this.times, ...this.#series.values()].map(
      ({ buffer, byteOffset, byteLength }) => new Uint8Array(buffer, byteOffset, byteLength),
    );
    return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...parts]);
  }

  /**
   * Takes over what `save` returned, of a ring of the same size; the present contents are lost.
   * @throws Error when the bytes are damaged; nothing has changed then
   */
  restore(bytes: Uint8Array): void {
    const end = bytes.indexOf(NEWLINE);
    const header: unknown = JSON.parse(Buffer.from(bytes.subarray(0, Math.max(end, 0))).toString());
    const { slots, keys, next, subjects } = header as { slots: number; keys: number; next: number; subjects: string[] };
    const valuesBytes = this.slots * KEYS.length * Float32Array.BYTES_PER_ELEMENT;
    const expected = end + 1 + this.times.byteLength + subjects.length * valuesBytes;
    const isSame = slots === this.slots && keys === KEYS.length && Number.isInteger(next) && next >= 0 && next < slots;
    if (!isSame || subjects.length > MAX_SUBJECTS || bytes.length !== expected)
      throw new Error("the usage history is damaged or of another version");
    // Aligned copies.
    const body = Uint8Array.from(bytes.subarray(end + 1));
    this.times.set(new Float64Array(body.buffer, 0, this.slots));
    this.#next = next;
    this.#series.clear();
    subjects.forEach((subject, index) => {
      const from = this.times.byteLength + index * valuesBytes;
      this.#series.set(subject, new Float32Array(body.slice(from, from + valuesBytes).buffer));
    });
  }
}
