import { renameSync } from "node:fs";
import { type ReplaceFile, readTextIfExists, replaceFile } from "../files/whole-file.ts";
import type { Clock } from "../model/clock.ts";
import type { Persisted } from "../model/persisted.ts";

/** Pause before a failed write is repeated: a full disk may have room again. */
const RETRY_MS = 30_000;

const MAX_STATE_BYTES = 64 * 1024 * 1024;

interface StateFormat<T> {
  version: number;
  /** Survives a power failure right after a write; costs a sync. */
  durable: boolean;
  /** Checks the content of a file of this version. @throws Error when it has another shape */
  parse: (data: unknown) => T;
}

interface Write<T> {
  data: T;
  onWritten: () => void;
}

/**
 * A small JSON file, replaced atomically. It holds a hint (the engine is the truth): one that is damaged is set aside.
 */
export class StateFile<T> implements Persisted<T> {
  readonly #path: string;
  readonly #format: StateFormat<T>;
  readonly #clock: Pick<Clock, "schedule">;
  readonly #warn: (message: string) => void;
  readonly #replace: ReplaceFile;
  #isFailing = false;
  #cancelRetry: (() => void) | undefined;
  /** The write under way. */
  #writing: Promise<void> | undefined;
  /** To be written when the write under way has ended. */
  #next: Write<T> | undefined;

  /** @param replace default: at once, in this thread */
  constructor(
    path: string,
    format: StateFormat<T>,
    clock: Pick<Clock, "schedule">,
    warn: (message: string) => void,
    replace: ReplaceFile = replaceFile,
  ) {
    this.#path = path;
    this.#format = format;
    this.#clock = clock;
    this.#warn = warn;
    this.#replace = replace;
  }

  read(): T | undefined {
    let text: string | undefined;
    try {
      text = readTextIfExists(this.#path, MAX_STATE_BYTES);
    } catch (error) {
      this.#warn(`Cannot read "${this.#path}", continuing without it: ${(error as Error).message}`);
    }
    if (text === undefined) return undefined;
    try {
      const { version, data } = JSON.parse(text) as { version: unknown; data: unknown };
      if (version === this.#format.version) return this.#format.parse(data);
      this.#setAside(`is of version ${version}, not ${this.#format.version}`);
    } catch (error) {
      this.#setAside(`is damaged: ${(error as Error).message}`);
    }
    return undefined;
  }

  #setAside(problem: string): void {
    const aside = `${this.#path}.invalid`;
    let where = `set aside as "${aside}"`;
    try {
      renameSync(this.#path, aside);
    } catch (error) {
      where = `left there: ${(error as Error).message}`;
    }
    this.#warn(`"${this.#path}" ${problem}; continuing without it (${where})`);
  }

  /**
   * A value that comes while another is being written replaces those that wait.
   * @returns when no write is under way, whether the last one succeeded
   */
  write(data: T, onWritten = () => {}): Promise<boolean> {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    if (this.#writing) this.#next = { data, onWritten };
    else this.#begin({ data, onWritten });
    return this.#settled();
  }

  async #settled(): Promise<boolean> {
    while (this.#writing) await this.#writing;
    return !this.#isFailing;
  }

  #begin(write: Write<T>): void {
    try {
      const text = JSON.stringify({ version: this.#format.version, data: write.data });
      const replaced = this.#replace(this.#path, text, { durable: this.#format.durable });
      if (!(replaced instanceof Promise)) return this.#end(undefined, write);
      this.#writing = replaced.then(
        () => this.#end(undefined, write),
        (error: Error) => this.#end(error, write),
      );
    } catch (error) {
      this.#end(error as Error, write);
    }
  }

  #end(error: Error | undefined, write: Write<T>): void {
    this.#writing = undefined;
    if (error && !this.#isFailing) this.#warn(`Cannot write "${this.#path}", will retry: ${error.message}`);
    this.#isFailing = error !== undefined;
    const next = this.#next;
    this.#next = undefined;
    const { data, onWritten } = next ?? write;
    if (error) this.#cancelRetry = this.#clock.schedule(RETRY_MS, () => this.write(data, onWritten));
    else if (next) this.#begin(next);
    else onWritten();
  }
}
