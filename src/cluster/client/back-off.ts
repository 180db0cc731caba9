/** Delays between attempts that fail. Units: milliseconds. */
interface BackOffPolicy {
  first: number;
  longest: number;
}

/** A doubling delay with jitter, so that the nodes of a cluster do not return all at once. */
export class BackOff {
  readonly #policy: BackOffPolicy;
  readonly #random: () => number;
  #failures = 0;

  /** @param random in [0, 1) */
  constructor(policy: BackOffPolicy, random: () => number = Math.random) {
    this.#policy = policy;
    this.#random = random;
  }

  get failures(): number {
    return this.#failures;
  }

  /** Counts one more failure. @returns the delay until the next attempt, at most `longest` */
  next(longest = this.#policy.longest): number {
    const delay = computeBackOff(this.#failures, { ...this.#policy, longest }, this.#random());
    this.#failures++;
    return delay;
  }

  reset(): void {
    this.#failures = 0;
  }
}

/**
 * Between the half and the whole of `first * 2^failures`, at most `longest`.
 * @param failures before this one
 * @param random in [0, 1)
 */
export function computeBackOff(failures: number, { first, longest }: BackOffPolicy, random: number): number {
  const full = Math.min(first * 2 ** Math.min(failures, 30), longest);
  return Math.round(full * (0.5 + random / 2));
}
