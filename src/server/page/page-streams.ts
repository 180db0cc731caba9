import type { Clock } from "../../base/model/clock.ts";
import type { ProcessSession } from "../../base/model/container-access.ts";
import type { WebSocketConnection } from "../websocket.ts";

/** A longer line is sent in pieces. Unit: UTF-16 code units. */
const MAX_LINE_CHARS = 256 * 1024;

/** Lines of one of several logs, each as `name<TAB>line`. */
export async function* nameLines(name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  for await (const lines of toLines(chunks)) yield lines.map((line) => `${name}\t${line}\n`).join("");
}

/** Bytes on the way to a reader. */
const MAX_UNREAD_BYTES = 1024 * 1024;
/** Time in which what is written becomes one message: a message costs a page more than a line. */
const GATHER_MS = 20;

/**
 * A socket whose reader acknowledges what it has handled, as a number of bytes: browsers take messages of a WebSocket faster
 * than their page handles them, and keep them all.
 */
export class PacedSocket {
  readonly #socket: Pick<WebSocketConnection, "send" | "messages" | "gone">;
  readonly #clock: Pick<Clock, "schedule">;
  #gathered: Uint8Array[] = [];
  #unreadBytes = 0;
  #acknowledged = Promise.withResolvers<void>();

  constructor(socket: Pick<WebSocketConnection, "send" | "messages" | "gone">, clock: Pick<Clock, "schedule">) {
    this.#socket = socket;
    this.#clock = clock;
    void this.#readAcknowledgements();
  }

  /** Resolves when more may be written, or the reader is gone. */
  async write(payload: Uint8Array): Promise<void> {
    this.#unreadBytes += payload.length;
    if (this.#gathered.push(payload) === 1) this.#clock.schedule(GATHER_MS, () => void this.flush());
    while (this.#unreadBytes > MAX_UNREAD_BYTES && !this.#socket.gone.aborted) await this.#acknowledged.promise;
  }

  async flush(): Promise<void> {
    const payload = Buffer.concat(this.#gathered.splice(0));
    if (payload.length > 0) await this.#socket.send(payload);
  }

  async #readAcknowledgements(): Promise<void> {
    for await (const message of this.#socket.messages()) {
      this.#unreadBytes -= Number(message.toString());
      this.#acknowledged.resolve();
      this.#acknowledged = Promise.withResolvers();
    }
    this.#acknowledged.resolve();
  }
}

export async function* inTurn<T>(logs: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  for (const log of logs) yield* log;
}

/** Complete lines of each chunk; never an empty list. */
async function* toLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunks) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE_CHARS) {
      lines.push(rest);
      rest = "";
    }
    if (lines.length > 0) yield lines;
  }
  if (rest !== "") yield [rest];
}

const EXPIRED = "the session of the page has expired";

/** Ends at the first data after the session has expired. @param isAllowed asked before each chunk */
export async function* logWhile<T>(chunks: AsyncIterable<T>, isAllowed: () => boolean): AsyncGenerator<T> {
  for await (const chunk of chunks) {
    if (!isAllowed()) return;
    yield chunk;
  }
}

/** Ends at the first input or output after the session of the page has expired; the process is killed then. */
export function shellWhile(session: ProcessSession, isAllowed: () => boolean): ProcessSession {
  let hasExpired = false;
  async function* output(): ProcessSession["output"] {
    for await (const chunk of session.output) {
      hasExpired ||= !isAllowed();
      if (hasExpired) break;
      yield chunk;
    }
    if (hasExpired) throw new Error(EXPIRED);
  }
  return {
    output: output(),
    write: async (data) => {
      hasExpired ||= !isAllowed();
      await (hasExpired ? session.close() : session.write(data));
    },
    endInput: () => session.endInput(),
    resize: (size) => session.resize(size),
    exitCode: () => session.exitCode(),
    close: () => session.close(),
  };
}
