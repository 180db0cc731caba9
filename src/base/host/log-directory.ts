import { closeSync, constants, openSync, readdirSync, readSync } from "node:fs";
import { descriptorPath, openBeneath } from "../files/beneath.ts";
import { unlessFailed } from "../text/error-message.ts";

const CHUNK_BYTES = 64 * 1024;

/** An entry of a log directory as another thread found it. A file is open: its descriptor belongs to the whole process. */
type FoundLog = FoundDirectory | { kind: "file"; modifiedAt: Date; sizeBytes: number; descriptor: number };
interface FoundDirectory {
  kind: "directory";
  modifiedAt: Date;
  entries: readonly { name: string; isDirectory: boolean }[];
}

interface LogFile {
  kind: "file";
  modifiedAt: Date;
  sizeBytes: number;
  /** Its bytes up to the size. Read once, or `close`. */
  chunks(): AsyncIterable<Uint8Array>;
  close(): void;
}

/** Access to log files. The process that supervises pods leaves it to other threads: a container may have put anything there. */
interface LogFiles {
  findLog(root: string, relative: string): Promise<FoundLog | undefined>;
  /** @returns no bytes at the end of the file */
  readLog(descriptor: number, position: number, length: number): Promise<Uint8Array>;
}

/**
 * Opens a path beneath a root, which a container may write to: links lead nowhere else.
 * @returns undefined for what is missing, unreadable, outside, or neither file nor directory
 */
export function findLog(root: string, relative: string): FoundLog | undefined {
  using held = unlessFailed(() => openBeneath(root, relative));
  if (!held) return undefined;
  const { stats } = held;
  const modifiedAt = stats.mtime;
  // The handle itself cannot be read from; its name in /proc leads to exactly what it holds.
  const itself = descriptorPath(held.descriptor);
  if (stats.isDirectory()) return { kind: "directory", modifiedAt, entries: entriesOf(itself) };
  if (!stats.isFile()) return undefined;
  return { kind: "file", modifiedAt, sizeBytes: stats.size, descriptor: openSync(itself, constants.O_RDONLY) };
}

/** Part of an open file, in this thread. */
export function readLog(descriptor: number, position: number, length: number): Uint8Array {
  const buffer = Buffer.allocUnsafe(length);
  return buffer.subarray(0, readSync(descriptor, buffer, 0, length, position));
}

/** The machine's directory of logs, as far as it may be shown. */
export class LogDirectory {
  readonly #root: string;
  readonly #files: LogFiles;

  constructor(root: string, files: LogFiles) {
    this.#root = root;
    this.#files = files;
  }

  /** The entry at a path below it ("" is itself); undefined when missing, outside, or neither directory nor file. */
  async open(relative: string): Promise<FoundDirectory | LogFile | undefined> {
    const found = await this.#files.findLog(this.#root, relative);
    return found?.kind === "file" ? fileOf(found, this.#files) : found;
  }
}

function entriesOf(directory: string): { name: string; isDirectory: boolean }[] {
  return readdirSync(directory, { withFileTypes: true })
    .map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function fileOf({ modifiedAt, sizeBytes, descriptor }: Extract<FoundLog, { kind: "file" }>, files: LogFiles): LogFile {
  let isOpen = true;
  const close = () => {
    if (isOpen) closeSync(descriptor);
    isOpen = false;
  };
  return {
    kind: "file",
    modifiedAt,
    sizeBytes,
    close,
    chunks: async function* () {
      try {
        for (let position = 0; position < sizeBytes; ) {
          const bytes = await files.readLog(descriptor, position, Math.min(CHUNK_BYTES, sizeBytes - position));
          if (bytes.length === 0) return;
          position += bytes.length;
          yield bytes;
        }
      } finally {
        close();
      }
    },
  };
}
