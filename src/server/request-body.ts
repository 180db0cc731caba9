import type { IncomingMessage } from "node:http";

/** A body longer than the caller accepts. */
export class BodyTooLongError extends Error {
  override readonly name = "BodyTooLongError";

  constructor(maxBytes: number) {
    super(`the body of the request is longer than ${maxBytes} bytes`);
  }
}

/** The bodies of all requests together take too much memory. */
export class TooManyBodiesError extends Error {
  override readonly name = "TooManyBodiesError";
}

/** Memory for the bodies of the requests of one server that are being answered. */
export class BodyBudget {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @throws TooManyBodiesError */
  take(bytes: number): void {
    if (this.#usedBytes + bytes > this.#maxBytes) throw new TooManyBodiesError("too many bodies at a time");
    this.#usedBytes += bytes;
  }

  release(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}

/** The body of one request, read at most once. */
export class RequestBody {
  readonly #message: IncomingMessage;
  readonly #budget: BodyBudget;
  #bytes = 0;
  #isCut = false;

  constructor(message: IncomingMessage, budget: BodyBudget) {
    this.#message = message;
    this.#budget = budget;
  }

  /** A part of the body was not read: the connection cannot carry another request. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** @throws BodyTooLongError, TooManyBodiesError */
  async read(maxBytes: number): Promise<Uint8Array> {
    this.#isCut = true;
    if (Number(this.#message.headers["content-length"] ?? 0) > maxBytes) throw new BodyTooLongError(maxBytes);
    const chunks: Uint8Array[] = [];
    for await (const chunk of this.#message as AsyncIterable<Uint8Array>) {
      this.#budget.take(chunk.length);
      this.#bytes += chunk.length;
      if (this.#bytes > maxBytes) throw new BodyTooLongError(maxBytes);
      chunks.push(chunk);
    }
    this.#isCut = false;
    return Buffer.concat(chunks);
  }

  /** Call it when the request is answered. */
  release(): void {
    this.#budget.release(this.#bytes);
    this.#bytes = 0;
  }
}
