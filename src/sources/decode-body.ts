import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";

/** Value of Accept-Encoding: the encodings that can be unpacked. */
export const ACCEPTED_ENCODINGS = "gzip, deflate, br";

/** The unpacked body exceeds the limit. */
export class TooLongUnpacked extends Error {}

/** The bytes are not packed as the server said, or by something we do not know. */
export class BadPacking extends Error {}

const unpackers = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  // Some servers leave out the frame around "deflate".
  "raw deflate": promisify(inflateRaw),
  br: promisify(brotliDecompress),
} as const;

/**
 * Undoes a Content-Encoding, one packing at most; other threads do the work.
 * @param encoding the header; "" = none
 * @param maxBytes what comes out must be shorter; what unpacks to gigabytes is given up there
 * @throws TooLongUnpacked, BadPacking
 */
export async function unpackBody(bytes: Uint8Array, encoding: string, maxBytes: number): Promise<Uint8Array> {
  const named = encoding.trim().toLowerCase();
  if (named === "" || named === "identity") return bytes;
  const isFramed = ((bytes[0] ?? 0) & 0x0f) === 8;
  const name = named === "deflate" && !isFramed ? "raw deflate" : named;
  if (!Object.hasOwn(unpackers, name)) throw new BadPacking(`is packed by "${named}", which is not known here`);
  try {
    return await unpackers[name as keyof typeof unpackers](bytes, { maxOutputLength: maxBytes - 1 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw new TooLongUnpacked();
    throw new BadPacking(`is not packed by ${named}, as its Content-Encoding says, or is only a part`, {
      cause: error,
    });
  }
}
