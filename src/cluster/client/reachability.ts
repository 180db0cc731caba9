import { unlessAborted } from "../../base/concurrency/unless-aborted.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Outage } from "../../base/model/cluster-connection.ts";

/**
 * Delays that end early are cut to a random part of this time, so that the nodes of a cluster do not all return at once.
 * Unit: milliseconds.
 */
const SPREAD_MS = 1_000;
/** Shortest time between two early ends, for a server that is unstable. Unit: milliseconds. */
const MIN_DISTANCE_MS = 10_000;

/**
 * Whether the API server answers. Attempts that failed are repeated after growing delays; when it answers again after it
 * was away, those delays end, so that a long outage does not delay the return.
 */
export class Reachability {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #waits = new Set<() => void>();
  /** Why and since when there is no response; undefined while there is. */
  outage: Outage | undefined;
  #returnedAtMs = Number.NEGATIVE_INFINITY;

  /** @param random in [0, 1) */
  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  /** The server was not reached, or the connection broke. */
  noteFailure(reason: string): void {
    this.outage = { reason, since: this.outage?.since ?? this.#clock.now() };
  }

  /** The server has answered, if only with a refusal. */
  noteResponse(): void {
    if (!this.outage) return;
    this.outage = undefined;
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#returnedAtMs < MIN_DISTANCE_MS) return;
    this.#returnedAtMs = nowMs;
    for (const wake of [...this.#waits]) wake();
  }

  /**
   * Runs `callback` after `ms`, or soon after the server has returned.
   * @param callback gets whether the wait ended early
   * @returns cancels it
   */
  schedule(ms: number, callback: (isEarly: boolean) => void): () => void {
    const clock = this.#clock;
    const dueMs = clock.monotonicMs() + ms;
    const end = (isEarly: boolean) => {
      this.#waits.delete(wake);
      callback(isEarly);
    };
    let cancelTimer = clock.schedule(ms, () => end(false));
    const wake = () => {
      this.#waits.delete(wake);
      const spreadMs = this.#random() * SPREAD_MS;
      if (dueMs - clock.monotonicMs() <= spreadMs) return;
      cancelTimer();
      cancelTimer = clock.schedule(spreadMs, () => end(true));
    };
    this.#waits.add(wake);
    return () => {
      this.#waits.delete(wake);
      cancelTimer();
    };
  }

  /** Waits as {@link schedule}. @returns whether the wait ended early; rejects with the reason of the signal */
  async pause(ms: number, signal: AbortSignal): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    return await unlessAborted(promise, signal).finally(this.schedule(ms, resolve));
  }
}
