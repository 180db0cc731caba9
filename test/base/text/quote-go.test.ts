import { expect, test } from "bun:test";
import { quoteGo } from "../../../src/base/text/quote-go.ts";

test.each([
  ["", '""'],
  ["out\nerr\n", '"out\\nerr\\n"'],
  ['say "hi" \\ there', '"say \\"hi\\" \\\\ there"'],
  ["\t\r\x07\b\f\v", '"\\t\\r\\a\\b\\f\\v"'],
  ["\x00\x1b\x7f", '"\\x00\\x1b\\x7f"'],
  ["grün 日本 😀", '"grün 日本 😀"'],
  ["\u00a0\u200b\ufeff\u2028", '"\\u00a0\\u200b\\ufeff\\u2028"'],
  ["\u{e0001}", '"\\U000e0001"'],
])("quotes %j as Go does", (text, want) => {
  expect(quoteGo(text)).toBe(want);
});
