/** Where the clock's mark is kept between two processes. */
export interface RevisionMark {
  /** undefined: there is none. */
  read(): number | undefined;
  write(mark: number): void;
}

/** Revisions handed out before the mark is written again. */
const BLOCK = 100_000;

/**
 * One clock of resourceVersions for all kinds, which never goes back, also over restarts: a mark beyond every revision
 * handed out is written ahead of time, and a new process begins there.
 */
export class RevisionClock {
  readonly #mark: RevisionMark;
  #current: number;
  #reserved: number;

  constructor(mark: RevisionMark) {
    this.#mark = mark;
    this.#current = Math.max(mark.read() ?? 0, 1);
    this.#reserved = this.#current;
    this.#reserve();
  }

  /** The newest revision handed out. */
  get current(): number {
    return this.#current;
  }

  next(): number {
    this.#current++;
    this.#reserve();
    return this.#current;
  }

  #reserve(): void {
    if (this.#current < this.#reserved) return;
    this.#reserved = this.#current + BLOCK;
    this.#mark.write(this.#reserved);
  }
}
