/** Runs a callback once after `ms` and hands back its cancellation: `Clock.schedule`. */
export type Schedule = (ms: number, callback: () => void) => () => void;

/** The real timer, for callers without a `Clock`. */
export const realSchedule: Schedule = (ms, callback) => {
  const timer = setTimeout(callback, ms);
  return () => clearTimeout(timer);
};

/** A signal that aborts with the caller's, or at the deadline; `end` takes all hooks back, so nothing piles up. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #cancel: () => void;
  readonly #outer: AbortSignal | undefined;
  expired = false;

  constructor(timeoutMs: number, outer: AbortSignal | undefined, schedule: Schedule) {
    this.#outer = outer;
    this.#cancel =
      timeoutMs > 0
        ? schedule(timeoutMs, () => {
            this.expired = true;
            this.#controller.abort(new DOMException("the deadline passed", "TimeoutError"));
          })
        : () => {};
    if (outer?.aborted) this.#forward();
    else outer?.addEventListener("abort", this.#forward, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  readonly #forward = () => this.#controller.abort(this.#outer?.reason);

  end(): void {
    this.#cancel();
    this.#outer?.removeEventListener("abort", this.#forward);
  }
}
