import type { Clock } from "../model/clock.ts";
import type { FileSlot } from "../model/file-slot.ts";
import { TaskTimeoutError } from "./worker-pool.ts";

/** Work that is quick takes less; behind longer work the others go to other threads. */
const WAIT_MS = 100;
/** Longest wait behind a queue of quick work. */
const QUEUE_MS = 1_000;

/**
 * The one place for asynchronous file access. The runtime has as few as two threads for the calls of node:fs/promises, and
 * a call to a file system that does not answer keeps its thread: with one place, one thread at most is lost.
 */
export class PoolSlot implements FileSlot {
  readonly #clock: Pick<Clock, "schedule">;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** Work that has ended. */
  #ended = 0;

  constructor(clock: Pick<Clock, "schedule">) {
    this.#clock = clock;
  }

  /**
   * Runs `work` when the place is free.
   * @param timeoutMs work that takes longer keeps the place until it ends
   * @returns undefined, without running it, when the place was not free in time
   * @throws TaskTimeoutError; what `work` throws
   */
  async attempt<T>(work: () => Promise<T>, timeoutMs: number): Promise<{ value: T } | undefined> {
    const before = this.#waiting++ === 0 ? undefined : this.#last;
    let isGivenUp = false;
    const { promise: turn, resolve: begin } = Promise.withResolvers<boolean>();
    const done = (before ?? Promise.resolve()).then(async () => {
      if (isGivenUp) return undefined;
      begin(true);
      return { value: await work() };
    });
    this.#last = done.then(
      () => this.#leave(),
      () => this.#leave(),
    );
    // The caller receives a failure below; one after the deadline is dropped.
    done.catch(() => {});
    let cancelWait = () => {};
    const limitWait = (leftMs: number): void => {
      const endedBefore = this.#ended;
      cancelWait = this.#clock.schedule(WAIT_MS, () => {
        if (this.#ended > endedBefore && leftMs > WAIT_MS) return limitWait(leftMs - WAIT_MS);
        isGivenUp = true;
        begin(false);
      });
    };
    limitWait(QUEUE_MS);
    const isMine = await turn;
    cancelWait();
    if (!isMine) return undefined;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = this.#clock.schedule(timeoutMs, () =>
      reject(new TaskTimeoutError(`no answer within ${timeoutMs / 1000} s`)),
    );
    try {
      return await Promise.race([done, late]);
    } finally {
      cancel();
    }
  }

  /** Resolves when nothing is under way; never while work hangs, so give it a deadline. */
  async settled(): Promise<void> {
    while (this.#waiting > 0) await this.#last;
  }

  #leave(): void {
    this.#ended++;
    this.#waiting--;
  }
}
