import { expect, test } from "bun:test";
import { alignTabs, TextTable, toCell, visible } from "../../../src/cli/print/text-table.ts";

test("columns are three apart and at least six wide; the last one is not filled up", () => {
  const text = new TextTable().render([
    ["NAME", "A", "AGE"],
    ["web-node1", "1/1", "5m"],
  ]);
  expect(text).toBe("NAME        A     AGE\nweb-node1   1/1   5m\n");
});

test("later rows are aligned with earlier ones", () => {
  const table = new TextTable();
  expect(table.render([["longer-name", "x"]])).toBe("longer-name   x\n");
  expect(table.render([["b", "y"]])).toBe("b             y\n");
  expect(table.render([])).toBe("");
});

test("a block of lines does not widen the next one", () => {
  const text = ["Name:\tweb", "Namespace:\tdefault", "Containers:", "  a:\tb", "  long name:\tc"].join("\n");
  expect(alignTabs(text)).toBe(
    ["Name:       web", "Namespace:  default", "Containers:", "  a:          b", "  long name:  c"].join("\n"),
  );
});

test("several columns, letters counted as they are seen", () => {
  expect(alignTabs("ä\tb\tc\nlong\tx\ty")).toBe("ä     b  c\nlong  x  y");
});

test.each([
  ["one line", "one line"],
  ["first\nsecond", "first..."],
  ["ends in a line end\n", "ends in a line end"],
  ["\u001b[2Jgone", "^[[2Jgone"],
  ["bell\u0007 \u009b1m", "bell^G <9b>1m"],
  ["tab\there", "tab^Ihere"],
])("cell of %j", (text, want) => {
  expect(toCell(text)).toBe(want);
});

test("letters of other scripts stay", () => {
  expect(visible("größer 日本")).toBe("größer 日本");
});
