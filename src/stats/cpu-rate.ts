/** One reading of a CPU counter. */
export interface CpuReading {
  /** Monotonic. */
  atMs: number;
  usageNanoseconds: number;
}

/** Readings older than this say nothing about now. */
export const OLDEST_BASE_MS = 90_000;
/** A rate is taken over at least this long when there are readings enough. */
const WINDOW_MS = 10_000;
/** Below this a rate is noise: the kernel accounts in steps of milliseconds, and throttles in periods of 100 ms. */
const SHORTEST_WINDOW_MS = 100;

/**
 * The readings worth keeping when `latest` comes in: the youngest one that is at least 10 s older, those after it, and
 * `latest`. A counter that went back (the cgroup was created again) starts over.
 */
export function appendReading(readings: readonly CpuReading[], latest: CpuReading): CpuReading[] {
  const previous = readings.at(-1);
  if (previous && latest.usageNanoseconds < previous.usageNanoseconds) return [latest];
  const kept = readings.filter(({ atMs }) => latest.atMs - atMs <= OLDEST_BASE_MS);
  while (kept.length > 1 && latest.atMs - kept[1]!.atMs >= WINDOW_MS) kept.shift();
  return [...kept, latest];
}

/** Average CPU use over the kept readings, in nanoseconds per second; undefined until two are far enough apart. */
export function computeUsageNanoCores(readings: readonly CpuReading[]): number | undefined {
  const [first, last] = [readings[0], readings.at(-1)];
  if (!first || !last || last.atMs - first.atMs < SHORTEST_WINDOW_MS) return undefined;
  return Math.round(((last.usageNanoseconds - first.usageNanoseconds) / (last.atMs - first.atMs)) * 1000);
}

/**
 * Tasks that ran or waited for a disk, smoothed over 10 s. Source: cAdvisor's `container_cpu_load_average_10s`, in
 * thousandths.
 */
export function decayLoad(previous: number | undefined, elapsedMs: number, tasks: number): number {
  if (previous === undefined) return tasks;
  const decay = Math.exp(-elapsedMs / 10_000);
  return previous * decay + tasks * (1 - decay);
}
