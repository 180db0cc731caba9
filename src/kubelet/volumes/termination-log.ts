import { chmodSync, closeSync, constants, fstatSync, mkdirSync, openSync, readSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";

/** All that counts: a container may write any amount. Source: the kubelet. */
const LIMIT_BYTES = 4096;
/** Any user of the container may write it. */
const MODE = 0o666;
/** A container may put a link or a FIFO in its place. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Creates the empty termination log of one run of a container. @throws the system's error */
export function makeTerminationLog(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  writeFileSync(path, "");
  chmodSync(path, MODE);
}

/** The end of a termination log; undefined when there is no regular file. */
export function readTerminationLog(path: string): string | undefined {
  let file: number;
  try {
    file = openSync(path, READ);
  } catch {
    return undefined;
  }
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) return undefined;
    const bytes = Buffer.alloc(Math.min(stats.size, LIMIT_BYTES));
    const length = readSync(file, bytes, 0, bytes.length, Math.max(0, stats.size - LIMIT_BYTES));
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(file);
  }
}
