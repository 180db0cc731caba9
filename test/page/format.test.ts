import { expect, test } from "bun:test";
import { formatWholeTime, splitFact } from "../../src/page/format.ts";

const AT = Date.parse("2026-11-22T12:53:10Z");

test.each([
  ["ended at 2026-11-22T12:53:10Z with exit code 1 (Error)", "ended at ", AT, " with exit code 1 (Error)"],
  ["last seen 2026-11-22T12:53:10Z, 3 times", "last seen ", AT, ", 3 times"],
  ["Readiness probe failed: no (2026-11-22T12:53:10Z, 3 times)", "Readiness probe failed: no (", AT, ", 3 times)"],
  ["last seen 2026-11-22T12:53:10Z, once", "last seen ", AT, ", once"],
  ["since 2026-11-22T12:53:10Z", "since ", AT, ""],
  ["its grace period of 30 s ends at 2026-11-22T12:53:10Z", "its grace period of 30 s ends at ", AT, ""],
  ["restarted 3 times; next start in 24 s", "restarted 3 times; next start in 24 s", 0, ""],
  // A line of a log.
  ["  ended at 2026-11-22T12:53:10Z with love", "  ended at 2026-11-22T12:53:10Z with love", 0, ""],
  ["", "", 0, ""],
] as const)("the time of the fact %j", (text, before, at, after) => {
  expect(splitFact(text)).toEqual({ before, at, after });
});

test("a whole time has its zone, and UTC as commands print it", () => {
  expect(formatWholeTime(AT)).toMatch(/2026.*:53:10.*\(2026-11-22T12:53:10Z\)$/);
  expect(formatWholeTime(AT + 5)).toEndWith("(2026-11-22T12:53:10.005Z)");
  expect(formatWholeTime(0)).toBe("");
});
