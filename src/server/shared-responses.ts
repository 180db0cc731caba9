import { SingleFlight } from "../base/concurrency/single-flight.ts";
import { nextTurn } from "../base/concurrency/turn-pace.ts";
import type { Clock } from "../base/model/clock.ts";
import { type HttpResponse, tooManyRequests } from "./request-handler.ts";

/** How long a slice of work keeps the event loop. */
const SLICE_MS = 10;
/** Work that needs no pause after a quiet time. */
const MAX_CREDIT_MS = 200;
/** Share of the time that is left for such work in the long run. */
const SHARE = 0.5;

/** More work waits than the lane accepts. */
export class LaneFullError extends Error {}

/** Runs pieces of computing work, one in each turn of the event loop; in the long run they get half of the time. */
export class WorkLane {
  readonly #clock: Clock;
  readonly #maxWaiting: number;
  #waiting = 0;
  #last: Promise<unknown> = Promise.resolve();
  #creditMs = MAX_CREDIT_MS;
  #creditedMs: number;

  /** @param maxWaiting pieces that may wait for their turn */
  constructor(clock: Clock, maxWaiting: number) {
    this.#clock = clock;
    this.#maxWaiting = maxWaiting;
    this.#creditedMs = clock.monotonicMs();
  }

  /** Runs one short piece of work. @throws LaneFullError; what `piece` throws */
  run<T>(piece: () => T): Promise<T> {
    if (this.#waiting >= this.#maxWaiting) return Promise.reject(new LaneFullError("too much work is waiting"));
    this.#waiting++;
    const done = this.#last.then(() => this.#take(piece));
    this.#last = done.catch(() => {});
    return done.finally(() => {
      this.#waiting--;
    });
  }

  /** Every item of `work`, which is continued in slices of 10 ms. @throws LaneFullError; the reason of `stop` */
  async collect<T>(work: Iterable<T>, stop: AbortSignal): Promise<T[]> {
    const iterator = work[Symbol.iterator]();
    const items: T[] = [];
    const slice = (): boolean => {
      stop.throwIfAborted();
      const endMs = performance.now() + SLICE_MS;
      do {
        const next = iterator.next();
        if (next.done) return false;
        items.push(next.value);
      } while (performance.now() < endMs);
      return true;
    };
    while (await this.run(slice));
    return items;
  }

  async #take<T>(piece: () => T): Promise<T> {
    await nextTurn();
    const startMs = this.#clock.monotonicMs();
    this.#creditMs = Math.min(MAX_CREDIT_MS, this.#creditMs + (startMs - this.#creditedMs) * SHARE);
    this.#creditedMs = startMs;
    if (this.#creditMs < 0) await this.#clock.sleep(-this.#creditMs / SHARE);
    const beganMs = this.#clock.monotonicMs();
    try {
      return piece();
    } finally {
      this.#creditMs -= this.#clock.monotonicMs() - beganMs;
    }
  }
}

/** Responses that are kept or being made. */
const MAX_RESPONSES = 64;
/** Pieces of work that wait for their turn; above, requests are answered with 503. */
const MAX_WAITING = 256;

/**
 * Makes each response once for all clients that ask the same question at the same time, and for a while after that. Work on
 * different questions shares one lane. It ends when no client waits for it any more.
 */
export class SharedResponses {
  readonly lane: WorkLane;
  readonly #clock: Clock;
  readonly #inProgress = new SingleFlight<HttpResponse>();
  readonly #kept = new Map<string, HttpResponse>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.lane = new WorkLane(clock, MAX_WAITING);
  }

  /** The response to `question`, good for `ageMs`; too much work is 503. @throws what `make` throws; the reason of `signal` */
  async get(
    question: string,
    ageMs: number,
    signal: AbortSignal,
    make: (stop: AbortSignal) => Promise<HttpResponse>,
  ): Promise<HttpResponse> {
    const kept = this.#kept.get(question);
    if (kept) return kept;
    if (this.#inProgress.size >= MAX_RESPONSES) return tooManyRequests();
    try {
      return await this.#inProgress.do(question, (stop) => this.#make(question, ageMs, make, stop), signal);
    } catch (error) {
      if (error instanceof LaneFullError) return tooManyRequests();
      throw error;
    }
  }

  async #make(
    question: string,
    ageMs: number,
    make: (stop: AbortSignal) => Promise<HttpResponse>,
    stop: AbortSignal,
  ): Promise<HttpResponse> {
    const response = await make(stop);
    if (ageMs > 0 && response.status === 200 && this.#kept.size < MAX_RESPONSES) {
      this.#kept.set(question, response);
      this.#clock.schedule(ageMs, () => void this.#kept.delete(question));
    }
    return response;
  }
}
