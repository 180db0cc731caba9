const LINE_END = 10;

/**
 * Puts a prefix before each line, where pieces are split anywhere. A last line without its end gets one.
 * @returns pieces of whole lines
 */
export class LinePrefixer {
  readonly #prefix: Uint8Array;
  #rest: Uint8Array[] = [];

  constructor(prefix: string) {
    this.#prefix = Buffer.from(prefix, "utf8");
  }

  /** Whole lines so far. */
  push(data: Uint8Array): Uint8Array {
    const out: Uint8Array[] = [];
    let from = 0;
    for (let at = data.indexOf(LINE_END); at >= 0; at = data.indexOf(LINE_END, from)) {
      out.push(this.#prefix, ...this.#rest, data.subarray(from, at + 1));
      this.#rest = [];
      from = at + 1;
    }
    // A copy (`slice` of a Buffer is none): the caller may reuse its memory.
    if (from < data.length) this.#rest.push(new Uint8Array(data.subarray(from)));
    return Buffer.concat(out);
  }

  /** The last line, which has no line end. */
  end(): Uint8Array {
    if (this.#rest.length === 0) return new Uint8Array();
    const out = Buffer.concat([this.#prefix, ...this.#rest, Uint8Array.of(LINE_END)]);
    this.#rest = [];
    return out;
  }
}
