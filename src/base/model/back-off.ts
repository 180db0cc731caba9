/** Delays between attempts that fail, each twice the one before. Units: milliseconds. */
export interface BackOffPolicy {
  first: number;
  longest: number;
}

/** The doubling delay of one thing that is tried again and again. */
export class BackOff {
  readonly #policy: BackOffPolicy;
  readonly #random: () => number;
  #failures = 0;

  /** @param random in [0, 1): jitter, so that many machines do not return all at once; default: none */
  constructor(policy: BackOffPolicy, random: () => number = () => 1) {
    this.#policy = policy;
    this.#random = random;
  }

  /** Counts one more failure. @returns the delay until the next attempt, at most `longest` */
  next(longest = this.#policy.longest): number {
    return backOffMs(this.#failures++, { ...this.#policy, longest }, this.#random());
  }

  reset(): void {
    this.#failures = 0;
  }
}

/**
 * Between the half and the whole of `first * 2^failures`, at most `longest`.
 * @param failures before this one
 * @param random in [0, 1); default: the whole
 */
export function backOffMs(failures: number, { first, longest }: BackOffPolicy, random = 1): number {
  return Math.round(Math.min(first * 2 ** Math.min(failures, 30), longest) * (0.5 + random / 2));
}
