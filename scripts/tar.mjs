/**
 * One entry of an archive. `path` and `linkTo` without a leading slash where they mean a file of the archive.
 * @typedef {{ path: string, mode?: number, data?: Buffer | string, directory?: true, symlink?: string, hardlink?: string, uid?: number, gid?: number }} TarEntry
 */

const BLOCK = 512;

function header(entry, size) {
  const name = entry.directory ? `${entry.path}/` : entry.path;
  if (Buffer.byteLength(name) > 100) throw new Error(`path too long for this archive: ${name}`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value, at, width) => block.write(`${value.toString(8).padStart(width - 1, "0")}\0`, at, "ascii");
  block.write(name, 0);
  octal(entry.mode ?? (entry.directory ? 0o755 : 0o644), 100, 8);
  octal(entry.uid ?? 0, 108, 8);
  octal(entry.gid ?? 0, 116, 8);
  octal(size, 124, 12);
  octal(0, 136, 12); // The same time always: the same content then has the same digest.
  block.write("        ", 148, "ascii");
  block.write(entry.directory ? "5" : entry.symlink ? "2" : entry.hardlink ? "1" : "0", 156, "ascii");
  block.write(entry.symlink ?? entry.hardlink ?? "", 157);
  block.write("ustar\x0000", 257, "latin1");
  octal(
    block.reduce((sum, byte) => sum + byte, 0),
    148,
    7,
  );
  return block;
}

/** A tar archive (ustar), in the order given. @param {readonly TarEntry[]} entries @returns {Buffer} */
export function toTar(entries) {
  const parts = [];
  for (const entry of entries) {
    const data = entry.data === undefined ? Buffer.alloc(0) : Buffer.from(entry.data);
    parts.push(header(entry, data.length), data, Buffer.alloc((BLOCK - (data.length % BLOCK)) % BLOCK));
  }
  parts.push(Buffer.alloc(2 * BLOCK));
  return Buffer.concat(parts);
}
