import type { Clock } from "../model/clock.ts";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { TaskTimeoutError } from "./worker-pool.ts";

/**
 * One asynchronous file access at a time: the runtime may have two threads for them, and a call to a file system that
 * does not respond keeps its thread.
 */
export class FileSlot {
  readonly #clock: Pick<Clock, "schedule">;
  readonly #limit = new ConcurrencyLimit(1);

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  /** Work that takes longer keeps the slot until it ends. @param timeoutMs from now on @throws TaskTimeoutError */
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
