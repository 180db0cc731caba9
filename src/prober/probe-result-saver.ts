import type { Clock } from "../model/clock.ts";
import type { Logger } from "../model/logger.ts";
import type { ProbeResultStore, StoredProbeResultsById } from "../model/prober.ts";
import { messageOf } from "../text/error-message.ts";

/**
 * A change is saved at once, before it is visible, so that a kill at any instant loses nothing; in a burst the changes
 * that follow are saved together.
 */
const SAVE_PAUSE_MS = 20;

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

  changed(): void {
    this.#isDirty = true;
    if (this.#saving || this.#cancelPause || this.#isStopped) return;
    this.#saving = this.#save().then(() => {
      this.#saving = undefined;
      if (this.#isStopped) return;
      this.#cancelPause = this.#deps.clock.schedule(SAVE_PAUSE_MS, () => {
        this.#cancelPause = undefined;
        if (this.#isDirty) this.changed();
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
