import { expect, test } from "bun:test";
import { diffLines } from "../../../src/cli/print/diff-lines.ts";

test("lines that differ, with three lines around them", () => {
  const before = Array.from({ length: 12 }, (_, line) => `line ${line}`);
  const after = before.with(1, "changed").concat("added");
  expect(diffLines(before.join("\n"), after.join("\n"))).toEqual([
    "  line 0",
    "- line 1",
    "+ changed",
    "  line 2",
    "  line 3",
    "  line 4",
    "…",
    "  line 9",
    "  line 10",
    "  line 11",
    "+ added",
  ]);
});

test("equal texts have no difference", () => expect(diffLines("a\nb", "a\nb")).toEqual([]));
