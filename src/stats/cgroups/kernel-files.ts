import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { parseOpenFilesLimit } from "../../base/host/proc.ts";
import { unlessFailed } from "../../base/text/error-message.ts";

/** Text of a small kernel file; undefined when it cannot be read. Synchronous on purpose: /proc and /sys never wait for a disk. */
export const readText = (path: string): string | undefined => unlessFailed(() => readFileSync(path, "utf8"));

/** Descriptors that the process may have; infinite without a limit. */
export function ownOpenFilesLimit(): number {
  const soft = parseOpenFilesLimit(readText("/proc/self/limits") ?? "")?.soft ?? 1024;
  return soft < 0 ? Number.POSITIVE_INFINITY : soft;
}

const BUFFER = Buffer.allocUnsafe(16 * 1024);
/** The bound for all cgroups together; above it a file is opened for each read. */
const MAX_KEPT_FILES = Math.min(8_192, ownOpenFilesLimit() / 4);
let keptFiles = 0;

/** Descriptors that are kept open now to read cgroups. */
export const countKeptFiles = (): number => keptFiles;

/**
 * Files of one cgroup that stay open between reads: most of the cost of a read is the opening. An open file keeps a removed
 * cgroup in memory, so the owner closes them; a later read opens again. Not for lists such as `cgroup.procs`, of which the
 * kernel gives a page at a time.
 */
export class KeptFiles {
  /** Key: the name; no two hierarchies have files of one name. */
  readonly #descriptors = new Map<string, number>();

  /** Text of a file now; undefined when it cannot be read, or its cgroup is gone. */
  read(directory: string, name: string): string | undefined {
    const path = () => `${directory}/${name}`;
    let descriptor = this.#descriptors.get(name);
    try {
      if (descriptor === undefined) {
        if (keptFiles >= MAX_KEPT_FILES) return readText(path());
        descriptor = openSync(path(), "r");
        this.#descriptors.set(name, descriptor);
        keptFiles++;
      }
      const length = readSync(descriptor, BUFFER, 0, BUFFER.length, 0);
      return length < BUFFER.length ? BUFFER.toString("latin1", 0, length) : readText(path());
    } catch {
      if (descriptor === undefined) return undefined;
      // ENODEV: the cgroup was removed; another one may have its path now.
      this.close();
      return readText(path());
    }
  }

  close(): void {
    for (const descriptor of this.#descriptors.values()) closeSync(descriptor);
    keptFiles -= this.#descriptors.size;
    this.#descriptors.clear();
  }
}

/** Names of the directories in a directory, empty when it cannot be read. */
export function readSubdirectories(path: string): string[] {
  const entries = unlessFailed(() => readdirSync(path, { withFileTypes: true })) ?? [];
  return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
}
