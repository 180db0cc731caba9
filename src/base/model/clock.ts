/**
 * The only source of the time and of delays; a parameter, so that tests set the time.
 */
export interface Clock {
  /** Wall clock; may jump (edge devices boot in 1970). Only for time stamps in logs and the API. */
  now(): Date;
  /** Milliseconds since an arbitrary start; never jumps, never goes back. Every duration is measured with it. */
  monotonicMs(): number;
  /** Resolves after `ms`; rejects with the signal's reason when `signal` aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Runs `callback` once after `ms` (clamped to what a timer can hold); the returned function cancels it. */
  schedule(ms: number, callback: () => void): () => void;
}
