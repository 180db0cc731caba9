import { expect, test } from "bun:test";
import { describeEnd, encodeMessage, splitInput } from "../../src/page/shell-messages.ts";

test("what is pasted is sent in parts, and no character is split", () => {
  expect(splitInput("ls\n")).toEqual(["ls\n"]);
  const text = `${"x".repeat(65_535)}😀${"y".repeat(70_000)}`;
  const parts = splitInput(text);
  expect(parts.join("")).toBe(text);
  expect(parts.map(({ length }) => length)).toEqual([65_535, 65_536, 4466]);
});

test("a message begins with its channel", () => {
  expect([...encodeMessage(0, "é\n")]).toEqual([0, 0xc3, 0xa9, 10]);
});

const failed = (code: string) =>
  Buffer.from(
    JSON.stringify({ status: "Failure", message: "x", details: { causes: [{ reason: "ExitCode", message: code }] } }),
  );

test.each([
  ["exit", '{"status":"Success"}', false, "The shell ended.", false],
  ["exit 4", failed("4"), true, "The shell ended with exit code 4.", false],
  ["an image without a shell", failed("126"), false, "This image has no shell.", true],
  ["exit 127", failed("127"), true, "The shell ended with exit code 127.", false],
  ["the engine is away", '{"status":"Failure","message":"cannot connect"}', false, "cannot connect", false],
] as const)("the end: %s", (_, status, hasTyped, message, isMissing) => {
  expect(describeEnd(Buffer.from(status), hasTyped)).toEqual({ message, isMissing });
});
