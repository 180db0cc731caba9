import { expect, test } from "bun:test";
import { findUnwritten, reclaimMemory } from "../../../src/base/host/memory-reclaimer.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const MB = 2 ** 20;
const MINUTE = 60_000;

/** @returns the minutes at which a process that has `peaks`, in MB, minute after minute reclaims memory */
async function minutes(peaks: readonly number[]): Promise<number[]> {
  const clock = new FakeClock();
  const stop = new AbortController();
  const reclaims: number[] = [];
  let minute = 0;
  let megabytes = 0;
  const memory = { residentBytes: () => megabytes * MB, shrink: async () => void reclaims.push(minute) };
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
  const memory = { residentBytes: () => undefined, shrink: () => expect.unreachable() };
  const run = reclaimMemory(clock, new AbortController().signal, memory);
  await clock.advance(MINUTE);
  await run;
  expect(clock.pendingTimers).toBe(0);
});

const mapping = (range: string, rights: string, path: string, anonymousKb: number) =>
  `${range} ${rights} 01838000 fe:00 2171016                            ${path}\nSize:              79912 kB\nAnonymous:         ${anonymousKb} kB\nVmFlags: rd ex\n`;

test("pages of the program are given back where nothing was written", () => {
  const smaps = [
    mapping("00200000-01a39000", "r--p", "/usr/bin/kubelet ts", 0),
    mapping("01a40000-0684a000", "r-xp", "/usr/bin/kubelet ts", 0),
    mapping("0684a000-0684b000", "r--p", "/usr/bin/kubelet ts", 12),
    mapping("0684b000-07c36000", "rw-p", "/usr/bin/kubelet ts", 0),
    mapping("7f0000000000-7f0000001000", "r-xp", "/lib/libc.so.6", 0),
    mapping("7f0000001000-7f0000002000", "r--p", "", 0),
  ].join("");
  expect(findUnwritten(smaps, "/usr/bin/kubelet ts")).toEqual([
    { start: 0x200000, end: 0x1a39000 },
    { start: 0x1a40000, end: 0x684a000 },
  ]);
});
