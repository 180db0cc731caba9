import { closeSync, fstatSync, mkdirSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";

const MAX_BYTES = 10 * 1024 * 1024;
/** `kubelet-ts.log.1` is the newest of the old ones. */
const OLD_FILES = 4;

/** `<dir>/kubelet-ts.log`, rotated by size. A failing disk is reported once and never stops the program. */
export class LogFile {
  readonly #path: string;
  readonly #reportError: (message: string) => void;
  readonly #maxBytes: number;
  #fd: number | undefined;
  #bytes = 0;
  #failed = false;

  constructor(dir: string, reportError: (message: string) => void, maxBytes = MAX_BYTES) {
    this.#path = join(dir, "kubelet-ts.log");
    this.#reportError = reportError;
    this.#maxBytes = maxBytes;
    this.#try(() => {
      mkdirSync(dir, { recursive: true, mode: 0o755 });
      this.#open();
    });
  }

  /** @returns whether it was written */
  write(line: string): boolean {
    return this.#try(() => {
      if (this.#fd === undefined) this.#open();
      if (this.#bytes >= this.#maxBytes) this.#rotate();
      this.#bytes += writeSync(this.#fd!, line);
      this.#failed = false;
    });
  }

  #open(): void {
    this.#fd = openSync(this.#path, "a", 0o640);
    this.#bytes = fstatSync(this.#fd).size;
  }

  #rotate(): void {
    closeSync(this.#fd!);
    this.#fd = undefined;
    for (let n = OLD_FILES; n > 1; n--) {
      try {
        renameSync(`${this.#path}.${n - 1}`, `${this.#path}.${n}`);
      } catch {
        // Not that many yet.
      }
    }
    renameSync(this.#path, `${this.#path}.1`);
    this.#open();
  }

  #try(action: () => void): boolean {
    try {
      action();
      return true;
    } catch (error) {
      if (!this.#failed) this.#reportError(`Cannot write the log file "${this.#path}": ${(error as Error).message}`);
      this.#failed = true;
      return false;
    }
  }
}
