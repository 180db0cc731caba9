/** A response that comes line by line, until one side ends it. */
export class EventStream implements AsyncIterable<Uint8Array> {
  readonly takes: (event: { type: string; labels: Readonly<Record<string, string>> }) => boolean;
  readonly #onClose: () => void;
  #lines: string[] = [];
  #wake: (() => void) | undefined;
  #isOver = false;
  #error: Error | undefined;

  constructor(takes: EventStream["takes"], onClose: () => void) {
    this.takes = takes;
    this.#onClose = onClose;
  }

  push(line: string): void {
    this.#lines.push(line);
    this.#wake?.();
  }

  /** @param error undefined: with the last line */
  end(error?: Error): void {
    this.#isOver = true;
    this.#error = error;
    this.#wake?.();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    const next = async (): Promise<IteratorResult<Uint8Array>> => {
      while (this.#lines.length === 0 && !this.#isOver) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
      const lines = this.#lines;
      this.#lines = [];
      if (lines.length === 0 && this.#error) throw this.#error;
      if (lines.length === 0) return { done: true, value: undefined };
      return { done: false, value: new TextEncoder().encode(lines.join("")) };
    };
    const close = async (): Promise<IteratorResult<Uint8Array>> => {
      this.end();
      this.#onClose();
      return { done: true, value: undefined };
    };
    return { next, return: close };
  }
}
