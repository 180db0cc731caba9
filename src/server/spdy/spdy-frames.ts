import { createDeflate, createInflate, type Deflate, type Inflate, constants as zlib } from "node:zlib";

/** Types of control frames. Source: SPDY/3.1. */
export const CONTROL = {
  synStream: 1,
  synReply: 2,
  rstStream: 3,
  ping: 6,
  goAway: 7,
  headers: 8,
} as const;

export const FLAG_FIN = 1;
const VERSION = 3;
const HEADER_BYTES = 8;
/** Longest frame accepted; spdystream's are up to 32 KiB. */
const MAX_FRAME_BYTES = 1024 * 1024;

export type SpdyFrame =
  | { kind: "data"; streamId: number; isLast: boolean; payload: Buffer }
  | { kind: "control"; type: number; flags: number; payload: Buffer };

/** The peer does not keep to the protocol. */
export class SpdyError extends Error {
  override readonly name = "SpdyError";
}

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

const lengthFirst = (text: string) => Buffer.concat([uint32(Buffer.byteLength(text)), Buffer.from(text)]);

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
const toDictionary = () => Buffer.concat([...WORDS.split(/\s(?!OK)/).map(lengthFirst), Buffer.from(TEXT)]);

/** Compressed blocks of headers: one stream of zlib in each direction for the whole connection. */
export class HeaderBlocks {
  readonly #inflate: Inflate;
  readonly #deflate: Deflate;

  constructor() {
    const dictionary = toDictionary();
    this.#inflate = createInflate({ dictionary, finishFlush: zlib.Z_SYNC_FLUSH });
    this.#deflate = createDeflate({ dictionary, flush: zlib.Z_SYNC_FLUSH });
    for (const stream of [this.#inflate, this.#deflate]) stream.on("error", () => {});
  }

  /** Names in lower case. One block at a time. @throws SpdyError */
  async decode(block: Uint8Array): Promise<Map<string, string>> {
    const bytes = await through(this.#inflate, block);
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

  async encode(headers: ReadonlyMap<string, string>): Promise<Buffer> {
    const parts: Buffer[] = [uint32(headers.size)];
    for (const [name, value] of headers) parts.push(lengthFirst(name), lengthFirst(value));
    return through(this.#deflate, Buffer.concat(parts));
  }

  close(): void {
    this.#inflate.close();
    this.#deflate.close();
  }
}

async function through(stream: Inflate | Deflate, chunk: Uint8Array): Promise<Buffer> {
  const made: Buffer[] = [];
  const collect = (part: Buffer) => made.push(part);
  stream.on("data", collect);
  try {
    await new Promise<void>((resolve, reject) => {
      const fail = () => reject(new SpdyError("a block of headers cannot be decompressed"));
      stream.once("error", fail);
      stream.write(chunk, () => {
        stream.flush(zlib.Z_SYNC_FLUSH, () => {
          stream.off("error", fail);
          resolve();
        });
      });
    });
  } finally {
    stream.off("data", collect);
  }
  return Buffer.concat(made);
}
