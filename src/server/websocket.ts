import { createHash } from "node:crypto";
import type { Duplex } from "node:stream";
import {
  CLOSE,
  encodeClose,
  encodeFrame,
  type Frame,
  FrameReader,
  OPCODE,
  WebSocketProtocolError,
} from "./websocket-frames.ts";

/** Messages that were not taken yet; above it the client has to wait. */
const MAX_QUEUED_BYTES = 256 * 1024;

/** One WebSocket, server side, after its handshake. */
export class WebSocketConnection {
  readonly #socket: Duplex;
  readonly #reader = new FrameReader();
  readonly #queue: Frame[] = [];
  readonly #gone = new AbortController();
  #queuedBytes = 0;
  #wakeReader: (() => void) | undefined;
  #isOver = false;
  #hasSentClose = false;
  /** Called for whatever comes or goes. */
  onActivity: () => void = () => {};

  /** @param head what the client sent behind its handshake */
  constructor(socket: Duplex, head: Uint8Array) {
    this.#socket = socket;
    socket.on("error", () => {});
    socket.on("close", () => this.#end());
    socket.on("end", () => this.#end());
    if (head.length > 0) this.#take(head);
    socket.on("data", (chunk: Uint8Array) => this.#take(chunk));
  }

  /** Aborts when nothing more can come: the client closed, is gone, or broke the protocol. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Messages of the client, until it closes. May be read once. */
  async *messages(): AsyncGenerator<Frame> {
    for (;;) {
      const frame = this.#queue.shift();
      if (frame) {
        this.#queuedBytes -= frame.payload.length;
        if (this.#queuedBytes < MAX_QUEUED_BYTES) this.#socket.resume();
        yield frame;
      } else if (this.#isOver) return;
      else {
        await new Promise<void>((resolve) => {
          this.#wakeReader = resolve;
        });
      }
    }
  }

  /** Resolves when more may be sent; at once when nobody takes it any more. */
  send(payload: Uint8Array, kind: "binary" | "text" = "binary"): Promise<void> {
    if (this.#hasSentClose || !this.#socket.writable) return Promise.resolve();
    this.onActivity();
    if (this.#socket.write(encodeFrame(OPCODE[kind], payload))) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        this.#socket.off("drain", done);
        this.#socket.off("close", done);
        this.onActivity();
        resolve();
      };
      this.#socket.on("drain", done);
      this.#socket.on("close", done);
    });
  }

  /** Says farewell and ends the connection when that is sent. */
  close(code: number = CLOSE.normal): void {
    this.#sayClose(code);
    this.#end();
  }

  /** Ends it without a word. */
  destroy(): void {
    this.#socket.destroy();
    this.#end();
  }

  #take(chunk: Uint8Array): void {
    if (this.#isOver) return;
    this.onActivity();
    try {
      for (const frame of this.#reader.push(chunk)) this.#handle(frame);
    } catch (error) {
      if (!(error instanceof WebSocketProtocolError)) throw error;
      this.close(error.code);
    }
  }

  #handle(frame: Frame): void {
    switch (frame.opcode) {
      case OPCODE.close:
        this.close(CLOSE.normal);
        return;
      case OPCODE.ping:
        if (this.#socket.writable) this.#socket.write(encodeFrame(OPCODE.pong, frame.payload));
        return;
      case OPCODE.pong:
        return;
      default:
        this.#queue.push(frame);
        this.#queuedBytes += frame.payload.length;
        if (this.#queuedBytes >= MAX_QUEUED_BYTES) this.#socket.pause();
        this.#wakeReader?.();
    }
  }

  #sayClose(code: number): void {
    if (this.#hasSentClose) return;
    this.#hasSentClose = true;
    if (this.#socket.writable) this.#socket.end(encodeClose(code));
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#wakeReader?.();
    this.#gone.abort(new DOMException("the WebSocket is closed", "AbortError"));
  }
}

/** Value of `Sec-WebSocket-Accept`. Source: RFC 6455, 4.2.2. */
export function acceptKey(key: string): string {
  return createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
}
