import type { Duplex } from "node:stream";
import { listOf } from "../channel-protocol.ts";
import { ReceivedChunks } from "../received-chunks.ts";
import {
  CONTROL,
  encodeControl,
  encodeData,
  FLAG_FIN,
  HeaderBlocks,
  readFrames,
  SpdyError,
  type SpdyFrame,
  uint32,
} from "./spdy-frames.ts";

/** The transport of a connection: a socket, or a WebSocket that carries its bytes. */
export interface ByteChannel {
  /** Ends when the peer has closed. Not reading holds the peer back. */
  chunks: AsyncIterable<Uint8Array>;
  /** Resolves when more may follow. */
  write(data: Uint8Array): Promise<void>;
  close(): void;
}

/** Received bytes that wait for the reader of a stream; above this the whole connection waits. */
const MAX_RECEIVED_BYTES = 256 * 1024;
const MAX_STREAMS = 1_000;
const MAX_DATA_BYTES = 32 * 1024;

/**
 * The server's side of SPDY/3.1, as Go's spdystream implements it: streams opened by the client, pings, no flow control (that
 * library ignores windows; a reader that is slow holds back the whole connection).
 */
export class SpdyConnection {
  readonly #channel: ByteChannel;
  readonly #headers = new HeaderBlocks();
  readonly #streams = new Map<number, SpdyStream>();
  readonly #gone = new AbortController();
  readonly #onStream: (stream: SpdyStream) => void;
  #writing: Promise<void> = Promise.resolve();
  /** Called for everything that comes or goes. */
  onActivity: () => void = () => {};

  constructor(channel: ByteChannel, onStream: (stream: SpdyStream) => void) {
    this.#channel = channel;
    this.#onStream = onStream;
  }

  /** Aborts when the connection has ended. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  /** Serves the connection until it ends. Never rejects. */
  async run(): Promise<void> {
    try {
      for await (const frame of readFrames(this.#channel.chunks)) {
        this.onActivity();
        if (!(await this.#take(frame))) break;
      }
    } catch {
      // A broken connection, or a peer that does not keep to the protocol: both end here.
    } finally {
      this.close();
    }
  }

  close(): void {
    if (this.#gone.signal.aborted) return;
    this.#gone.abort(new DOMException("the connection is closed", "AbortError"));
    for (const stream of this.#streams.values()) stream.finish();
    this.#streams.clear();
    void this.#writing.finally(() => {
      this.#channel.close();
      this.#headers.close();
    });
  }

  /** @returns false: the client says goodbye */
  async #take(frame: SpdyFrame): Promise<boolean> {
    if (frame.kind === "data") {
      const stream = this.#streams.get(frame.streamId);
      if (frame.payload.length > 0) await stream?.receive(frame.payload);
      if (frame.isLast) stream?.finish();
      return true;
    }
    const { type, flags, payload } = frame;
    switch (type) {
      case CONTROL.synStream:
        await this.#open(payload, (flags & FLAG_FIN) !== 0);
        return true;
      case CONTROL.ping:
        await this.write(encodeControl(CONTROL.ping, 0, payload));
        return true;
      case CONTROL.rstStream:
        this.#streams.get(streamIdOf(payload))?.reset();
        this.#streams.delete(streamIdOf(payload));
        return true;
      case CONTROL.headers:
        // Decoded although unused: the compression spans all blocks.
        await this.#headers.decode(payload.subarray(4));
        if ((flags & FLAG_FIN) !== 0) this.#streams.get(streamIdOf(payload))?.finish();
        return true;
      case CONTROL.goAway:
        return false;
      default:
        return true;
    }
  }

  async #open(payload: Buffer, isLast: boolean): Promise<void> {
    if (payload.length < 10) throw new SpdyError("a new stream is cut short");
    if (this.#streams.size >= MAX_STREAMS) throw new SpdyError("too many streams");
    const id = streamIdOf(payload);
    const headers = await this.#headers.decode(payload.subarray(10));
    const stream = new SpdyStream(id, headers, this, () => this.#streams.delete(id));
    this.#streams.set(id, stream);
    if (isLast) stream.finish();
    const reply = await this.#headers.encode(new Map());
    await this.write(encodeControl(CONTROL.synReply, 0, Buffer.concat([uint32(id), reply])));
    this.#onStream(stream);
  }

  /** Frames go out one after the other. Resolves when more may follow. */
  write(frame: Uint8Array): Promise<void> {
    if (this.#gone.signal.aborted) return Promise.resolve();
    this.onActivity();
    this.#writing = this.#writing.then(() => this.#channel.write(frame)).catch(() => {});
    return this.#writing;
  }
}

const streamIdOf = (payload: Buffer) => (payload.length < 4 ? 0 : payload.readUInt32BE(0) & 0x7fff_ffff);

/** One stream of a connection; both directions end on their own. */
export class SpdyStream {
  readonly id: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly #connection: SpdyConnection;
  readonly #onClosed: () => void;
  readonly #received = new ReceivedChunks(() => this.#wakeWriter?.());
  #isFinished = false;
  #isEnded = false;
  #wakeWriter: (() => void) | undefined;

  constructor(id: number, headers: ReadonlyMap<string, string>, connection: SpdyConnection, onClosed: () => void) {
    this.id = id;
    this.headers = headers;
    this.#connection = connection;
    this.#onClosed = onClosed;
  }

  /** Data from the client, until it ends its side. May be read once. */
  chunks(): AsyncGenerator<Buffer> {
    return this.#received.read();
  }

  async write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length && !this.#isEnded; at += MAX_DATA_BYTES) {
      await this.#connection.write(encodeData(this.id, false, data.subarray(at, at + MAX_DATA_BYTES)));
    }
  }

  /** Nothing more will be written. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    void this.#connection.write(encodeData(this.id, true, new Uint8Array()));
    this.#closeIfDone();
  }

  /** For the connection: resolves when more may be received. */
  async receive(data: Buffer): Promise<void> {
    if (this.#isFinished) return;
    this.#received.add(data);
    while (this.#received.bytes >= MAX_RECEIVED_BYTES && !this.#isEnded && !this.#connection.gone.aborted) {
      await new Promise<void>((resolve) => {
        this.#wakeWriter = resolve;
      });
    }
  }

  /** For the connection: the client has ended its side. */
  finish(): void {
    this.#isFinished = true;
    this.#received.end();
    this.#wakeWriter?.();
    this.#closeIfDone();
  }

  /** For the connection: the client has closed the stream. */
  reset(): void {
    this.#isEnded = true;
    this.#received.drop();
    this.finish();
  }

  #closeIfDone(): void {
    if (this.#isFinished && this.#isEnded) this.#onClosed();
  }
}

/** The newest version that both sides know; "" when the client names none; undefined when there is none in common. */
export function chooseStreamProtocol(offered: string | null, known: readonly string[]): string | undefined {
  const names = listOf(offered);
  if (names.length === 0) return "";
  return known.find((name) => names.includes(name));
}

/** Responds to the handshake and takes the connection. @param head what the client sent behind its request */
export function acceptSpdy(socket: Duplex, head: Buffer, protocol: string): ByteChannel {
  const version = protocol === "" ? "" : `X-Stream-Protocol-Version: ${protocol}\r\n`;
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n${version}\r\n`);
  return {
    chunks: chunksOf(socket, head),
    write: (data) =>
      new Promise((resolve) => {
        if (!socket.writable || socket.write(data)) return resolve();
        const done = () => {
          socket.off("drain", done);
          socket.off("close", done);
          resolve();
        };
        socket.on("drain", done);
        socket.on("close", done);
      }),
    close: () => void socket.end(),
  };
}

async function* chunksOf(socket: Duplex, head: Buffer): AsyncGenerator<Uint8Array> {
  if (head.length > 0) yield head;
  for await (const chunk of socket as AsyncIterable<Uint8Array>) yield chunk;
}
