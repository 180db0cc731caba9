import type { ServerResponse } from "node:http";
import type { StreamedResponse } from "./http-response.ts";

/** A client that reads nothing holds one part of a stream, not a whole chunk. In bytes, or characters. */
const PART_LENGTH = 16 * 1024;

/** A chunk in parts that are made one by one; a character of two code units stays whole. */
function* partsOf(chunk: Uint8Array | string): Generator<Uint8Array | string> {
  for (let at = 0; at < chunk.length; ) {
    let end = at + PART_LENGTH;
    if (typeof chunk !== "string") yield chunk.subarray(at, end);
    else {
      if ((chunk.charCodeAt(end - 1) & 0xfc00) === 0xd800) end--;
      yield chunk.slice(at, end);
    }
    at = end;
  }
}

/** Length of the parts that all streams write in one turn of the loop: bytes on their way to the kernel take memory. */
const TURN_LENGTH = 512 * 1024;
/** Added to each part: a short one, such as a line of a log, takes time rather than memory. */
const PART_COST = 512;

/** Length of parts after which their garbage is collected: over TLS each leaves a copy, of which the collector sees little. */
const COLLECTED_LENGTH = 8 * 1024 * 1024;

/** Spreads the parts of all streams over turns of the loop, first come first served. */
class StreamPace {
  #length = 0;
  #sinceCollected = 0;
  #isTurnPlanned = false;
  readonly #waiting: (() => void)[] = [];

  /** Resolves when a part of this length may be written; undefined: now. */
  enter(length: number): Promise<void> | undefined {
    if (!this.#isTurnPlanned) this.#planTurn();
    if (this.#waiting.length === 0 && this.#length < TURN_LENGTH) {
      this.#length += length + PART_COST;
      return undefined;
    }
    return new Promise((resolve) => {
      this.#waiting.push(() => {
        this.#length += length + PART_COST;
        resolve();
      });
    });
  }

  #planTurn(): void {
    this.#isTurnPlanned = true;
    setImmediate(() => {
      this.#isTurnPlanned = false;
      this.#sinceCollected += this.#length;
      this.#length = 0;
      if (this.#sinceCollected > COLLECTED_LENGTH) {
        this.#sinceCollected = 0;
        // In a thread of its own.
        Bun.gc(false);
      }
      let begun = 0;
      while (begun < this.#waiting.length && this.#length < TURN_LENGTH) this.#waiting[begun++]!();
      this.#waiting.splice(0, begun);
      if (begun > 0) this.#planTurn();
    });
  }
}

/** Writes the streamed responses of a server. */
export class StreamWriter {
  readonly #pace = new StreamPace();

  /** @param gone aborted when the client is gone: the stream ends, and its chunks are not asked for any more */
  async write(written: ServerResponse, response: StreamedResponse, gone: AbortSignal): Promise<void> {
    written.writeHead(response.status, response.headers);
    written.flushHeaders();
    let goOn = () => {};
    const onDrain = () => goOn();
    written.on("drain", onDrain);
    gone.addEventListener("abort", onDrain);
    for await (const chunk of response.chunks) {
      for (const part of partsOf(chunk)) {
        await this.#pace.enter(part.length);
        if (gone.aborted) return;
        if (written.write(part)) continue;
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
      }
    }
    if (!gone.aborted) await new Promise<void>((resolve) => written.end(resolve));
  }
}
