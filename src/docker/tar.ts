/** One entry of a tar archive, owned by root. */
export interface TarEntry {
  /** Relative, up to 100 bytes; a directory ends with `/`. */
  path: string;
  /** Permission bits, e.g. 0o755. */
  mode: number;
  data: Uint8Array;
}

const BLOCK_BYTES = 512;

/** An uncompressed ustar archive, the same bytes for the same entries (no times). For image loads and PUT archive. */
export function tarArchive(entries: readonly TarEntry[]): Uint8Array<ArrayBuffer> {
  const padded = (bytes: number) => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
  const size = entries.reduce((sum, entry) => sum + BLOCK_BYTES + padded(entry.data.length), 0);
  // Two blocks of zeros end an archive.
  const archive = new Uint8Array(size + 2 * BLOCK_BYTES);
  let at = 0;
  for (const entry of entries) {
    archive.set(tarHeader(entry), at);
    archive.set(entry.data, at + BLOCK_BYTES);
    at += BLOCK_BYTES + padded(entry.data.length);
  }
  return archive;
}

function tarHeader({ path, mode, data }: TarEntry): Uint8Array {
  const header = new Uint8Array(BLOCK_BYTES);
  const put = (offset: number, text: string) => header.set(new TextEncoder().encode(text), offset);
  const octal = (value: number, digits: number) => value.toString(8).padStart(digits, "0");
  if (Buffer.byteLength(path) > 100) throw new RangeError(`a tar path has at most 100 bytes: ${path}`);
  put(0, path);
  put(100, octal(mode, 7));
  put(108, octal(0, 7));
  put(116, octal(0, 7));
  put(124, octal(data.length, 11));
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
