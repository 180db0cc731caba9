import { expect, test } from "bun:test";
import { sparkPath, sparkPositions } from "../../src/page/spark-line.ts";

test("the newest value is at the right end, and the distances are in proportion to time", () => {
  expect(sparkPositions([0, 300_000, 600_000], 600_000)).toEqual([0, 400, 800]);
  expect(sparkPositions([500_000, 600_000], 600_000)).toEqual([667, 800]);
  expect(sparkPositions([], 600_000)).toEqual([]);
});

test("a line reaches from the bottom for zero to the top for its largest value", () => {
  expect(sparkPath([0, 1, 2], [0, 400, 800])).toBe("M0 190L400 100L800 10");
  expect(sparkPath([0, 0], [0, 800])).toBe("M0 190L800 190");
});

test("a line has a gap where a value is not known", () => {
  expect(sparkPath([null, 1, 1, null, 1], [0, 200, 400, 600, 800])).toBe("M200 10L400 10M800 10");
  expect(sparkPath([null], [800])).toBe("");
});
