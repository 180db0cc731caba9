import type { Clock } from "../model/clock.ts";

/**
 * Who asks less often than this is not waited for. Prometheus asks once a minute unless told otherwise, and has forgotten
 * a series after five.
 */
const LONGEST_PERIOD_MS = 300_000;
const SHORTEST_PERIOD_MS = 1_000;
/** Two periods are the same when they differ by less than this share, and whatever they differ by less than this time. */
const TOLERANCE = 0.1;
const TOLERANCE_MS = 100;
/** How long before the next question an answer is made; for short periods a quarter of them. */
const LEAD_MS = 500;

/**
 * How long after a question the answer to the next one should be made. undefined while questions do not come at regular
 * intervals: then each is answered when it comes.
 * @param periodMs since the question before
 * @param periodBeforeMs from the one before that to the one before; undefined when there was none
 */
export function computeForesightMs(periodMs: number, periodBeforeMs: number | undefined): number | undefined {
  if (periodBeforeMs === undefined || periodMs < SHORTEST_PERIOD_MS || periodMs > LONGEST_PERIOD_MS) return undefined;
  if (Math.abs(periodMs - periodBeforeMs) > Math.max(TOLERANCE_MS, TOLERANCE * periodMs)) return undefined;
  return periodMs - Math.min(LEAD_MS, periodMs / 4);
}

/**
 * Makes the answer to a question that comes at regular intervals a moment before it comes, so that whoever scrapes does
 * not wait for a hundred pods to be measured. When the questions end, one answer is made in vain, and no more.
 */
export class Foresight {
  readonly #clock: Clock;
  readonly #prepare: () => void;
  #askedMs: number | undefined;
  #periodMs: number | undefined;
  #cancel: (() => void) | undefined;

  /** @param prepare makes the answer and keeps it where the question finds it */
  constructor(clock: Clock, prepare: () => void) {
    this.#clock = clock;
    this.#prepare = prepare;
  }

  /** To be called at each question. */
  asked(): void {
    const nowMs = this.#clock.monotonicMs();
    const periodMs = this.#askedMs === undefined ? undefined : nowMs - this.#askedMs;
    const waitMs = periodMs === undefined ? undefined : computeForesightMs(periodMs, this.#periodMs);
    this.#askedMs = nowMs;
    this.#periodMs = periodMs;
    this.cancel();
    if (waitMs === undefined) return;
    this.#cancel = this.#clock.schedule(waitMs, () => {
      this.#cancel = undefined;
      this.#prepare();
    });
  }

  /** Makes nothing until asked again. */
  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
