import { readlinkSync } from "node:fs";
import { readTextIfReadable, SYSTEM_FILE_BYTES } from "../files/whole-file.ts";
import type { Clock } from "../model/clock.ts";
import { loadLibc } from "./libc.ts";

const CHECK_PERIOD_MS = 60_000;
/** Minutes after which the start is finished: usually, and with a hundred pods on a slow machine. */
const STARTED_MINUTES = [1, 5];
/** Shortest time between two reclaims: functions must be compiled again after each. */
const REST_MS = 600_000;
/** Smaller amounts are not reclaimed. */
const GROWTH_BYTES = 8 * 2 ** 20;

/** As in madvise(2): a page is read again from its file, mostly from memory, when it is used. */
const MADV_DONTNEED = 4;

const OWN = { residentBytes: readResidentBytes, shrink };

/**
 * Returns memory of a burst of work to the machine: the JavaScript runtime would keep a third of it. Checks once a minute
 * until `signal` aborts.
 */
export async function reclaimMemory(clock: Clock, signal: AbortSignal, memory = OWN): Promise<void> {
  /** Resident bytes a minute after the last reclaim; undefined before the first. */
  let floorBytes: number | undefined;
  let isSettling = false;
  let reclaimedMs = clock.monotonicMs();
  for (let minute = 1; !signal.aborted; minute++) {
    try {
      await clock.sleep(CHECK_PERIOD_MS, signal);
    } catch {
      return;
    }
    const residentBytes = memory.residentBytes();
    if (residentBytes === undefined) return;
    if (isSettling) floorBytes = residentBytes;
    const nowMs = clock.monotonicMs();
    const hasGrown = floorBytes !== undefined && residentBytes - floorBytes >= GROWTH_BYTES;
    isSettling = STARTED_MINUTES.includes(minute) || (hasGrown && nowMs - reclaimedMs >= REST_MS);
    if (!isSettling) continue;
    await memory.shrink();
    reclaimedMs = nowMs;
  }
}

/** Anonymous bytes and those of files; undefined on kernels before 4.5. */
function readResidentBytes(): number | undefined {
  const status = readTextIfReadable("/proc/self/status", SYSTEM_FILE_BYTES) ?? "";
  const kilobytes = [...status.matchAll(/^Rss(?:Anon|File):\s+(\d+) kB$/gm)].map(([, text]) => Number(text));
  return kilobytes.length === 2 ? (kilobytes[0]! + kilobytes[1]!) * 1024 : undefined;
}

/**
 * Returns free memory, and the pages of the program that are not in use: the kernel maps 16 around each one that is, and
 * keeps what only the start needed.
 */
async function shrink(): Promise<void> {
  Bun.shrink();
  const { madvise } = await loadLibc().catch(() => ({ madvise: undefined }));
  const smaps = readTextIfReadable("/proc/self/smaps", SYSTEM_FILE_BYTES) ?? "";
  const program = readlinkSync("/proc/self/exe");
  for (const { start, end } of findUnwritten(smaps, program)) madvise?.(start, end - start, MADV_DONTNEED);
}

const UNWRITTEN = /^([0-9a-f]+)-([0-9a-f]+) r-.p (?:\S+ +){3}(.*)\n(?:\w+: .*\n)*?Anonymous: +0 kB$/gm;

/** The address ranges of `/proc/<pid>/smaps` that show the file as it is on the disk: nothing was written to them. */
export function findUnwritten(smaps: string, path: string): { start: number; end: number }[] {
  return [...smaps.matchAll(UNWRITTEN)]
    .filter(([, , , file]) => file === path)
    .map(([, start = "", end = ""]) => ({ start: Number.parseInt(start, 16), end: Number.parseInt(end, 16) }));
}
