import type { Clock } from "../../base/model/clock.ts";
import { internalError } from "../api-error.ts";

/** A disk that answered this recently is not probed again. */
const FRESH_MS = 50;

interface DiskCheckDeps {
  directory: string;
  /** Resolves when the disk of the directory answers. @throws TaskTimeoutError when it does not, in time */
  probe: (directory: string) => Promise<void>;
  clock: Clock;
}

/**
 * Probes the disk before objects are written: they are written in the thread that supervises pods, so that a request runs
 * to its end undisturbed, and a disk that hangs would stop that thread.
 */
export class DiskCheck {
  readonly #deps: DiskCheckDeps;
  #answeredMs = Number.NEGATIVE_INFINITY;

  constructor(deps: DiskCheckDeps) {
    this.#deps = deps;
  }

  /** @throws ApiError 500 when the disk does not answer in time */
  async wait(): Promise<void> {
    const { clock, directory, probe } = this.#deps;
    if (clock.monotonicMs() - this.#answeredMs < FRESH_MS) return;
    try {
      await probe(directory);
      this.#answeredMs = clock.monotonicMs();
    } catch (error) {
      // Other failures are reported by the write itself.
      if ((error as Error).name !== "TaskTimeoutError") return;
      throw internalError("the disk of the root directory does not answer: nothing was changed, and pods keep running");
    }
  }
}
