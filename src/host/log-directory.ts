import { closeSync, constants, openSync, read, readdirSync, type Stats } from "node:fs";
import { promisify } from "node:util";
import type { LogDirectory, LogEntry } from "../model/log-directory.ts";

/** Opens a path below a root so that no link leads out of it; throws when one would, or nothing is there. */
export type OpenBeneath = (root: string, relative: string) => { descriptor: number; stats: Stats; close(): void };

const CHUNK_BYTES = 64 * 1024;
const readAt = promisify(read);

/**
 * A log directory on disk. A container that may write there (by a hostPath) must not be able to show files from
 * elsewhere through links, so every path is walked beneath the root.
 */
export class HostLogDirectory implements LogDirectory {
  readonly #root: string;
  readonly #openBeneath: OpenBeneath;

  constructor(root: string, openBeneath: OpenBeneath) {
    this.#root = root;
    this.#openBeneath = openBeneath;
  }

  open(relative: string): LogEntry | undefined {
    let held: ReturnType<OpenBeneath>;
    try {
      held = this.#openBeneath(this.#root, relative);
    } catch {
      // Missing, unreadable, or outside the directory: clients get the same answer for each.
      return undefined;
    }
    try {
      const { stats } = held;
      // The handle itself cannot be read from; its name in /proc leads to exactly what it holds.
      const itself = `/proc/self/fd/${held.descriptor}`;
      if (stats.isDirectory()) return { kind: "directory", modifiedAt: stats.mtime, entries: entriesOf(itself) };
      return stats.isFile() ? fileOf(itself, stats) : undefined;
    } finally {
      held.close();
    }
  }
}

function entriesOf(directory: string): { name: string; isDirectory: boolean }[] {
  return readdirSync(directory, { withFileTypes: true })
    .map((entry) => ({ name: entry.name, isDirectory: entry.isDirectory() }))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function fileOf(path: string, { mtime, size }: Stats): LogEntry {
  const descriptor = openSync(path, constants.O_RDONLY);
  let isOpen = true;
  const close = () => {
    if (isOpen) closeSync(descriptor);
    isOpen = false;
  };
  return {
    kind: "file",
    modifiedAt: mtime,
    sizeBytes: size,
    close,
    chunks: async function* () {
      try {
        for (let position = 0; position < size; ) {
          const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, size - position));
          const { bytesRead } = await readAt(descriptor, buffer, 0, buffer.length, position);
          if (bytesRead === 0) return;
          position += bytesRead;
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        close();
      }
    },
  };
}
