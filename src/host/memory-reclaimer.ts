import { readBoundedText, SYSTEM_FILE_BYTES } from "../files/bounded-read.ts";
import type { Clock } from "../model/clock.ts";

/** The facts at one check of memory use. Bytes are the process' anonymous ones: the kernel reclaims the others. */
export interface MemoryUse {
  /** Since the process began. */
  minute: number;
  anonymousBytes: number;
  /** As it was a minute after memory was last given back; undefined before that. */
  floorBytes: number | undefined;
  /** Since memory was last given back. */
  elapsedMs: number;
}

const CHECK_PERIOD_MS = 60_000;
/** Start-up is over by then: normally, and with a hundred pods on a slow machine. */
const STARTED_MINUTES = [1, 5];
/** Shortest time between two reclaims: functions must be compiled again after each. */
const REST_MS = 600_000;
/** Less than this is not worth it. */
const GROWTH_BYTES = 8 * 2 ** 20;

/** Whether memory should be given back now: after the start, later when there is enough of it. */
export function shouldGiveBack({ minute, anonymousBytes, floorBytes, elapsedMs }: MemoryUse): boolean {
  if (STARTED_MINUTES.includes(minute)) return true;
  return floorBytes !== undefined && elapsedMs >= REST_MS && anonymousBytes - floorBytes >= GROWTH_BYTES;
}

export interface MemoryReclaimerOptions {
  clock: Clock;
  /** For tests. */
  readAnonymousBytes?: () => number | undefined;
  shrink?: () => void;
}

/**
 * Gives memory back to the machine that a burst of work needed (the start of a hundred pods, megabytes of metrics). The
 * runtime keeps such memory for later; without a reclaim it never releases a third of it.
 */
export class MemoryReclaimer {
  readonly #clock: Clock;
  readonly #readAnonymousBytes: () => number | undefined;
  readonly #shrink: () => void;

  constructor({ clock, readAnonymousBytes = readOwnAnonymousBytes, shrink = giveBack }: MemoryReclaimerOptions) {
    this.#clock = clock;
    this.#readAnonymousBytes = readAnonymousBytes;
    this.#shrink = shrink;
  }

  /** Checks once a minute until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    let floorBytes: number | undefined;
    let isSettling = false;
    let givenBackMs = this.#clock.monotonicMs();
    for (let minute = 1; !signal.aborted; minute++) {
      try {
        await this.#clock.sleep(CHECK_PERIOD_MS, signal);
      } catch {
        return;
      }
      const anonymousBytes = this.#readAnonymousBytes();
      if (anonymousBytes === undefined) return; // /proc is not available.
      if (isSettling) floorBytes = anonymousBytes;
      const nowMs = this.#clock.monotonicMs();
      isSettling = shouldGiveBack({ minute, anonymousBytes, floorBytes, elapsedMs: nowMs - givenBackMs });
      if (!isSettling) continue;
      this.#shrink();
      givenBackMs = nowMs;
    }
  }
}

/** Compiled functions go as well; from the first time on they are compiled again as usual. */
function giveBack(): void {
  Bun.unsafe.setJITPolicy(1);
  Bun.shrink();
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
