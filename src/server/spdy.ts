import type { Duplex } from "node:stream";
import { createInflate, constants as zlib } from "node:zlib";
import { nextTurn } from "../base/concurrency/turn-pace.ts";
import { writeTo } from "../base/files/bounded-stream.ts";
import { listOf } from "./channel-protocol.ts";
import { ReceivedChunks } from "./received-chunks.ts";

/** The transport of a connection: a socket, or a WebSocket that carries its bytes. */
export interface ByteChannel {
  /** Ends when the peer has closed. Not reading holds the peer back. */
  chunks: AsyncIterable<Uint8Array>;
  /** Resolves when more may follow. */
  write(data: Uint8Array): Promise<void>;
  close(): void;
}

/** Received bytes that wait for the readers of the streams; above this the whole connection waits. */
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
  #hasReplied = false;
  readonly #streams = new Map<number, SpdyStream>();
  readonly #gone = new AbortController();
  readonly #onStream: (stream: SpdyStream) => void;
  /** Received by all streams, and not read yet. */
  #waitingBytes = 0;
  #wake: () => void = () => {};
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
      let frames = 0;
      for await (const frame of readFrames(this.#channel.chunks)) {
        this.onActivity();
        if (!(await this.#take(frame))) break;
        // Frames may be of a byte: others have their turn between thousands of them.
        if (++frames % 256 === 0) await nextTurn();
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
    this.#wake();
    void this.#writing.finally(() => {
      this.#channel.close();
      this.#headers.close();
    });
  }

  /** @returns false: the client ends the connection */
  async #take(frame: SpdyFrame): Promise<boolean> {
    if (frame.kind === "data") {
      const stream = this.#streams.get(frame.streamId);
      if (frame.payload.length > 0) stream?.receive(frame.payload);
      while (this.#waitingBytes >= MAX_RECEIVED_BYTES && !this.gone.aborted) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
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
    const reply = [uint32(id), this.#hasReplied ? Buffer.alloc(0) : ZLIB_HEAD, NO_HEADERS];
    this.#hasReplied = true;
    await this.write(encodeControl(CONTROL.synReply, 0, Buffer.concat(reply)));
    this.#onStream(stream);
  }

  /** For the streams: so much more, or less, waits for readers. */
  waits(bytes: number): void {
    this.#waitingBytes += bytes;
    this.#wake();
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
  readonly #received: ReceivedChunks;
  #isFinished = false;
  /** For readers: the program has ended its side, or the client has closed the stream. */
  isEnded = false;

  constructor(id: number, headers: ReadonlyMap<string, string>, connection: SpdyConnection, onClosed: () => void) {
    this.id = id;
    this.headers = headers;
    this.#connection = connection;
    this.#onClosed = onClosed;
    this.#received = new ReceivedChunks((bytes) => connection.waits(bytes));
  }

  /** Data from the client, until it ends its side. May be read once. */
  chunks(): AsyncGenerator<Buffer> {
    return this.#received.read();
  }

  async write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length && !this.isEnded; at += MAX_DATA_BYTES) {
      await this.#connection.write(encodeData(this.id, false, data.subarray(at, at + MAX_DATA_BYTES)));
    }
  }

  /** Nothing more will be written or read. */
  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.#received.drop();
    void this.#connection.write(encodeData(this.id, true, new Uint8Array()));
    this.#closeIfDone();
  }

  receive(data: Buffer): void {
    if (!this.#isFinished && !this.isEnded) this.#received.add(data);
  }

  /** For the connection: the client has ended its side. */
  finish(): void {
    this.#isFinished = true;
    this.#received.end();
    this.#closeIfDone();
  }

  /** For the connection: the client has closed the stream. */
  reset(): void {
    this.isEnded = true;
    this.#received.drop();
    this.finish();
  }

  #closeIfDone(): void {
    if (this.#isFinished && this.isEnded) this.#onClosed();
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
  if (head.length > 0) socket.unshift(head);
  return {
    chunks: socket,
    write: (data) => writeTo(socket, data),
    close: () => void socket.end(),
  };
}

/** Types of control frames. Source: SPDY/3.1. */
export const CONTROL = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  ping: 6,
  goAway: 7,
  headers: 8,
} as const;

const FLAG_FIN = 1;
const VERSION = 3;
const HEADER_BYTES = 8;
/** Longest frame accepted; spdystream's are up to 32 KiB. */
const MAX_FRAME_BYTES = 256 * 1024;
/** Longest block of headers, decompressed: it can be a thousand times as long as its frame. */
const MAX_HEADERS_BYTES = 64 * 1024;

export type SpdyFrame =
  | { kind: "data"; streamId: number; isLast: boolean; payload: Buffer }
  | { kind: "control"; type: number; flags: number; payload: Buffer };

/** The peer does not keep to the protocol. */
export class SpdyError extends Error {}

/** Frames of a byte stream. @throws SpdyError */
export async function* readFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<SpdyFrame> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    for (;;) {
      if (rest.length < HEADER_BYTES) break;
      const length = rest.readUInt32BE(4) & 0xff_ff_ff;
      if (length > MAX_FRAME_BYTES) throw new SpdyError(`a frame of ${length} bytes is too long`);
      if (rest.length < HEADER_BYTES + length) break;
      const first = rest.readUInt32BE(0);
      const flags = rest[4] ?? 0;
      const payload = rest.subarray(HEADER_BYTES, HEADER_BYTES + length);
      rest = rest.subarray(HEADER_BYTES + length);
      if (first < 0x8000_0000) yield { kind: "data", streamId: first, isLast: (flags & FLAG_FIN) !== 0, payload };
      else if (((first >>> 16) & 0x7fff) !== VERSION) throw new SpdyError("a control frame is not of SPDY/3");
      else yield { kind: "control", type: first & 0xffff, flags, payload };
    }
  }
}

export const encodeControl = (type: number, flags: number, payload: Uint8Array): Buffer =>
  frameOf((0x8000_0000 | (VERSION << 16) | type) >>> 0, flags, payload);

export const encodeData = (streamId: number, isLast: boolean, payload: Uint8Array): Buffer =>
  frameOf(streamId, isLast ? FLAG_FIN : 0, payload);

const frameOf = (first: number, flags: number, payload: Uint8Array): Buffer =>
  Buffer.concat([uint32(first), uint32(((flags << 24) | payload.length) >>> 0), payload]);

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** A name or value of a header. */
export const lengthFirst = (text: string) => Buffer.concat([uint32(Buffer.byteLength(text)), Buffer.from(text)]);

/** The dictionary of SPDY/3.1, 2.6.10.1: these words, each behind its length, and after them the text. */
const WORDS = `options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow
authorization cache-control connection content-base content-encoding content-language content-length content-location
content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match
if-range if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range
referer retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get
status 200 OK version HTTP/1.1 url public set-cookie keep-alive origin`;
const TEXT =
  "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative " +
  "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal " +
  "Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, " +
  "Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml," +
  "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8" +
  "charset=iso-8859-1,utf-,*,enq=0.";
/** Dictionary of the compression of headers. */
export const toDictionary = () => Buffer.concat([...WORDS.split(/\s(?!OK)/).map(lengthFirst), Buffer.from(TEXT)]);

/** The headers of a reply: none, not compressed, in the stream of zlib that the first one begins. Go wants the empty block. */
const ZLIB_HEAD = Buffer.from("7801", "hex");
const NO_HEADERS = Buffer.from("000400fbff00000000000000ffff", "hex");

/** Compressed blocks of headers: one stream of zlib for the whole connection. */
class HeaderBlocks {
  readonly #inflate = createInflate({ dictionary: toDictionary(), finishFlush: zlib.Z_SYNC_FLUSH }).on(
    "error",
    () => {},
  );

  /** Names in lower case. One block at a time. @throws SpdyError */
  async decode(block: Uint8Array): Promise<Map<string, string>> {
    const bytes = await this.#decompress(block);
    const headers = new Map<string, string>();
    let at = 0;
    const number = () => {
      if (at + 4 > bytes.length) throw new SpdyError("a block of headers is cut short");
      at += 4;
      return bytes.readUInt32BE(at - 4);
    };
    const text = () => {
      const length = number();
      if (at + length > bytes.length) throw new SpdyError("a header is cut short");
      at += length;
      return bytes.toString("utf8", at - length, at);
    };
    for (let count = number(); count > 0; count--) {
      const name = text().toLowerCase();
      headers.set(name, text());
    }
    return headers;
  }

  #decompress(block: Uint8Array): Promise<Buffer> {
    const stream = this.#inflate;
    const made: Buffer[] = [];
    let bytes = 0;
    return new Promise((resolve, reject) => {
      const fail = () => reject(new SpdyError("a block of headers cannot be decompressed"));
      const collect = (part: Buffer) => {
        made.push(part);
        bytes += part.length;
        if (bytes <= MAX_HEADERS_BYTES) return;
        stream.destroy();
        fail();
      };
      stream.on("data", collect).once("error", fail);
      stream.write(block, () => {
        stream.flush(zlib.Z_SYNC_FLUSH, () => {
          stream.off("error", fail).off("data", collect);
          resolve(Buffer.concat(made));
        });
      });
    });
  }

  close(): void {
    this.#inflate.close();
  }
}
