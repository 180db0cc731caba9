/** One entry of a tar archive, owned by root. */
export interface TarEntry {
  /** Relative, up to 100 bytes; a directory ends with `/`. */
  path: string;
  /** Permission bits, e.g. 0o755. */
  mode: number;
  data: Uint8Array;
}

/** Headers and data begin at multiples of this size. */
export const BLOCK_BYTES = 512;

/** An uncompressed ustar archive, the same bytes for the same entries (no times). For image loads and PUT archive. */
export function tarArchive(entries: readonly TarEntry[]): Uint8Array<ArrayBuffer> {
  const padded = (bytes: number) => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
  const size = entries.reduce((sum, entry) => sum + BLOCK_BYTES + padded(entry.data.length), 0);
  // Two blocks of zeros end an archive.
  const archive = new Uint8Array(size + 2 * BLOCK_BYTES);
  let at = 0;
  for (const entry of entries) {
    archive.set(tarHeader({ ...entry, size: entry.data.length }), at);
    archive.set(entry.data, at + BLOCK_BYTES);
    at += BLOCK_BYTES + padded(entry.data.length);
  }
  return archive;
}

/** Bytes up to 8 GiB fit the octal field; larger sizes are written in base 256, as GNU tar and Go do. */
const MAX_OCTAL_SIZE = 8 ** 11 - 1;

/** One header block. @param size of the data that follows; unit: bytes */
export function tarHeader({ path, mode, size }: { path: string; mode: number; size: number }): Uint8Array<ArrayBuffer> {
  const header = new Uint8Array(BLOCK_BYTES);
  const put = (offset: number, text: string) => header.set(new TextEncoder().encode(text), offset);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  if (Buffer.byteLength(path) > 100) throw new RangeError(`a tar path has at most 100 bytes: ${path}`);
  put(0, path);
  put(100, octal(mode, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  if (size <= MAX_OCTAL_SIZE) put(124, octal(size, 11));
  else {
    header[124] = 0x80;
    new DataView(header.buffer).setBigUint64(128, BigInt(size));
  }
  put(136, octal(0, 11));
  put(148, "        ");
  put(156, path.endsWith("/") ? "5" : "0");
  put(257, "ustar\u000000");
  put(265, "root");
  put(297, "root");
  const checksum = header.reduce((sum, byte) => sum + byte, 0);
  put(148, `${octal(checksum, 6)}\0 `);
  return header;
}

/** Reads a header block; undefined for the block of zeros at the end. @throws Error for anything else */
export function parseTarHeader(block: Uint8Array): { path: string; size: number } | undefined {
  if (block.every((byte) => byte === 0)) return undefined;
  const text = (from: number, length: number) =>
    new TextDecoder("latin1").decode(block.subarray(from, from + length)).replace(/\0.*$/s, "");
  const sum = block.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0);
  if (Number.parseInt(text(148, 8), 8) !== sum) throw new Error("a header is damaged");
  const isBase256 = ((block[124] ?? 0) & 0x80) !== 0;
  const size = isBase256
    ? Number(new DataView(block.buffer, block.byteOffset).getBigUint64(128))
    : Number.parseInt(text(124, 12), 8);
  const path = new TextDecoder().decode(block.subarray(0, 100)).replace(/\0.*$/s, "");
  if (!Number.isSafeInteger(size) || size < 0) throw new Error("a header has no size");
  return { path, size };
}
