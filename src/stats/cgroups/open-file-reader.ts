import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { type InterfaceCounters, parseNetDev, parseOpenFilesLimit } from "../../base/host/proc.ts";

const BUFFER = Buffer.allocUnsafe(16 * 1024);
const CLOSED = -1;

/** Open descriptors of all readers together; above this, files are opened for each read. At most half of the process's limit. */
export const MAX_KEPT_FILES = Math.min(16_384, ownLimit() / 2);
let openFiles = 0;

/** Descriptors that all readers keep open now. */
export const countKeptFiles = (): number => openFiles;

function ownLimit(): number {
  const soft = parseOpenFilesLimit(readText("/proc/self/limits") ?? "")?.soft ?? 1024;
  return soft < 0 ? Number.POSITIVE_INFINITY : soft;
}

/** A small kernel file that is read through one descriptor, at a seventh of the cost of opening it each time. Its owner closes it: an open one keeps a removed cgroup in memory. */
export class OpenFileReader {
  readonly path: string;
  #descriptor = CLOSED;
  #isClosed = false;

  constructor(path: string) {
    this.path = path;
  }

  /** Its text now; undefined when it is missing, may not be read, or its cgroup is gone. */
  read(): string | undefined {
    if (this.#descriptor === CLOSED) return this.#open() ? this.#readOpen() : readText(this.path);
    const text = this.#readOpen();
    // ENODEV: the cgroup was removed; another one may have the same path now.
    return text === undefined && this.#open() ? this.#readOpen() : text;
  }

  close(): void {
    this.#isClosed = true;
    this.#release();
  }

  #release(): void {
    if (this.#descriptor === CLOSED) return;
    closeSync(this.#descriptor);
    this.#descriptor = CLOSED;
    openFiles--;
  }

  #open(): boolean {
    if (this.#isClosed || openFiles >= MAX_KEPT_FILES) return false;
    try {
      this.#descriptor = openSync(this.path, "r");
    } catch {
      return false;
    }
    openFiles++;
    return true;
  }

  #readOpen(): string | undefined {
    try {
      const length = readSync(this.#descriptor, BUFFER, 0, BUFFER.length, 0);
      if (length === BUFFER.length) return readText(this.path);
      return BUFFER.toString("latin1", 0, length);
    } catch {
      this.#release();
      return undefined;
    }
  }
}

/** Interface counters through a descriptor that is kept: opening `net/dev` costs three times as much as reading it. An open one keeps the network alive in the kernel. */
export class NetDevReader {
  readonly #proc: string;
  readonly #networks = new Map<string, { pid: number; file: OpenFileReader }>();

  constructor(procRoot: string) {
    this.#proc = procRoot;
  }

  /** Empty when the process is gone, or was none (pid 0). @param id names the network */
  read(id: string, pid: number): readonly InterfaceCounters[] {
    if (pid <= 0) return [];
    let network = this.#networks.get(id);
    if (network?.pid !== pid) {
      network?.file.close();
      network = { pid, file: new OpenFileReader(`${this.#proc}/${pid}/net/dev`) };
      this.#networks.set(id, network);
    }
    return parseNetDev(network.file.read() ?? "");
  }

  retain(ids: ReadonlySet<string>): void {
    for (const [id, { file }] of this.#networks) {
      if (ids.has(id)) continue;
      file.close();
      this.#networks.delete(id);
    }
  }

  close(): void {
    this.retain(new Set());
  }
}

/** Text of a small kernel file; undefined when it cannot be read. Synchronous on purpose: /proc and /sys never wait for a disk. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Names of the directories in a directory, empty when it cannot be read. */
export function readSubdirectories(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
  } catch {
    return [];
  }
}
