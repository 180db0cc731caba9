import { on } from "node:events";
import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import { CommandError } from "../sub-command.ts";

/** Messages received and not read, of 32 KiB at the most, at which the connection is paused. */
const MAX_RECEIVED_MESSAGES = 8;
/** Limit of unsent bytes; above it the sender waits. */
const MAX_UNSENT_BYTES = 64 * 1024;
/** Longest message, as kubectl sends them. */
const MAX_MESSAGE_BYTES = 32 * 1024;
const SEND_POLL_MS = 5;
const MAX_RESPONSE_BYTES = 64 * 1024;

/** A WebSocket of the local API whose messages begin with the number of a channel, with back-pressure both ways. */
export class ApiWebSocket {
  readonly #socket: WebSocket;
  readonly #received: AsyncIterable<Buffer[]>;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    const limits = { highWaterMark: MAX_RECEIVED_MESSAGES, lowWaterMark: MAX_RECEIVED_MESSAGES / 2 };
    this.#received = on(socket, "message", { close: ["close"], ...limits });
    socket.on("error", () => {});
  }

  /** @throws CommandError with the server's reason when it refuses */
  static async open(socketPath: string, path: string, protocol: string): Promise<ApiWebSocket> {
    const { WebSocket } = await import("ws");
    const socket = new WebSocket(`ws+unix:${socketPath}:${path}`, [protocol]);
    const opened = new ApiWebSocket(socket);
    await new Promise<void>((resolve, reject) => {
      socket.once("open", () => resolve());
      socket.once("error", ({ message }) => reject(new CommandError(`the local API does not answer: ${message}`)));
      socket.once("unexpected-response", (_request, response) => {
        void reasonOf(response).then((reason) => reject(new CommandError(reason)));
      });
    });
    return opened;
  }

  /** Messages until the server closes. May be read once. */
  async *messages(): AsyncGenerator<{ channel: number; data: Uint8Array }> {
    try {
      for await (const [message] of this.#received) {
        yield { channel: message?.[0] ?? 0, data: message!.subarray(1) };
      }
    } catch {
      // A connection that broke has ended.
    }
  }

  /** Resolves when more may be sent; at once when the connection is closed. */
  async send(channel: number, data: Uint8Array): Promise<void> {
    // The server refuses long messages.
    for (let start = 0; start === 0 || start < data.length; start += MAX_MESSAGE_BYTES) {
      await this.#sendOne(channel, data.subarray(start, start + MAX_MESSAGE_BYTES));
    }
  }

  async #sendOne(channel: number, data: Uint8Array): Promise<void> {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    const message = Buffer.allocUnsafe(data.length + 1);
    message[0] = channel;
    message.set(data, 1);
    this.#socket.send(message);
    while (this.#socket.readyState === this.#socket.OPEN && this.#socket.bufferedAmount > MAX_UNSENT_BYTES) {
      await Bun.sleep(SEND_POLL_MS);
    }
  }

  close(): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.close(1000);
    else this.#socket.terminate();
  }
}

async function reasonOf(response: IncomingMessage): Promise<string> {
  const fallback = `the local API answered ${response.statusCode}`;
  try {
    let text = "";
    for await (const chunk of response) if (text.length < MAX_RESPONSE_BYTES) text += String(chunk);
    return (JSON.parse(text) as { message?: string }).message || fallback;
  } catch {
    return fallback;
  }
}
