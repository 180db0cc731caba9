/** First wait after a crash, the longest wait, and the good run after which a container starts afresh. */
const INITIAL_BACK_OFF_MS = 10_000;
export const MAX_BACK_OFF_MS = 300_000;
const BACK_OFF_RESET_MS = 600_000;

/** One container's crash-loop back-off. Times are monotonic milliseconds. */
export interface BackOffEntry {
  /** Delay after the next exit. */
  delayMs: number;
  /** When the delay was last raised (the start that used it). */
  updatedAtMs: number;
}

const expired = (entry: BackOffEntry, exitedAtMs: number) => exitedAtMs - entry.updatedAtMs > BACK_OFF_RESET_MS;

/** Time that a container that exited at `exitedAtMs` still has to wait; 0 = none. Source: `IsInBackOffSince`. */
export function backOffRemainingMs(entry: BackOffEntry | undefined, exitedAtMs: number, nowMs: number): number {
  if (!entry || expired(entry, exitedAtMs)) return 0;
  return Math.max(0, exitedAtMs + entry.delayMs - nowMs);
}

/** The entry after one more start: 10 s at first, then doubled up to `maxMs`; afresh after ten minutes of good run. */
export function nextBackOff(
  entry: BackOffEntry | undefined,
  exitedAtMs: number,
  nowMs: number,
  maxMs: number,
): BackOffEntry {
  const initial = Math.min(INITIAL_BACK_OFF_MS, maxMs);
  if (!entry || expired(entry, exitedAtMs)) return { delayMs: initial, updatedAtMs: nowMs };
  return { delayMs: Math.min(entry.delayMs * 2, maxMs), updatedAtMs: nowMs };
}
