import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, inflateRaw } from "node:zlib";

/** Value of Accept-Encoding: the supported encodings. */
export const ACCEPTED_ENCODINGS = "gzip, deflate, br";

/** The decoded body exceeds the limit. */
export class DecodedBodyTooLongError extends Error {}

/** The body does not have its Content-Encoding, or the encoding is not supported. */
export class ContentEncodingError extends Error {}

const decoders = {
  gzip: promisify(gunzip),
  "x-gzip": promisify(gunzip),
  deflate: promisify(inflate),
  // Some servers omit the zlib header of "deflate".
  "raw deflate": promisify(inflateRaw),
  br: promisify(brotliDecompress),
} as const;

/**
 * Decodes a body that has at most one Content-Encoding, in other threads.
 * @param encoding the header; "" = none
 * @param maxBytes limit of the decoded body, exclusive; decoding ends there
 * @throws DecodedBodyTooLongError, ContentEncodingError
 */
export async function decodeBody(bytes: Uint8Array, encoding: string, maxBytes: number): Promise<Uint8Array> {
  const named = encoding.trim().toLowerCase();
  if (named === "" || named === "identity") return bytes;
  const hasZlibHeader = ((bytes[0] ?? 0) & 0x0f) === 8;
  const name = named === "deflate" && !hasZlibHeader ? "raw deflate" : named;
  if (!Object.hasOwn(decoders, name)) {
    throw new ContentEncodingError(`has the Content-Encoding "${named}"; supported are ${ACCEPTED_ENCODINGS}`);
  }
  try {
    return await decoders[name as keyof typeof decoders](bytes, { maxOutputLength: maxBytes - 1 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE") throw new DecodedBodyTooLongError();
    throw new ContentEncodingError(`is truncated, or not encoded by ${named} as its Content-Encoding says`, {
      cause: error,
    });
  }
}
