import type { Duplex } from "node:stream";

/** A connection to the engine that carries what a process reads and writes. */
export class HijackedConnection {
  readonly #socket: Duplex;
  readonly #head: Uint8Array;

  /** @param head bytes that followed the engine's 101 response */
  constructor(socket: Duplex, head: Uint8Array) {
    this.#socket = socket;
    this.#head = head;
    // A reader sees the end of the stream; a broken connection needs no other report.
    socket.on("error", () => {});
  }

  /** The output of the process, as the engine frames it, until its end or the connection's. May be read once. */
  async *chunks(): AsyncGenerator<Uint8Array> {
    if (this.#head.length > 0) yield this.#head;
    try {
      for await (const chunk of this.#socket) yield chunk as Uint8Array;
    } catch {
      // Cut: what could be read has been read.
    }
  }

  /** Resolves when more may be written, also when the connection no longer takes data. */
  write(data: Uint8Array): Promise<void> {
    if (!this.#socket.writable) return Promise.resolve();
    if (this.#socket.write(data)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        this.#socket.off("drain", done);
        this.#socket.off("close", done);
        resolve();
      };
      this.#socket.on("drain", done);
      this.#socket.on("close", done);
    });
  }

  /** The process reads the end of its input; its output still comes. */
  endInput(): void {
    if (this.#socket.writable) this.#socket.end();
  }

  close(): void {
    this.#socket.destroy();
  }
}
