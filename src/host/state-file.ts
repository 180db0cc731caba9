import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Clock } from "../model/clock.ts";

/** A disk that was full may have room again. */
const RETRY_MS = 30_000;

/**
 * A small JSON file that is either the old one or the new one, never half of it: written beside, then renamed.
 * What it holds is a hint; the engine is the truth. So one that cannot be read is as good as none.
 */
export class StateFile<T> {
  readonly #path: string;
  readonly #version: number;
  readonly #durable: boolean;
  readonly #clock: Pick<Clock, "schedule">;
  readonly #onTrouble: (message: string) => void;
  #isFailing = false;
  #cancelRetry: (() => void) | undefined;

  /** @param format `durable`: survives a power cut right after a write, at the price of a sync. */
  constructor(
    path: string,
    format: { version: number; durable: boolean },
    clock: Pick<Clock, "schedule">,
    onTrouble: (message: string) => void,
  ) {
    this.#path = path;
    this.#version = format.version;
    this.#durable = format.durable;
    this.#clock = clock;
    this.#onTrouble = onTrouble;
  }

  /** undefined when there is none, or none that this version understands (with a warning). */
  read(): T | undefined {
    let text: string;
    try {
      text = readFileSync(this.#path, "utf8");
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT") this.#onTrouble(`Cannot read "${this.#path}", going on without: ${message}`);
      return undefined;
    }
    try {
      const { version, data } = JSON.parse(text) as { version: number; data: T };
      if (version === this.#version) return data;
      this.#onTrouble(`"${this.#path}" is of version ${version}, not ${this.#version}: going on without it`);
    } catch (error) {
      this.#onTrouble(`"${this.#path}" is damaged, going on without it: ${(error as Error).message}`);
    }
    return undefined;
  }

  /** Trouble with the disk is told once, not thrown, and tried again: a full disk must not stop a pod. */
  write(data: T): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    try {
      this.#replace(JSON.stringify({ version: this.#version, data }));
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) {
        this.#onTrouble(`Cannot write "${this.#path}", will try again: ${(error as Error).message}`);
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
        // Not writeSync: where there is room for half of it, that writes half of it and calls it done.
        writeFileSync(file, text);
        if (this.#durable) fsyncSync(file);
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
