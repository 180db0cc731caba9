import { createHash } from "node:crypto";
import { SingleFlight } from "../base/concurrency/single-flight.ts";
import type { AccessAttributes, AccessReviewer, User } from "../base/model/access-review.ts";
import type { Clock } from "../base/model/clock.ts";
import type { KubeletOptions } from "../base/model/kubelet-options.ts";

type DelegatedAccessOptions = Pick<
  KubeletOptions,
  | "authenticationTokenWebhookCacheTtlMs"
  | "authorizationWebhookCacheAuthorizedTtlMs"
  | "authorizationWebhookCacheUnauthorizedTtlMs"
>;

/** The oldest answers are dropped beyond this. Source: the size of client-go's caches. */
const MAX_ANSWERS = 4096;

/**
 * Decisions of an API server about clients, kept for a while. A failed question is an error and is not kept. Source:
 * apiserver's webhook token authenticator and webhook authorizer.
 */
export class DelegatedAccess {
  readonly #reviewer: AccessReviewer;
  readonly #options: DelegatedAccessOptions;
  readonly #tokens: ResponseCache<User | undefined>;
  readonly #accesses: ResponseCache<boolean>;

  constructor(reviewer: AccessReviewer, options: DelegatedAccessOptions, clock: Clock) {
    this.#reviewer = reviewer;
    this.#options = options;
    this.#tokens = new ResponseCache(clock);
    this.#accesses = new ResponseCache(clock);
  }

  /** @returns undefined: the token is not valid. @throws Error when the API server cannot be asked */
  authenticate(token: string, signal: AbortSignal): Promise<User | undefined> {
    // The token itself is not kept.
    const key = createHash("sha256").update(token).digest("base64");
    const ask = (stop: AbortSignal) => this.#reviewer.reviewToken(token, stop);
    return this.#tokens.get(key, ask, () => this.#options.authenticationTokenWebhookCacheTtlMs, signal);
  }

  /** @throws Error when the API server cannot be asked */
  authorize(user: User, attributes: AccessAttributes, signal: AbortSignal): Promise<boolean> {
    const options = this.#options;
    const ttlMs = (allowed: boolean) =>
      allowed ? options.authorizationWebhookCacheAuthorizedTtlMs : options.authorizationWebhookCacheUnauthorizedTtlMs;
    const key = JSON.stringify([user.name, user.uid, user.groups, user.extra, attributes.verb, attributes.subresource]);
    const ask = (stop: AbortSignal) => this.#reviewer.reviewAccess(user, attributes, stop);
    return this.#accesses.get(key, ask, ttlMs, signal);
  }
}

/** Answers with the time until which they count. */
class ResponseCache<T> {
  readonly #clock: Clock;
  readonly #flights = new SingleFlight<T>();
  readonly #answers = new Map<string, { value: T; untilMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async get(
    key: string,
    ask: (stop: AbortSignal) => Promise<T>,
    ttlMsOf: (value: T) => number,
    signal: AbortSignal,
  ): Promise<T> {
    const known = this.#answers.get(key);
    if (known && known.untilMs > this.#clock.monotonicMs()) return known.value;
    const value = await this.#flights.do(key, ask, signal);
    this.#answers.delete(key);
    const ttlMs = ttlMsOf(value);
    if (ttlMs > 0) this.#answers.set(key, { value, untilMs: this.#clock.monotonicMs() + ttlMs });
    if (this.#answers.size > MAX_ANSWERS) this.#answers.delete(this.#answers.keys().next().value!);
    return value;
  }
}
