import type { Clock } from "../model/clock.ts";

/** Runs work and reports how long it took, also when it fails. Unit of the duration: milliseconds. */
export async function timed<T>(
  clock: Pick<Clock, "monotonicMs">,
  work: () => Promise<T>,
  report: ((durationMs: number, failed: boolean) => void) | undefined,
): Promise<T> {
  const startedAtMs = clock.monotonicMs();
  let failed = true;
  try {
    const result = await work();
    failed = false;
    return result;
  } finally {
    report?.(clock.monotonicMs() - startedAtMs, failed);
  }
}
