/** Memory of a chunk apart from its bytes: a client may send millions that are empty. */
const CHUNK_BYTES = 256;

/** Chunks that were received and wait for their reader. */
export class ReceivedChunks {
  readonly #onChange: (bytes: number) => void;
  readonly #chunks: Buffer[] = [];
  #hasEnded = false;
  #wake: (() => void) | undefined;

  /** @param onChange called with the memory that is taken more, or less when it is negative, by what waits */
  constructor(onChange: (bytes: number) => void) {
    this.#onChange = onChange;
  }

  /** @param chunk copied: it may be a small part of a large buffer */
  add(chunk: Uint8Array): void {
    this.#chunks.push(Buffer.from(chunk));
    this.#onChange(chunk.length + CHUNK_BYTES);
    this.#wake?.();
  }

  /** Nothing more will be added; the reader gets what waits. */
  end(): void {
    this.#hasEnded = true;
    this.#wake?.();
  }

  drop(): void {
    for (const { length } of this.#chunks.splice(0)) this.#onChange(-length - CHUNK_BYTES);
  }

  /** Chunks in their order, until the end. Read once. */
  async *read(): AsyncGenerator<Buffer> {
    for (;;) {
      const chunk = this.#chunks.shift();
      if (chunk) {
        this.#onChange(-chunk.length - CHUNK_BYTES);
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
