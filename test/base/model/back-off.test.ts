import { expect, test } from "bun:test";
import { BackOff, backOffMs } from "../../../src/base/model/back-off.ts";

const POLICY = { first: 800, longest: 30_000 };

test.each([
  { failures: 0, random: 0, want: 400 },
  { failures: 2, random: undefined, want: 3200 },
  { failures: 0, random: 0.999_999, want: 800 },
  { failures: 3, random: 0, want: 3200 },
  { failures: 10, random: 0.999_999, want: 30_000 },
  { failures: 5000, random: 0, want: 15_000 },
])("after $failures failures: $want ms", ({ failures, random, want }) => {
  expect(backOffMs(failures, POLICY, random)).toBe(want);
});

test("a success starts again with the first delay", () => {
  const backOff = new BackOff(POLICY, () => 0);
  expect([backOff.next(), backOff.next(), backOff.next()]).toEqual([400, 800, 1600]);
  backOff.reset();
  expect(backOff.next()).toBe(400);
  backOff.next();
  expect(backOff.next(1_000)).toBe(500);
});
