import type { PlainAnswer } from "./api-request.ts";

/** Lists that several clients, or one client again and again, ask for are made once. */
const MAX_LISTS = 8;
/** Longer answers are not worth their memory. */
const MAX_BYTES = 1024 * 1024;

interface KnownList {
  revision: number;
  second: number;
  answer: PlainAnswer;
}

/**
 * The last answers to lists. One is given again while the store has not changed and the second is the same: ages are
 * shown in whole seconds. Without it each list of a hundred pods leaves half a megabyte to the garbage collector.
 */
export class ListCache {
  readonly #known = new Map<string, KnownList>();

  /** @param key everything the answer depends on, apart from the revision and the time */
  answer(key: string, revision: number, now: Date, make: () => PlainAnswer): PlainAnswer {
    const second = Math.floor(now.getTime() / 1000);
    const known = this.#known.get(key);
    if (known?.revision === revision && known.second === second) return known.answer;
    const made = make();
    // Encoded once for all who ask.
    const answer = typeof made.body === "string" ? { ...made, body: Buffer.from(made.body) } : made;
    this.#known.delete(key);
    if (answer.body.length <= MAX_BYTES) {
      const [oldest] = this.#known.keys();
      if (oldest !== undefined && this.#known.size >= MAX_LISTS) this.#known.delete(oldest);
      this.#known.set(key, { revision, second, answer });
    }
    return answer;
  }
}
