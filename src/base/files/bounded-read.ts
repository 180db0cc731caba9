import { constants, fstatSync, readdirSync, readSync } from "node:fs";
import { unlessCode, unlessFailed } from "../text/error-message.ts";
import { openFile } from "./open-file.ts";

/** A file that a bounded read refuses. */
export class UnreadableFileError extends Error {
  override readonly name = "UnreadableFileError";
}

/** Limit for files of the kernel and of the administrator: far above what they hold, far below what hurts. */
export const SYSTEM_FILE_BYTES = 16 * 1024 * 1024;

/** O_NONBLOCK: a FIFO without a writer, or a device, must not block the open. */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY;

const toTooLarge = (bytes: number, maxBytes: number) =>
  new UnreadableFileError(`is too large: ${bytes} bytes, at most ${maxBytes}`);

/** A regular file, through links. @throws UnreadableFileError when it is another file or larger; the system's error */
export function readBoundedBytes(path: string, maxBytes: number): Uint8Array {
  using file = openFile(path, READ_FLAGS);
  return readDescriptor(file.descriptor, maxBytes);
}

/** As {@link readBoundedBytes}, as UTF-8. */
export const readBoundedText = (path: string, maxBytes: number): string =>
  Buffer.from(readBoundedBytes(path, maxBytes)).toString("utf8");

/** As {@link readBoundedText}; undefined when there is no such file. */
export const readTextIfExists = (path: string, maxBytes: number): string | undefined =>
  unlessCode(["ENOENT", "ENOTDIR"], () => readBoundedText(path, maxBytes));

/** undefined for a file that does not exist or cannot be read, such as one of a process that has ended. */
export const readTextIfReadable = (path: string, maxBytes: number): string | undefined =>
  unlessFailed(() => readBoundedText(path, maxBytes));

/** Names in a directory; none for one that does not exist or cannot be read. */
export const namesIfReadable = (directory: string): string[] => unlessFailed(() => readdirSync(directory)) ?? [];

/** The whole file behind an open descriptor, from its start. @throws as {@link readBoundedBytes}. */
export function readDescriptor(descriptor: number, maxBytes: number): Uint8Array {
  const stats = fstatSync(descriptor);
  if (!stats.isFile()) throw new UnreadableFileError("is not a regular file");
  if (stats.size > maxBytes) throw toTooLarge(stats.size, maxBytes);
  // The file may have grown since it was measured; files of /proc and /sys have a size of 0.
  let buffer = Buffer.allocUnsafe(Math.min(Math.max(stats.size, 1024), maxBytes) + 1);
  let length = 0;
  for (;;) {
    const read = readSync(descriptor, buffer, length, buffer.length - length, length);
    length += read;
    if (length > maxBytes) throw toTooLarge(length, maxBytes);
    if (read === 0) return buffer.subarray(0, length);
    if (length === buffer.length) {
      buffer = Buffer.concat([buffer], Math.min(buffer.length * 2, maxBytes + 1));
    }
  }
}
