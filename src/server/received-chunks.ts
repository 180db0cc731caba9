/** Chunks that were received and wait for their reader. */
export class ReceivedChunks {
  readonly #onRead: (waitingBytes: number) => void;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #hasEnded = false;
  #wake: (() => void) | undefined;

  /** @param onRead called before each chunk is handed out, with the bytes that still wait */
  constructor(onRead: (waitingBytes: number) => void) {
    this.#onRead = onRead;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    this.#wake?.();
  }

  /** Nothing more will be added; the reader gets what waits. */
  end(): void {
    this.#hasEnded = true;
    this.#wake?.();
  }

  drop(): void {
    this.#chunks = [];
    this.#bytes = 0;
  }

  /** Chunks in their order, until the end. Read once. */
  async *read(): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk) {
        this.#bytes -= chunk.length;
        this.#onRead(this.#bytes);
        yield chunk;
      } else if (this.#hasEnded) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }
}
