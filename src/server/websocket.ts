import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";

/** Longest message accepted; kubectl's are up to 32 KiB. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Received messages that wait for the reader; above this the client has to wait. */
const MAX_RECEIVED_BYTES = 256 * 1024;
/** Sent bytes that wait for the client; above this the sender has to wait. */
const MAX_UNSENT_BYTES = 64 * 1024;

/**
 * Completes the handshake of a WebSocket.
 * @param protocol the subprotocol chosen; undefined: the client named none
 * @returns undefined when the request is not a valid handshake; it has been answered then
 */
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
    server.handleUpgrade(request, socket, head, (webSocket) => resolve(new WebSocketConnection(webSocket, socket)));
  });
}

/** One WebSocket, server side, with back-pressure in both directions. */
export class WebSocketConnection {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  readonly #received: Buffer[] = [];
  readonly #gone = new AbortController();
  #receivedBytes = 0;
  #wakeReader: (() => void) | undefined;
  /** Called for everything that is sent or received. */
  onActivity: () => void = () => {};

  /** @param stream the connection under it */
  constructor(socket: WebSocket, stream: Duplex) {
    this.#socket = socket;
    this.#stream = stream;
    socket.on("message", (data) => this.#receive(data as Buffer));
    // A client that reads no pongs gets none.
    socket.on("ping", (data) => {
      this.onActivity();
      if (socket.bufferedAmount < MAX_UNSENT_BYTES) socket.pong(data);
    });
    socket.on("pong", () => this.onActivity());
    // Violations of the protocol: the library closes the connection itself.
    socket.on("error", () => {});
    socket.on("close", () => this.#end());
  }

  /** Aborts when nothing more can come: the client closed, is gone, or broke the protocol. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Messages of the client, until it closes. May be read once. */
  async *messages(): AsyncGenerator<Buffer> {
    for (;;) {
      const message = this.#received.shift();
      if (message) {
        this.#receivedBytes -= message.length;
        if (this.#receivedBytes < MAX_RECEIVED_BYTES) this.#socket.resume();
        yield message;
      } else if (this.#gone.signal.aborted) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
        });
      }
    }
  }

  /** Resolves when more may be sent; at once when the connection is closed. */
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

  /** Clients answer automatically, browsers also in a hidden tab; the answer is activity. */
  ping(): void {
    if (this.#socket.readyState === this.#socket.OPEN && this.#socket.bufferedAmount < MAX_UNSENT_BYTES)
      this.#socket.ping();
  }

  /** Sends a close frame; the connection ends when it is sent, as the kubelet's does: clients need not answer it. */
  close(): void {
    this.#socket.close(1000);
    this.#stream.end();
    this.#end();
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#socket.terminate();
    this.#end();
  }

  #receive(message: Buffer): void {
    if (this.#gone.signal.aborted) return;
    this.onActivity();
    this.#received.push(message);
    this.#receivedBytes += message.length;
    if (this.#receivedBytes >= MAX_RECEIVED_BYTES) this.#socket.pause();
    this.#wakeReader?.();
  }

  #end(): void {
    if (this.#gone.signal.aborted) return;
    this.#gone.abort(new DOMException("the WebSocket is closed", "AbortError"));
    this.#wakeReader?.();
  }
}
