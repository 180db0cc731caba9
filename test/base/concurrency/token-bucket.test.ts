import { expect, test } from "bun:test";
import { TokenBucket } from "../../../src/base/concurrency/token-bucket.ts";
import { FakeClock } from "../../support/fake-clock.ts";

test.each([
  { when: "no limit", rate: { perSecond: 0, burst: 0 }, atOnce: 100, afterOneSecond: 100 },
  { when: "a burst, then the rate", rate: { perSecond: 5, burst: 10 }, atOnce: 10, afterOneSecond: 5 },
  { when: "no more is saved than the burst", rate: { perSecond: 50, burst: 3 }, atOnce: 3, afterOneSecond: 3 },
  { when: "without a burst one at a time", rate: { perSecond: 2, burst: 0 }, atOnce: 1, afterOneSecond: 1 },
])("$when", async ({ rate, atOnce, afterOneSecond }) => {
  const clock = new FakeClock();
  const bucket = new TokenBucket(rate, clock);
  const takeAll = () => Array.from({ length: 100 }).filter(() => bucket.tryTake()).length;
  expect(takeAll()).toBe(atOnce);
  await clock.advance(1000);
  expect(takeAll()).toBe(afterOneSecond);
});

test("a reservation waits for a future token", () => {
  const bucket = new TokenBucket({ perSecond: 4, burst: 2 }, new FakeClock());
  expect([1, 2, 3, 4].map(() => bucket.reserve())).toEqual([0, 0, 250, 500]);
});
