import type { Clock } from "../model/clock.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { TaskTimeoutError } from "./worker-pool.ts";

/**
 * One asynchronous file access at a time, with a deadline. The runtime has as few as two threads for the calls of
 * node:fs/promises, and a call to a file system that does not answer keeps its thread: with one slot, one thread at most
 * is lost.
 */
export class FileSlot {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #limit = new ConcurrencyLimit(1);

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  /**
   * Runs `work` when the slot is free. Work that takes longer than its time keeps the slot until it ends.
   * @param timeoutMs from now on, the wait for the slot included
   * @throws TaskTimeoutError; what `work` throws
   */
  async run<T>(work: () => Promise<T>, timeoutMs: number): Promise<T> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const giveUp = new AbortController();
    const cancel = this.#clock.schedule(timeoutMs, () => {
      const error = new TaskTimeoutError(`no answer within ${timeoutMs / 1000} s`);
      giveUp.abort(error);
      reject(error);
    });
    const done = this.#limit.run(giveUp.signal, work);
    // A failure after the deadline is dropped.
    done.catch(() => {});
    try {
      return await Promise.race([done, late]);
    } finally {
      cancel();
    }
  }
}
