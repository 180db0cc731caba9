import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { unlessCode, unlessFailed } from "../text/error-message.ts";

/** A file that is open to the end of the block which declares it with `using`. */
export interface OpenFile extends Disposable {
  readonly descriptor: number;
}

/** @throws the system's error */
export function openFile(path: string, flags: string | number): OpenFile {
  const descriptor = fs.openSync(path, flags);
  return { descriptor, [Symbol.dispose]: () => fs.closeSync(descriptor) };
}

/** A file that a bounded read refuses. */
export class UnreadableFileError extends Error {
  override readonly name = "UnreadableFileError";
}

/** Limit for files of the kernel and of the administrator: far above what they hold, far below what hurts. */
export const SYSTEM_FILE_BYTES = 16 * 1024 * 1024;

/** O_NONBLOCK: a FIFO without a writer, or a device, must not block the open. */
export const READ_FLAGS = fs.constants.O_RDONLY | fs.constants.O_NONBLOCK | fs.constants.O_NOCTTY;

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
export const namesIfReadable = (directory: string): string[] => unlessFailed(() => fs.readdirSync(directory)) ?? [];

/** The whole file behind an open descriptor, from its start. @throws as {@link readBoundedBytes}. */
export function readDescriptor(descriptor: number, maxBytes: number): Uint8Array {
  const stats = fs.fstatSync(descriptor);
  if (!stats.isFile()) throw new UnreadableFileError("is not a regular file");
  if (stats.size > maxBytes) throw toTooLarge(stats.size, maxBytes);
  // The file may have grown since it was measured; files of /proc and /sys have a size of 0.
  let buffer = Buffer.allocUnsafe(Math.min(Math.max(stats.size, 1024), maxBytes) + 1);
  let length = 0;
  for (;;) {
    const read = fs.readSync(descriptor, buffer, length, buffer.length - length, length);
    length += read;
    if (length > maxBytes) throw toTooLarge(length, maxBytes);
    if (read === 0) return buffer.subarray(0, length);
    if (length === buffer.length) {
      buffer = Buffer.concat([buffer], Math.min(buffer.length * 2, maxBytes + 1));
    }
  }
}

interface ReplaceOptions {
  /** Survives a power failure right after it; costs a sync. */
  durable: boolean;
  /** Mode of directories that are missing; default 0750. */
  directoryMode?: number;
  /** Default 0600. */
  mode?: number;
}

/** {@link replaceFile}, in this thread or another one. */
export type ReplaceFile = (path: string, content: string | Uint8Array, options: ReplaceOptions) => void | Promise<void>;

/**
 * Writes the new content of a file next to it.
 * @returns `commit` puts it in the place of the file
 * @param content or what writes it to the path that it is given
 * @throws the system's error
 */
export function prepareFile(
  path: string,
  content: string | Uint8Array | ((scratch: string) => void),
  options: ReplaceOptions,
) {
  const scratch = `${path}.tmp`;
  fs.mkdirSync(dirname(path), { recursive: true, mode: options.directoryMode ?? 0o750 });
  // A partial file uses space on a full disk.
  const discard = () => fs.rmSync(scratch, { force: true });
  try {
    // An older file might have another mode.
    discard();
    if (typeof content === "function") content(scratch);
    // Not writeSync: on a nearly full disk it writes a part and reports success.
    else fs.writeFileSync(scratch, content, { flag: "wx", mode: 0o600 });
    // Not when it is opened: the umask takes bits away.
    if (options.mode !== undefined) fs.chmodSync(scratch, options.mode);
    if (options.durable) sync(scratch);
  } catch (error) {
    discard();
    throw error;
  }
  return { commit: () => fs.renameSync(scratch, path), discard };
}

/** Replaces a file as a whole: readers see the old content or the new. @throws the system's error. */
export function replaceFile(...file: Parameters<typeof prepareFile>): void {
  const [path, , { durable }] = file;
  const prepared = prepareFile(...file);
  try {
    prepared.commit();
    // The name, too, survives a power cut: a file system may keep a rename in memory for seconds.
    if (durable) sync(dirname(path));
  } catch (error) {
    prepared.discard();
    throw error;
  }
}

/** The content of a file, or the names in a directory, survive a power cut from now on. @throws the system's error */
export function sync(path: string): void {
  using file = openFile(path, "r");
  fs.fsyncSync(file.descriptor);
}

/** Creates and removes a file: shows that the disk of a directory responds, now. @throws the system's error */
export function probeDirectory(directory: string): void {
  fs.mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, `.probe-${process.pid}`);
  fs.closeSync(fs.openSync(path, "w", 0o600));
  fs.rmSync(path);
}

/** Text files anywhere on the host. Their disk may not respond: the process that supervises pods reads them in other threads. */
export interface TextFiles {
  /** @returns undefined when there is no such file @throws UnreadableFileError; when the disk does not respond */
  readText(path: string, maxBytes: number): Promise<string | undefined>;
  /** Files of a directory with one of these extensions (`.crt`), by name; none when it is missing. */
  readDirectory(directory: string, extensions: readonly string[], maxBytes: number): Promise<DirectoryText[]>;
  replaceFile: ReplaceFile;
}

export interface DirectoryText {
  name: string;
  /** undefined when it cannot be read. */
  text: string | undefined;
}

/** In this thread, without a deadline: for commands, for the start of the process, and for tests. */
export const LOCAL_TEXT_FILES: TextFiles = {
  readText: async (path, maxBytes) => readTextIfExists(path, maxBytes),
  readDirectory: async (...args) => readDirectoryTexts(...args),
  replaceFile,
};

/** {@link TextFiles.readDirectory} in this thread. */
export function readDirectoryTexts(
  directory: string,
  extensions: readonly string[],
  maxBytes: number,
): DirectoryText[] {
  const names = namesIfReadable(directory).filter((name) => extensions.some((extension) => name.endsWith(extension)));
  return names.sort().map((name) => ({ name, text: readTextIfReadable(join(directory, name), maxBytes) }));
}
