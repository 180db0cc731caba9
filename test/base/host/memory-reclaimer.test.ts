import { expect, test } from "bun:test";
import { MemoryReclaimer, parseAnonymousKilobytes, shouldGiveBack } from "../../../src/base/host/memory-reclaimer.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const MB = 2 ** 20;
const MINUTE = 60_000;

test.each([
  { when: "after the start", minute: 1, anonymousBytes: 1, floorBytes: undefined, elapsedMs: MINUTE, want: true },
  { when: "after a long start", minute: 5, anonymousBytes: 1, floorBytes: 1, elapsedMs: 4 * MINUTE, want: true },
  { when: "little more", minute: 60, anonymousBytes: 37, floorBytes: 30, elapsedMs: 55 * MINUTE, want: false },
  { when: "much more", minute: 60, anonymousBytes: 38, floorBytes: 30, elapsedMs: 10 * MINUTE, want: true },
  {
    when: "much more, but just done",
    minute: 60,
    anonymousBytes: 90,
    floorBytes: 30,
    elapsedMs: 9 * MINUTE,
    want: false,
  },
])("$when", ({ minute, anonymousBytes, floorBytes, elapsedMs, want }) => {
  const sample = { minute, anonymousBytes: anonymousBytes * MB, elapsedMs };
  expect(shouldGiveBack({ ...sample, floorBytes: floorBytes === undefined ? undefined : floorBytes * MB })).toBe(want);
});

/** @returns the minutes at which a process that has `peaks`, in MB, minute after minute gives memory back */
async function minutes(peaks: readonly number[]): Promise<number[]> {
  const clock = new FakeClock();
  const stop = new AbortController();
  const givenBack: number[] = [];
  let minute = 0;
  let megabytes = 0;
  const keeper = new MemoryReclaimer({
    clock,
    readAnonymousBytes: () => megabytes * MB,
    shrink: () => givenBack.push(minute),
  });
  const run = keeper.run(stop.signal);
  for (const peak of peaks) {
    minute++;
    megabytes = peak;
    await clock.advance(MINUTE);
  }
  stop.abort();
  await run;
  expect(clock.pendingTimers).toBe(0);
  return givenBack;
}

test("after the start, and no more while nothing grows", async () => {
  expect(await minutes([40, ...Array<number>(60).fill(25)])).toEqual([1, 5]);
});

test("again after a burst, at most each ten minutes", async () => {
  const calm = Array<number>(6).fill(20);
  const burst = Array<number>(20).fill(50);
  // A minute after the third time it is 50 as ever, so that is what the machine has to live with.
  expect(await minutes([...calm, ...burst, 50, 57, 58])).toEqual([1, 5, 15, 29]);
});

test("without figures of the kernel it ends", async () => {
  const clock = new FakeClock();
  const keeper = new MemoryReclaimer({
    clock,
    readAnonymousBytes: () => undefined,
    shrink: () => expect.unreachable(),
  });
  const run = keeper.run(new AbortController().signal);
  await clock.advance(MINUTE);
  await run;
  expect(clock.pendingTimers).toBe(0);
});

test("the line of the kernel's file", () => {
  expect(parseAnonymousKilobytes("VmRSS:\t   90000 kB\nRssAnon:\t   34592 kB\nRssFile:\t   52472 kB\n")).toBe(34_592);
  expect(parseAnonymousKilobytes("VmRSS:\t   90000 kB\n")).toBeUndefined();
});
