import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Files being written begin so; a reader of the directory leaves them out, and a start removes them. */
const SCRATCH_PREFIX = ".new-";

/** A file and its whole new content. */
export interface FileChange {
  path: string;
  text: string;
}

/**
 * Replaces files one after the other, in this order, once the new content of all of them is on the disk: a full disk
 * changes none. After a crash each is the old one or the new one. Mode 0600, directories 0700.
 * @throws Error of the file system
 */
export function writeFilesAtomically(changes: readonly FileChange[]): void {
  const scratches: string[] = [];
  try {
    for (const { path, text } of changes) {
      const directory = dirname(path);
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const scratch = join(directory, `${SCRATCH_PREFIX}${basename(path)}`);
      scratches.push(scratch);
      writeWhole(scratch, text);
    }
    for (const [index, { path }] of changes.entries()) renameSync(scratches[index]!, path);
  } catch (error) {
    for (const scratch of scratches) removeIfThere(scratch);
    throw error;
  }
}

function writeWhole(path: string, text: string): void {
  const file = openSync(path, "w", 0o600);
  try {
    // Unlike writeSync, this fails when the disk has room for a part alone.
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** A failure to clean up must not hide the failure to write. */
function removeIfThere(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The next write replaces it.
  }
}
