import { closeSync, openSync, truncateSync, writeSync } from "node:fs";

/** Writes to this file until its file system is full. @param exceptBytes room that is to be left, in whole pages */
export function fillUp(path: string, exceptBytes = 0): void {
  const file = openSync(path, "w");
  let bytes = 0;
  try {
    for (let size = 64 * 1024; size > 0; size >>= 1) {
      const piece = Buffer.alloc(size);
      try {
        for (;;) bytes += writeSync(file, piece);
      } catch {
        // No room for a piece of this size.
      }
    }
  } finally {
    closeSync(file);
  }
  truncateSync(path, bytes - exceptBytes);
}
