import { closeSync, constants, mkdirSync, openSync } from "node:fs";
import { join } from "node:path";
import { tryFlock } from "./flock.ts";

/** Not below the root directory: it is shared by all processes of the machine. */
const DIRECTORY = "/run/kubelet-ts";

/** A lock for something that the machine has once. The process that has it keeps it until its end. */
export class MachineLock {
  readonly #name: string;
  readonly #directory: string;
  #holding: Promise<boolean> | undefined;
  #isHeld = false;

  constructor(name: string, directory = DIRECTORY) {
    this.#name = name.replaceAll("/", "_");
    this.#directory = directory;
  }

  /** Whether this process has the lock; takes it where it is free. Without permission to lock every process has it. */
  async hold(): Promise<boolean> {
    if (this.#isHeld) return true;
    this.#holding ??= this.#take().finally(() => {
      this.#holding = undefined;
    });
    this.#isHeld = await this.#holding;
    return this.#isHeld;
  }

  async #take(): Promise<boolean> {
    try {
      mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
      const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
      const descriptor = openSync(join(this.#directory, `${this.#name}.lock`), flags, 0o600);
      const isTaken = await tryFlock(descriptor);
      if (!isTaken) closeSync(descriptor);
      return isTaken;
    } catch {
      return true;
    }
  }
}
