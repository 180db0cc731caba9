import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Files being written begin so; a reader of the directory leaves them out, and a start removes them. */
export const SCRATCH_PREFIX = ".new-";

/**
 * Replaces a file so that it is the old one or the new one after a crash, never a part of either. Mode 0600, directories
 * 0700.
 * @throws Error of the file system, with the old file untouched
 */
export function writeFileAtomically(path: string, text: string): void {
  const directory = dirname(path);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const scratch = join(directory, `${SCRATCH_PREFIX}${basename(path)}`);
  try {
    const file = openSync(scratch, "w", 0o600);
    try {
      // Unlike writeSync, this fails when the disk has room for a part alone.
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(scratch, path);
  } catch (error) {
    rmSync(scratch, { force: true });
    throw error;
  }
}
