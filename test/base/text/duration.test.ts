import { expect, test } from "bun:test";
import { formatDuration, parseDuration } from "../../../src/base/text/duration.ts";

test.each([
  ["20s", 20_000],
  ["1m0s", 60_000],
  ["1h30m", 5_400_000],
  ["1.5h", 5_400_000],
  ["500ms", 500],
  ["100us", 0.1],
  ["100µs", 0.1],
  ["1ns", 1e-6],
  ["0", 0],
  ["0s", 0],
  ["-5s", -5_000],
  ["+5s", 5_000],
  [".5s", 500],
  ["5.s", 5_000],
  ["", undefined],
  ["20", undefined],
  ["s", undefined],
  ["1d", undefined],
  ["1 s", undefined],
  ["1s ", undefined],
  ["9999999h", undefined],
] as const)("%p is %p ms", (text, want) => {
  expect(parseDuration(text)).toBe(want as number);
});

test.each([
  [0, "0s"],
  [20_000, "20s"],
  [60_000, "1m0s"],
  [3_600_000, "1h0m0s"],
  [90_500, "1m30.5s"],
  [500, "500ms"],
  [0.1, "100µs"],
  [1e-6, "1ns"],
  [-5_000, "-5s"],
  [1234.5, "1.2345s"],
  [3_600_000.000_002, "1h0m0.000000002s"],
] as const)("%p ms is written %p", (ms, want) => {
  expect(formatDuration(ms)).toBe(want);
});
