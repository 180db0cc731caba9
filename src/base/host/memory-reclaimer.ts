import { readBoundedText, SYSTEM_FILE_BYTES } from "../files/whole-file.ts";
import type { Clock } from "../model/clock.ts";

/** The facts at one check of memory use. Bytes are the process' anonymous ones: the kernel reclaims the others. */
interface MemoryUse {
  /** Since the process began. */
  minute: number;
  anonymousBytes: number;
  /** Anonymous bytes a minute after the last reclaim; undefined before the first. */
  floorBytes: number | undefined;
  /** Time since the last reclaim. */
  elapsedMs: number;
}

const CHECK_PERIOD_MS = 60_000;
/** Minutes after which the start is finished: usually, and with a hundred pods on a slow machine. */
const STARTED_MINUTES = [1, 5];
/** Shortest time between two reclaims: functions must be compiled again after each. */
const REST_MS = 600_000;
/** Smaller amounts are not reclaimed. */
const GROWTH_BYTES = 8 * 2 ** 20;

/** Whether memory should be reclaimed now: after the start, and later when enough has accumulated. */
export function shouldReclaim({ minute, anonymousBytes, floorBytes, elapsedMs }: MemoryUse): boolean {
  if (STARTED_MINUTES.includes(minute)) return true;
  return floorBytes !== undefined && elapsedMs >= REST_MS && anonymousBytes - floorBytes >= GROWTH_BYTES;
}

const OWN = { anonymousBytes: readOwnAnonymousBytes, shrink: () => Bun.shrink() };

/**
 * Returns memory of a burst of work to the machine: the JavaScript runtime would keep a third of it. Checks once a minute
 * until `signal` aborts.
 */
export async function reclaimMemory(clock: Clock, signal: AbortSignal, memory = OWN): Promise<void> {
  let floorBytes: number | undefined;
  let isSettling = false;
  let reclaimedMs = clock.monotonicMs();
  for (let minute = 1; !signal.aborted; minute++) {
    try {
      await clock.sleep(CHECK_PERIOD_MS, signal);
    } catch {
      return;
    }
    const anonymousBytes = memory.anonymousBytes();
    if (anonymousBytes === undefined) return; // /proc is not available.
    if (isSettling) floorBytes = anonymousBytes;
    const nowMs = clock.monotonicMs();
    isSettling = shouldReclaim({ minute, anonymousBytes, floorBytes, elapsedMs: nowMs - reclaimedMs });
    if (!isSettling) continue;
    memory.shrink();
    reclaimedMs = nowMs;
  }
}

/** `RssAnon` of our process; undefined on kernels before 4.5. */
function readOwnAnonymousBytes(): number | undefined {
  const kilobytes = parseAnonymousKilobytes(readBoundedText("/proc/self/status", SYSTEM_FILE_BYTES));
  return kilobytes === undefined ? undefined : kilobytes * 1024;
}

/** Reads RssAnon from the text of `/proc/<pid>/status`. */
export function parseAnonymousKilobytes(status: string): number | undefined {
  const kilobytes = /^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1];
  return kilobytes === undefined ? undefined : Number(kilobytes);
}
