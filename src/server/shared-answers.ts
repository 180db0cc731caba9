import { LaneFullError, WorkLane } from "../concurrency/work-lane.ts";
import type { Clock } from "../model/clock.ts";
import { type Answer, textAnswer } from "./answer.ts";

/** Answers kept or in the making. */
const MAX_ANSWERS = 64;
/** Pieces of work that wait for their turn; above, requests are answered with 503. */
const MAX_WAITING = 256;

/**
 * Makes each answer once for all clients that ask the same question at the same time, and for a while after that. Work on
 * different questions shares one lane.
 */
export class SharedAnswers {
  /** Where computing answers belongs. */
  readonly lane: WorkLane;
  readonly #clock: Clock;
  readonly #answers = new Map<string, Promise<Answer>>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.lane = new WorkLane(clock, MAX_WAITING);
  }

  /**
   * The answer to `question`, which `make` makes unless there is one. Too much work is 503.
   * @param ageMs how long the answer is good for later requests
   */
  async get(question: string, ageMs: number, make: () => Promise<Answer>): Promise<Answer> {
    try {
      return await (this.#answers.get(question) ?? this.#make(question, ageMs, make));
    } catch (error) {
      if (error instanceof LaneFullError) return tooManyRequests();
      throw error;
    }
  }

  #make(question: string, ageMs: number, make: () => Promise<Answer>): Promise<Answer> {
    if (this.#answers.size >= MAX_ANSWERS) throw new LaneFullError("too many questions at a time");
    const answer = make();
    this.#answers.set(question, answer);
    const forget = () => void this.#answers.delete(question);
    answer.then(() => (ageMs > 0 ? void this.#clock.schedule(ageMs, forget) : forget()), forget);
    return answer;
  }
}

export const tooManyRequests = () =>
  textAnswer(503, "503: too many requests at a time, try again later\n", { "Retry-After": "1" });
