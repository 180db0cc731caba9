import { expect, test } from "bun:test";
import { parseTimeWindow } from "../../../src/base/text/time-window.ts";

const isOpen = (text: string, at: string) => {
  const window = parseTimeWindow(text);
  return "problem" in window ? window.problem : window.isOpen(new Date(at));
};

test.each([
  ["always", "2026-03-04T12:00:00", true],
  ["0 2 * * * +3h", "2026-03-04T01:59:59", false],
  ["0 2 * * * +3h", "2026-03-04T02:00:00", true],
  ["0 2 * * * +3h", "2026-03-04T04:59:59", true],
  ["0 2 * * * +3h", "2026-03-04T05:00:00", false],
  ["30 23 * * * +1h30m", "2026-03-05T00:45:00", true],
  ["0 2 * * sun +3h", "2026-03-04T03:00:00", false],
  ["0 2 * * sun +3h", "2026-03-08T03:00:00", true],
])("%s at %s: %p", (text, at, want) => {
  expect(isOpen(text, at)).toBe(want);
});

test.each(["0 2 * * *", "0 2 * * * 3h", "+3h", "0 2 * * * +3x", "0 2 * * * +0h", "0 25 * * * +1h"])(
  "%p is refused",
  (text) => {
    expect(parseTimeWindow(text)).toMatchObject({ problem: expect.any(String) });
  },
);

test("the next opening", () => {
  const window = parseTimeWindow("0 2 * * sun +3h");
  if ("problem" in window) throw new Error(window.problem);
  expect(window.nextOpening(new Date("2026-03-04T03:00:00"))).toEqual(new Date("2026-03-08T02:00:00"));
});
