import { SingleFlight } from "../base/concurrency/single-flight.ts";
import { LaneFullError, WorkLane } from "../base/concurrency/work-lane.ts";
import type { Clock } from "../base/model/clock.ts";
import { type HttpResponse, tooManyRequests } from "./http-response.ts";

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
