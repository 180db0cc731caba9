import type { ProcessSample } from "../../base/model/process-sample.ts";

export interface TimedSample extends ProcessSample {
  /** Monotonic milliseconds. */
  atMs: number;
}

/** Time between two samples. Programs that fail at once do not sleep this long before. */
export const SAMPLE_PERIOD_MS = 30;
/** A program that is never idle counts as up after this time. */
const BUSY_SETTLE_MS = 250;
/** CPU time that it must have used by then: on a busy machine it may not have been scheduled yet. */
const BUSY_CPU_MS = 100;
/** The engine has the last word in the end. */
const SETTLE_LIMIT_MS = 10_000;

/**
 * Whether a container that the engine reports as running has come up, or may still fail at once. A program that fails at
 * once works until it ends: `false`, a shell with `exit 1` and a server with a bad configuration were gone 0 to 30
 * ms after their start was answered, and no shorter than 80 and up to 1100 ms (load 12 on 2 cores) before the engine
 * did. So the processes themselves are sampled: a process that has not run at all from one sample to the next waits for
 * something, as servers do; an exit will be reported by the engine.
 * @param samples of the same run of the container, oldest first
 */
export function hasSettled(samples: readonly TimedSample[]): boolean {
  const [first, before, now] = [samples[0], samples.at(-2), samples.at(-1)];
  if (!first || !before || !now) return false;
  const seenForMs = now.atMs - first.atMs;
  if (seenForMs >= SETTLE_LIMIT_MS) return true;
  if (now.state === "gone" || now.state === "starting") return false;
  const isAsleep = now.state === "asleep";
  if (isAsleep && before.state === "asleep" && now.switches === before.switches) return true;
  return seenForMs >= BUSY_SETTLE_MS && (isAsleep || now.cpuMs >= BUSY_CPU_MS);
}
