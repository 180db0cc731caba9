import { expect, test } from "bun:test";
import { answerWithinMs, hasSlept, mustReplace, retryAfterMs } from "../../src/page/reconnect.ts";

test.each([
  { when: "a tick in time", nowMs: 101_000, want: false },
  { when: "a busy browser", nowMs: 105_500, want: false },
  { when: "a minute of sleep", nowMs: 160_000, want: true },
  { when: "a clock that is corrected by a little", nowMs: 98_000, want: false },
  { when: "a clock that is set back", nowMs: 40_000, want: true },
])("between two looks at the clock: $when", ({ nowMs, want }) => {
  expect(hasSlept(100_000, nowMs)).toBe(want);
});

test.each([
  { when: "a machine that slept", wake: "slept", connection: "live", silentMs: 0, want: true },
  { when: "a shown tab that was heard just now", wake: "shown", connection: "live", silentMs: 9000, want: false },
  { when: "a tab that is shown after a silence", wake: "shown", connection: "live", silentMs: 13_000, want: true },
  { when: "the pause before the next attempt", wake: "shown", connection: "lost", silentMs: 100, want: true },
  { when: "an attempt that is under way", wake: "shown", connection: "connecting", silentMs: 99_999, want: false },
] as const)("whether the connection is replaced: $when", ({ wake, connection, silentMs, want }) => {
  expect(mustReplace(wake, connection, silentMs)).toBe(want);
});

test("attempts are made a second apart at first and five seconds in the end; a slow server gets more time", () => {
  expect([0, 1, 2, 3, 50].map(retryAfterMs)).toEqual([1000, 2000, 4000, 5000, 5000]);
  expect([0, 1, 2, 3, 50].map(answerWithinMs)).toEqual([5000, 10_000, 20_000, 25_000, 25_000]);
});
