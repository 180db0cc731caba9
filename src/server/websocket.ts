import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { ServerWebSocket } from "bun";
import type { WebSocket } from "ws";
import { TurnPace } from "../base/concurrency/turn-pace.ts";
import { ReceivedChunks } from "./received-chunks.ts";

/** Longest message accepted; kubectl's are up to 32 KiB. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Sent bytes that wait for the client; above this the sender has to wait. */
export const MAX_UNSENT_BYTES = 64 * 1024;
/** Received messages that wait for the reader; above this the client has to wait. */
const MAX_RECEIVED_BYTES = 256 * 1024;
/** The same where a client cannot be made to wait: it is closed. Above what is pasted into a shell. */
const MAX_RECEIVED_UNPAUSED_BYTES = 2 * 1024 * 1024;
/** Received in one turn of the loop: 512 KiB are read at a time, which may be 75,000 messages. A paste is one. */
const MAX_MESSAGES_OF_TURN = 512;
/** Cost of a message in {@link PACE}: what is typed into a shell is one request to the engine. */
const MESSAGE_COST = 256;

const OPEN = 1;
/** Bytes of clients that are read at a time: a chunk of TLS may have 512 KiB, which may be 80,000 frames. */
const PART_BYTES = 16 * 1024;
const PACE = new TurnPace(2 * PART_BYTES);

/** One WebSocket, server side, with back-pressure. */
export abstract class WebSocketConnection {
  readonly #received = new ReceivedChunks((bytes) => {
    this.#waitingBytes += bytes;
    this.waiting(this.#waitingBytes);
  });
  #waitingBytes = 0;
  readonly #gone = new AbortController();
  /** Called for everything that is sent or received. */
  onActivity: () => void = () => {};

  /** Aborts when nothing more can come: the client closed, is gone, or broke the protocol. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Resolves when more may be sent; at once when the connection is closed. */
  abstract send(payload: Uint8Array, kind?: "binary" | "text"): Promise<void>;

  /** Clients respond automatically, browsers also in a hidden tab; the response is activity. */
  abstract ping(): void;

  /** Sends a close frame; the connection ends when it is sent, as the kubelet's does: clients need not respond. */
  abstract close(): void;

  abstract destroy(): void;

  /** Called with the bytes that wait for the reader, after each change. */
  protected abstract waiting(bytes: number): void;

  /** Messages of the client, until it closes. May be read once. */
  messages(): AsyncGenerator<Buffer> {
    return this.#received.read();
  }

  received(message: Buffer): void {
    if (this.#gone.signal.aborted) return;
    this.onActivity();
    this.#received.add(message);
  }

  ended(): void {
    if (this.#gone.signal.aborted) return;
    this.#gone.abort(new DOMException("the WebSocket is closed", "AbortError"));
    this.#received.end();
  }
}

/** A WebSocket of Bun.serve. It cannot be paused: a client that sends far more than is read is closed. */
export class BunWebSocket extends WebSocketConnection {
  #socket: ServerWebSocket<unknown> | undefined;
  #drained: (() => void)[] = [];
  #messagesOfTurn = 0;

  opened(socket: ServerWebSocket<unknown>): void {
    this.#socket = socket;
  }

  drained(): void {
    this.onActivity();
    for (const resolve of this.#drained.splice(0)) resolve();
  }

  override received(message: Buffer): void {
    if (this.#messagesOfTurn++ === 0) setImmediate(() => (this.#messagesOfTurn = 0));
    if (this.#messagesOfTurn > MAX_MESSAGES_OF_TURN) this.destroy();
    super.received(message);
  }

  override async *messages(): AsyncGenerator<Buffer> {
    for await (const message of super.messages()) {
      await PACE.enter(MESSAGE_COST);
      yield message;
    }
  }

  override ended(): void {
    super.ended();
    for (const resolve of this.#drained.splice(0)) resolve();
  }

  send(payload: Uint8Array, kind: "binary" | "text" = "binary"): Promise<void> {
    if (this.#socket?.readyState !== OPEN) return Promise.resolve();
    this.onActivity();
    if (kind === "text") this.#socket.sendText(Buffer.from(payload).toString());
    else this.#socket.sendBinary(payload);
    if (this.#socket.getBufferedAmount() < MAX_UNSENT_BYTES) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  ping(): void {
    if ((this.#socket?.getBufferedAmount() ?? MAX_UNSENT_BYTES) < MAX_UNSENT_BYTES) this.#socket?.ping();
  }

  close(): void {
    this.#socket?.close(1000);
    this.ended();
  }

  destroy(): void {
    this.#socket?.terminate();
    this.ended();
  }

  protected waiting(bytes: number): void {
    if (bytes > MAX_RECEIVED_UNPAUSED_BYTES) this.destroy();
  }
}

/** Completes the handshake of a WebSocket. @returns undefined when the request is not a valid handshake; it has been answered then */
export async function acceptWebSocket(
  request: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  protocol: string | undefined,
): Promise<WebSocketConnection | undefined> {
  const { WebSocketServer } = await import("ws");
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_MESSAGE_BYTES,
    perMessageDeflate: false,
    autoPong: false,
    handleProtocols: () => protocol ?? false,
  });
  return new Promise((resolve) => {
    socket.once("close", () => resolve(undefined));
    server.handleUpgrade(request, socket, head, (webSocket) => resolve(new NodeWebSocket(webSocket, socket)));
  });
}

class NodeWebSocket extends WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  #isFull = false;
  #goOn = () => {};

  /** @param stream the connection under it */
  constructor(socket: WebSocket, stream: Duplex) {
    super();
    this.#socket = socket;
    this.#stream = stream;
    // The library's own reader, which takes a chunk as a whole.
    const parse = stream.listeners("data")[0] as (part: Buffer) => void;
    stream.off("data", parse).on("data", (chunk: Buffer) => void this.#read(chunk, parse));
    socket.on("message", (data) => this.received(data as Buffer));
    // A client that reads no pongs gets none.
    socket.on("ping", (data) => {
      this.onActivity();
      if (socket.bufferedAmount < MAX_UNSENT_BYTES) socket.pong(data);
    });
    socket.on("pong", () => this.onActivity());
    // Violations of the protocol: the library closes the connection itself.
    socket.on("error", () => {});
    socket.on("close", () => this.ended());
  }

  send(payload: Uint8Array, kind: "binary" | "text" = "binary"): Promise<void> {
    if (this.#socket.readyState !== this.#socket.OPEN) return Promise.resolve();
    this.onActivity();
    return new Promise((resolve) => {
      this.#socket.send(payload, { binary: kind === "binary" }, () => {
        this.onActivity();
        resolve();
      });
      if (this.#socket.bufferedAmount < MAX_UNSENT_BYTES) resolve();
    });
  }

  ping(): void {
    if (this.#socket.readyState === this.#socket.OPEN && this.#socket.bufferedAmount < MAX_UNSENT_BYTES)
      this.#socket.ping();
  }

  close(): void {
    this.#socket.close(1000);
    this.#stream.end();
    this.ended();
  }

  destroy(): void {
    this.#socket.terminate();
    this.ended();
  }

  protected waiting(bytes: number): void {
    this.#isFull = bytes >= MAX_RECEIVED_BYTES;
    if (!this.#isFull) this.#goOn();
  }

  async #read(chunk: Buffer, parse: (part: Buffer) => void): Promise<void> {
    this.#stream.pause();
    for (let at = 0; at < chunk.length; at += PART_BYTES) {
      await PACE.enter(PART_BYTES);
      if (this.gone.aborted) return;
      parse.call(this.#stream, chunk.subarray(at, at + PART_BYTES));
      if (this.#isFull) await new Promise<void>((resolve) => (this.#goOn = resolve));
    }
    this.#stream.resume();
  }
}
