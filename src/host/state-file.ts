import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { readTextIfExists } from "../files/bounded-read.ts";
import type { Clock } from "../model/clock.ts";
import type { Persisted } from "../model/persisted.ts";

/** Pause before a failed write is repeated: a full disk may have room again. */
const RETRY_MS = 30_000;

const MAX_STATE_BYTES = 64 * 1024 * 1024;

export interface StateFormat<T> {
  version: number;
  /** Survives a power cut right after a write, at the price of a sync. */
  durable: boolean;
  /** Checks the content of a file of this version. @throws Error when it has another shape */
  parse: (data: unknown) => T;
}

/**
 * A small JSON file, replaced atomically. What it holds is a hint (the engine is the truth), so a file that cannot be
 * used is set aside as `<path>.invalid` with a warning.
 */
export class StateFile<T> implements Persisted<T> {
  readonly #path: string;
  readonly #format: StateFormat<T>;
  readonly #clock: Pick<Clock, "schedule">;
  readonly #warn: (message: string) => void;
  #isFailing = false;
  #cancelRetry: (() => void) | undefined;

  constructor(path: string, format: StateFormat<T>, clock: Pick<Clock, "schedule">, warn: (message: string) => void) {
    this.#path = path;
    this.#format = format;
    this.#clock = clock;
    this.#warn = warn;
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

  write(data: T): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    try {
      this.#replace(JSON.stringify({ version: this.#format.version, data }));
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) {
        this.#warn(`Cannot write "${this.#path}", will retry: ${(error as Error).message}`);
      }
      this.#isFailing = true;
      this.#cancelRetry = this.#clock.schedule(RETRY_MS, () => this.write(data));
    }
  }

  #replace(text: string): void {
    const temporary = `${this.#path}.tmp`;
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o750 });
    try {
      const file = openSync(temporary, "w", 0o600);
      try {
        // Not writeSync: on a nearly full disk it writes a part and reports success.
        writeFileSync(file, text);
        if (this.#format.durable) fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(temporary, this.#path);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    }
  }
}
