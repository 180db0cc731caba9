import { expect, test } from "bun:test";
import { LinePrefixer } from "../../../src/cli/commands/logs.ts";

function prefixed(prefix: string, pieces: string[]): string {
  const prefixer = new LinePrefixer(prefix);
  const out = pieces.map((piece) => prefixer.push(Buffer.from(piece)));
  return Buffer.concat([...out, prefixer.end()]).toString("utf8");
}

test.each([
  [["a\nb\n"], "> a\n> b\n"],
  [["a", "b\nc", "\n"], "> ab\n> c\n"],
  [["no end"], "> no end\n"],
  [["\n\n"], "> \n> \n"],
  [[], ""],
  [["ä".repeat(3), "\n"], "> äää\n"],
])("%j", (pieces, want) => {
  expect(prefixed("> ", pieces)).toBe(want);
});

test("the caller may reuse the buffer of a piece", () => {
  const prefixer = new LinePrefixer("");
  const piece = Buffer.from("abc");
  prefixer.push(piece);
  piece.fill(0x78);
  expect(Buffer.from(prefixer.end()).toString()).toBe("abc\n");
});
