import { expect, test } from "bun:test";
import { toPlainText } from "../../../src/plan/status/explain-pod.ts";

test.each([
  ["plain\ttext\nof two lines", "plain\ttext\nof two lines"],
  ["\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1b[2J", "red link"],
  ["10 %\r20 %\r\n", "10 % 20 %\n"],
  ["a\0b\x9bc\u202edesrever", "abcdesrever"],
])("%j", (text, plain) => {
  expect(toPlainText(text)).toBe(plain);
});
