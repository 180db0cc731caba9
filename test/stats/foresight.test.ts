import { expect, test } from "bun:test";
import { computeForesightMs, Foresight } from "../../src/stats/foresight.ts";
import { FakeClock } from "../support/fake-clock.ts";

test.each([
  { when: "a scraper's second period", period: 15_000, before: 15_020, want: 14_500 },
  { when: "a short one", period: 1_200, before: 1_250, want: 900 },
  { when: "the first period", period: 15_000, before: undefined, want: undefined },
  { when: "questions of somebody who types them", period: 7_000, before: 4_000, want: undefined },
  { when: "two scrapers in turns", period: 10_000, before: 5_000, want: undefined },
  { when: "Prometheus as it comes", period: 60_004, before: 59_998, want: 59_504 },
  { when: "less than once in five minutes", period: 301_000, before: 301_000, want: undefined },
  { when: "more often than anything is measured", period: 900, before: 900, want: undefined },
])("$when", ({ period, before, want }) => {
  expect(computeForesightMs(period, before)).toBe(want);
});

test("from the third regular question on each is prepared; the last preparation is in vain", async () => {
  const clock = new FakeClock();
  const startMs = clock.monotonicMs();
  const prepared: number[] = [];
  const foresight = new Foresight(clock, () => prepared.push(clock.monotonicMs() - startMs));
  for (let question = 0; question < 4; question++) {
    foresight.asked();
    await clock.advance(15_000);
  }
  await clock.advance(600_000);
  expect(prepared).toEqual([44_500, 59_500]);
  expect(clock.pendingTimers).toBe(0);
});

test("a question out of turn takes the place of the one expected", async () => {
  const clock = new FakeClock();
  let count = 0;
  const foresight = new Foresight(clock, () => count++);
  for (let question = 0; question < 3; question++) {
    await clock.advance(15_000);
    foresight.asked();
  }
  await clock.advance(5_000);
  foresight.asked();
  await clock.advance(600_000);
  expect(count).toBe(0);
});

test("cancelled, nothing is made", async () => {
  const clock = new FakeClock();
  const foresight = new Foresight(clock, () => expect.unreachable());
  for (let question = 0; question < 3; question++) {
    await clock.advance(15_000);
    foresight.asked();
  }
  foresight.cancel();
  expect(clock.pendingTimers).toBe(0);
});
