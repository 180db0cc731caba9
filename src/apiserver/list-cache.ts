import type { Clock } from "../base/model/clock.ts";
import type { PlainResponse } from "./api-request.ts";

/** Lists that several clients, or one client again and again, ask for are made once. */
const MAX_LISTS = 4;
/** Ages are shown in whole seconds. */
const KEPT_MS = 1_000;
/** Longer answers are not worth their memory. */
const MAX_BYTES = 1024 * 1024;

interface KnownList {
  revision: number;
  /** Whole seconds since 1970. */
  second: number;
  answer: PlainResponse;
}

/**
 * The answers to lists of this second. One is given again while the store has not changed. Without it each list of a
 * hundred pods leaves half a megabyte to the garbage collector.
 */
export class ListCache {
  readonly #clock: Clock;
  readonly #known = new Map<string, KnownList>();
  #isTimed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param key everything the answer depends on, apart from the revision and the time */
  answer(key: string, revision: number, make: (now: Date) => PlainResponse): PlainResponse {
    const now = this.#clock.now();
    const second = Math.floor(now.getTime() / 1000);
    const known = this.#known.get(key);
    if (known?.revision === revision && known.second === second) return known.answer;
    const made = make(now);
    // Encoded once for all clients.
    const answer = typeof made.body === "string" ? { ...made, body: Buffer.from(made.body) } : made;
    this.#known.delete(key);
    if (answer.body.length <= MAX_BYTES) {
      const [oldest] = this.#known.keys();
      if (oldest !== undefined && this.#known.size >= MAX_LISTS) this.#known.delete(oldest);
      this.#known.set(key, { revision, second, answer });
      this.#forgetSoon();
    }
    return answer;
  }

  #forgetSoon(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    this.#clock.schedule(KEPT_MS, () => {
      this.#isTimed = false;
      this.#known.clear();
    });
  }
}
