import { expect, test } from "bun:test";
import { errorSettleMs, removalSettleMs, writeSettleMs } from "../../src/sources/file-records.ts";

const identity = (ctimeNs = 0n) => ({ dev: 0n, ino: 0n, size: 0n, mtimeNs: 0n, ctimeNs }) as never;

test.each([
  { when: "just written", ageMs: 0, seenMs: 0, want: 100 },
  { when: "written 40 ms ago", ageMs: 40, seenMs: 0, want: 60 },
  { when: "seen 70 ms ago by a clock that was set back", ageMs: -5000, seenMs: 70, want: 30 },
  { when: "quiet", ageMs: 100, seenMs: 0, want: 0 },
  { when: "renamed after it was written", ageMs: 0, seenMs: 0, ctimeNs: 1n, want: 0 },
])("a text waits until it is no longer written: $when", ({ ageMs, seenMs, ctimeNs, want }) => {
  expect(writeSettleMs({ identity: identity(ctimeNs), ageMs, seenMs })).toBe(want);
});

test.each([
  { when: "young and just seen", ageMs: 200, seenMs: 0, want: 300 },
  { when: "young and seen for a while", ageMs: 400, seenMs: 250, want: 50 },
  { when: "old", ageMs: 10_000, seenMs: 0, want: 0 },
])("a text with errors may be half written: $when", ({ ageMs, seenMs, want }) => {
  expect(errorSettleMs({ identity: identity(), ageMs, seenMs })).toBe(want);
});

test("a missing file keeps its pods for a moment, longer while a new file may describe them", () => {
  expect([removalSettleMs(0, false), removalSettleMs(1_100, false), removalSettleMs(150, true)]).toEqual([
    1000, 0, 9850,
  ]);
});
