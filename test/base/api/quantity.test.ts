import { expect, test } from "bun:test";
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  isWholeQuantity,
  parseQuantity,
  quantityToMilli,
  quantityToWhole,
  roundUpQuantity,
} from "../../../src/base/api/quantity.ts";

const q = (text: string) => parseQuantity(text)!;

test.each([
  ["1.5Gi", "1536Mi"],
  ["1024Ki", "1Mi"],
  ["1000M", "1G"],
  ["1000", "1k"],
  ["1.5", "1500m"],
  ["0.1Ki", "102400m"],
  ["512Ki", "512Ki"],
  ["0.5Ki", "512"],
  ["-1.5Gi", "-1536Mi"],
  ["1e19", "10e18"],
  ["8Ei", "9223372036854775807"],
  ["-8Ei", "-9223372036854775807"],
  ["0.5", "500m"],
  ["1n", "1n"],
  ["0.1n", "1n"],
  ["2000k", "2M"],
])("printed as upstream prints it: %s → %s", (text, want) => expect(formatQuantity(q(text))).toBe(want));

test.each(["5.", "+1", "010", "1e3", "2000Mi", "100m", "1E", "12e6", "3Ki"])(
  "kept as written where upstream keeps it: %s",
  (text) => expect(formatQuantity(q(text))).toBe(text),
);

test.each(["0", "00", "0.0", "m", "Ki", ".", "-", "e3", "0Gi", "+0"])("zero in all its spellings: %s", (text) =>
  expect(formatQuantity(q(text))).toBe("0"),
);

test.each(["1 Mi", "", ..."1K 1ki 1mi 1g 1GB 1e 1e3Ki 0x10 1_000 one --1 1.2.3 1e99999".split(" ")])(
  "not a quantity: %j",
  (text) => expect(parseQuantity(text)).toBeUndefined(),
);

test.each([
  ["1u", "1m"],
  ["0.0001", "1m"],
  ["1.1Mi", "1153433600m"],
  ["1e-9", "1e-3"],
  ["-1u", "-1m"],
  ["100m", "100m"],
])("rounded up to milli: %s → %s", (text, want) => expect(formatQuantity(roundUpQuantity(q(text), -3))).toBe(want));

test.each([
  ["100m", 100, 1],
  ["1.5", 1500, 2],
  ["64Mi", 67_108_864_000, 67_108_864],
  ["1n", 1, 1],
  ["-1.5", -1500, -2],
  ["1e3", 1_000_000, 1000],
])("%s is %d thousandths, %d whole", (text, milli, whole) => {
  expect(quantityToMilli(text)).toBe(milli);
  expect(quantityToWhole(text)).toBe(whole);
});

test("a text that is not a quantity is a fault of the caller", () => {
  expect(() => quantityToMilli("abc")).toThrow('"abc" is not a quantity');
});

test("comparison and addition are exact", () => {
  expect(compareQuantities(q("1Gi"), q("1024Mi"))).toBe(0);
  expect(compareQuantities(q("0.1"), q("100m"))).toBe(0);
  expect(compareQuantities(q("1"), q("999m"))).toBe(1);
  expect(compareQuantities(q("-1"), q("0"))).toBe(-1);
  expect(formatQuantity(addQuantities(q("0.1"), q("0.2")))).toBe("300m");
  expect(formatQuantity(addQuantities(q("0"), q("1Gi")))).toBe("1Gi");
  expect(formatQuantity(addQuantities(q("512Mi"), q("0.5Gi")))).toBe("1Gi");
});

test("whole numbers", () => {
  expect(isWholeQuantity(q("1.0"))).toBe(true);
  expect(isWholeQuantity(q("1500m"))).toBe(false);
  expect(isWholeQuantity(q("1u"), -3)).toBe(false);
});

test.each([
  ["8,000 zeros and no suffix", `${"0".repeat(8000)}x`, undefined],
  ["a million zeros", "0".repeat(1_000_000), 0n],
  ["leading zeros", `${"0".repeat(5000)}12`, 12n],
  ["more digits than are supported", "9".repeat(1001), undefined],
])("long text: %s", (_, text, unscaled) => expect(parseQuantity(text)?.unscaled).toBe(unscaled));
