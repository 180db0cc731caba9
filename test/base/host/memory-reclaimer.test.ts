import { expect, test } from "bun:test";
import { parseAnonymousKilobytes, reclaimMemory, shouldReclaim } from "../../../src/base/host/memory-reclaimer.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const MB = 2 ** 20;
const MINUTE = 60_000;

test.each<[when: string, minute: number, used: number, floor: number | undefined, elapsed: number, want: boolean]>([
  ["after the start", 1, 1, undefined, 1, true],
  ["after a long start", 5, 1, 1, 4, true],
  ["little more", 60, 37, 30, 55, false],
  ["much more", 60, 38, 30, 10, true],
  ["much more, but just done", 60, 90, 30, 9, false],
])("%s", (_when, minute, used, floor, elapsed, want) => {
  const floorBytes = floor === undefined ? undefined : floor * MB;
  expect(shouldReclaim({ minute, anonymousBytes: used * MB, floorBytes, elapsedMs: elapsed * MINUTE })).toBe(want);
});

/** @returns the minutes at which a process that has `peaks`, in MB, minute after minute reclaims memory */
async function minutes(peaks: readonly number[]): Promise<number[]> {
  const clock = new FakeClock();
  const stop = new AbortController();
  const reclaims: number[] = [];
  let minute = 0;
  let megabytes = 0;
  const memory = { anonymousBytes: () => megabytes * MB, shrink: () => reclaims.push(minute) };
  const run = reclaimMemory(clock, stop.signal, memory);
  for (const peak of peaks) {
    minute++;
    megabytes = peak;
    await clock.advance(MINUTE);
  }
  stop.abort();
  await run;
  expect(clock.pendingTimers).toBe(0);
  return reclaims;
}

test("after the start, and no more while nothing grows", async () => {
  expect(await minutes([40, ...Array<number>(60).fill(25)])).toEqual([1, 5]);
});

test("again after a burst, at most each ten minutes", async () => {
  const calm = Array<number>(6).fill(20);
  const burst = Array<number>(20).fill(50);
  // A minute after the third time it is 50 as ever, which is the new floor.
  expect(await minutes([...calm, ...burst, 50, 57, 58])).toEqual([1, 5, 15, 29]);
});

test("without figures of the kernel it ends", async () => {
  const clock = new FakeClock();
  const memory = { anonymousBytes: () => undefined, shrink: () => expect.unreachable() };
  const run = reclaimMemory(clock, new AbortController().signal, memory);
  await clock.advance(MINUTE);
  await run;
  expect(clock.pendingTimers).toBe(0);
});

test("the line of the kernel's file", () => {
  expect(parseAnonymousKilobytes("VmRSS:\t   90000 kB\nRssAnon:\t   34592 kB\nRssFile:\t   52472 kB\n")).toBe(34_592);
  expect(parseAnonymousKilobytes("VmRSS:\t   90000 kB\n")).toBeUndefined();
});
