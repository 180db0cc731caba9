import { expect, test } from "bun:test";
import { MemoryKeeper, parseAnonymousKilobytes, shouldGiveBack } from "../../src/host/memory-keeper.ts";
import { FakeClock } from "../support/fake-clock.ts";

const MB = 2 ** 20;
const MINUTE = 60_000;

test.each([
  { when: "the first time", anonymousBytes: 1 * MB, floorBytes: undefined, elapsedMs: 0, want: true },
  {
    when: "little more than before",
    anonymousBytes: 37 * MB,
    floorBytes: 30 * MB,
    elapsedMs: 60 * MINUTE,
    want: false,
  },
  { when: "much more", anonymousBytes: 38 * MB, floorBytes: 30 * MB, elapsedMs: 10 * MINUTE, want: true },
  {
    when: "much more, but just done",
    anonymousBytes: 90 * MB,
    floorBytes: 30 * MB,
    elapsedMs: 9 * MINUTE,
    want: false,
  },
])("$when", ({ want, ...look }) => {
  expect(shouldGiveBack(look)).toBe(want);
});

/** @returns the minutes at which a process that has `peaks`, in MB, minute after minute gives memory back */
async function minutes(peaks: readonly number[]): Promise<number[]> {
  const clock = new FakeClock();
  const stop = new AbortController();
  const givenBack: number[] = [];
  let minute = 0;
  const keeper = new MemoryKeeper({
    clock,
    readAnonymousBytes: () => peaks[minute]! * MB,
    shrink: () => givenBack.push(minute),
  });
  const run = keeper.run(stop.signal);
  for (; minute < peaks.length; minute++) await clock.advance(MINUTE);
  stop.abort();
  await run;
  expect(clock.pendingTimers).toBe(0);
  return givenBack;
}

test("once after the start, and no more while nothing grows", async () => {
  expect(await minutes([40, ...Array<number>(60).fill(25)])).toEqual([0]);
});

test("again after a burst, at most each ten minutes", async () => {
  expect(await minutes([40, 20, 20, ...Array<number>(8).fill(50), 21, 21, 21, 50])).toEqual([0, 10]);
});

test("where the kernel does not tell, it ends", async () => {
  const clock = new FakeClock();
  const keeper = new MemoryKeeper({ clock, readAnonymousBytes: () => undefined, shrink: () => expect.unreachable() });
  const run = keeper.run(new AbortController().signal);
  await clock.advance(MINUTE);
  await run;
  expect(clock.pendingTimers).toBe(0);
});

test("the line of the kernel's file", () => {
  expect(parseAnonymousKilobytes("VmRSS:\t   90000 kB\nRssAnon:\t   34592 kB\nRssFile:\t   52472 kB\n")).toBe(34_592);
  expect(parseAnonymousKilobytes("VmRSS:\t   90000 kB\n")).toBeUndefined();
});
