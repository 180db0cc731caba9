import type { IncomingMessage } from "node:http";
import type { WebSocket } from "ws";
import { CommandError } from "../sub-command.ts";

/** Limit of received bytes that were not read; above it the connection is paused. */
const MAX_RECEIVED_BYTES = 256 * 1024;
/** Limit of unsent bytes; above it the sender waits. */
const MAX_UNSENT_BYTES = 64 * 1024;
/** Longest message, as kubectl sends them. */
const MAX_MESSAGE_BYTES = 32 * 1024;
const SEND_POLL_MS = 5;
const MAX_ANSWER_BYTES = 64 * 1024;

/** A message of one channel. */
interface ChannelMessage {
  channel: number;
  data: Uint8Array;
}

/** A WebSocket of the local API whose messages begin with the number of a channel, with back-pressure both ways. */
export class ApiWebSocket {
  readonly #socket: WebSocket;
  readonly #received: Buffer[] = [];
  #receivedBytes = 0;
  #isClosed = false;
  #wake: (() => void) | undefined;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on("message", (data) => this.#receive(data as Buffer));
    socket.on("error", () => {});
    socket.on("close", () => {
      this.#isClosed = true;
      this.#wake?.();
    });
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
  async *messages(): AsyncGenerator<ChannelMessage> {
    for (;;) {
      const message = this.#received.shift();
      if (message) {
        this.#receivedBytes -= message.length;
        if (this.#receivedBytes < MAX_RECEIVED_BYTES) this.#socket.resume();
        const [channel = 0] = message;
        yield { channel, data: message.subarray(1) };
      } else if (this.#isClosed) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
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

  #receive(message: Buffer): void {
    this.#received.push(message);
    this.#receivedBytes += message.length;
    if (this.#receivedBytes >= MAX_RECEIVED_BYTES) this.#socket.pause();
    this.#wake?.();
  }
}

async function reasonOf(response: IncomingMessage): Promise<string> {
  const fallback = `the local API answered ${response.statusCode}`;
  try {
    let text = "";
    for await (const chunk of response) if (text.length < MAX_ANSWER_BYTES) text += String(chunk);
    return (JSON.parse(text) as { message?: string }).message || fallback;
  } catch {
    return fallback;
  }
}
