import { expect, test } from "bun:test";
import { formatAge, formatLongTime, formatSince, parseTime } from "../../../src/apiserver/printers/rows.ts";

const S = 1000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;

test.each([
  [-5 * S, "<invalid>"],
  [-1.9 * S, "0s"],
  [0, "0s"],
  [999, "0s"],
  [43 * S, "43s"],
  [119 * S, "119s"],
  [120 * S, "2m"],
  [5 * M + 32 * S, "5m32s"],
  [9 * M + 59 * S, "9m59s"],
  [10 * M + 30 * S, "10m"],
  [179 * M, "179m"],
  [3 * H, "3h"],
  [3 * H + 20 * M, "3h20m"],
  [8 * H + 59 * M, "8h"],
  [47 * H, "47h"],
  [48 * H, "2d"],
  [2 * D + 4 * H, "2d4h"],
  [7 * D + 23 * H, "7d23h"],
  [8 * D + 23 * H, "8d"],
  [729 * D, "729d"],
  [730 * D, "2y"],
  [731 * D, "2y1d"],
  [9 * 365 * D + 5 * D, "9y"],
])("formatAge: %d ms is %s", (ms, want) => {
  expect(formatAge(ms)).toBe(want);
});

test.each([
  ["2026-11-21T08:26:23Z", "1m37s", "97s"],
  [null, "", "<unknown>"],
  [undefined, "", "<unknown>"],
  ["0001-01-01T00:00:00Z", "", "<unknown>"],
  ["no time", "", "<unknown>"],
])("since %p", (time, _, want) => {
  expect(formatSince(time, new Date("2026-11-21T08:28:00Z"))).toBe(want);
});

test("Go's zero time is none", () => {
  expect(parseTime("0001-01-01T00:00:00Z")).toBeUndefined();
  expect(parseTime("2026-11-21T08:26:23.5Z")?.getTime()).toBe(Date.UTC(2026, 10, 21, 8, 26, 23, 500));
});

test.each([
  [0, "Sat, 21 Nov 2026 23:26:03 +0000"],
  [60, "Sun, 22 Nov 2026 00:26:03 +0100"],
  [-210, "Sat, 21 Nov 2026 19:56:03 -0330"],
])("a long time %d minutes east", (offset, want) => {
  expect(formatLongTime("2026-11-21T23:26:03Z", () => offset)).toBe(want);
});
