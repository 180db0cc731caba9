import type { PageState } from "./store.ts";

const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 5000;
/** The server writes each ten seconds: a connection that was silent for longer when the reader comes back is replaced. */
const LATE_MS = 12_500;
/** A connection that was silent for this time is dead. */
export const SILENCE_MS = 25_000;
/** A first attempt that was not answered by then is repeated: what was sent while a network came up may be lost. */
const FIRST_ANSWER_MS = 5000;
/** Time between two checks of the clock while the tab is shown. */
export const TICK_MS = 1000;
/** A timer that is later than this was not only late: the machine slept, or its clock was set. */
const SLEEP_MS = 5000;

/** Why a connection may have died without an error. */
export type Wake = "shown" | "slept";

/** Whether a connection is replaced without waiting for its end. Pure. @param silentMs time since the server was last heard */
export const mustReplace = (wake: Wake, connection: PageState["connection"], silentMs: number): boolean =>
  wake === "slept" || connection === "lost" || (connection === "live" && silentMs > LATE_MS);

/** Pure. @param failures attempts that failed in a row */
export const retryAfterMs = (failures: number): number => Math.min(FIRST_RETRY_MS * 2 ** failures, LONGEST_RETRY_MS);

/** How long an attempt may be without a response: longer with each failure, for a server that is slow. Pure. */
export const answerWithinMs = (failures: number): number => Math.min(FIRST_ANSWER_MS * 2 ** failures, SILENCE_MS);

/** Whether the machine slept, or its clock was set, between two ticks. Pure. */
export const hasSlept = (lastMs: number, nowMs: number): boolean =>
  nowMs - lastMs > TICK_MS + SLEEP_MS || nowMs < lastMs - SLEEP_MS;

/** Ends the present connection, or the pause before the next. */
export class Reconnect {
  #end = () => {};

  /** @returns aborted by the next call of `now`, and with the signal */
  begin(signal: AbortSignal): AbortSignal {
    const controller = new AbortController();
    this.#end = () => controller.abort();
    return AbortSignal.any([signal, controller.signal]);
  }

  now(): void {
    this.#end();
  }
}

/** Resolves early when the signal aborts. */
export const sleep = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const end = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
    if (end.aborted) resolve();
    else end.addEventListener("abort", () => resolve());
  });
