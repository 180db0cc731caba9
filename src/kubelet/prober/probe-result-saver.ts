import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { ProbeResultStore, StoredProbeResultsById } from "../../base/model/prober.ts";
import { messageOf } from "../../base/text/error-message.ts";

/**
 * A change is saved at once, before it is visible, so that a kill at any instant loses nothing; in a burst the changes
 * that follow are saved together.
 */
const SAVE_PAUSE_MS = 20;

/** A disk that hangs does not keep results from being visible. */
const MAX_SAVE_WAIT_MS = 200;

/** Writes probe results to their store after each change, one write at a time. */
export class ProbeResultSaver {
  readonly #store: ProbeResultStore;
  readonly #read: () => StoredProbeResultsById;
  readonly #deps: { clock: Clock; logger: Logger };
  #isStopped = false;
  #isDirty = false;
  /** A save under way, followed by the pause. */
  #saving: Promise<void> | undefined;
  #cancelPause: (() => void) | undefined;

  /** @param read returns the results to store */
  constructor(store: ProbeResultStore, read: () => StoredProbeResultsById, deps: { clock: Clock; logger: Logger }) {
    this.#store = store;
    this.#read = read;
    this.#deps = deps;
  }

  /** Begins to save the results. @returns a promise that resolves when they are visible after a kill, or a little later */
  async changed(): Promise<void> {
    this.#begin();
    if (this.#saving) await Promise.race([this.#saving, this.#deps.clock.sleep(MAX_SAVE_WAIT_MS)]);
  }

  #begin(): void {
    this.#isDirty = true;
    if (this.#saving || this.#cancelPause || this.#isStopped) return;
    this.#saving = this.#save().then(() => {
      this.#saving = undefined;
      if (this.#isStopped) return;
      this.#cancelPause = this.#deps.clock.schedule(SAVE_PAUSE_MS, () => {
        this.#cancelPause = undefined;
        if (this.#isDirty) this.#begin();
      });
    });
  }

  /** Writes what is not stored yet, then nothing more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelPause?.();
    this.#cancelPause = undefined;
    await this.#saving;
    if (this.#isDirty) await this.#save();
  }

  async #save(): Promise<void> {
    // Changes of one turn are one save.
    await Promise.resolve();
    this.#isDirty = false;
    try {
      await this.#store.save(this.#read());
    } catch (error) {
      this.#deps.logger.warn(`Cannot save probe results: ${messageOf(error)}`);
    }
  }
}
