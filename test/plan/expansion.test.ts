import { expect, test } from "bun:test";
import { expand, expandStrictly } from "../../src/plan/expansion.ts";

const VALUES: Record<string, string> = { A: "a", EMPTY: "", REF: "$(A)", "x y": "odd" };
const lookup = (name: string) => VALUES[name];

test.each([
  ["", ""],
  ["plain", "plain"],
  ["$(A)", "a"],
  ["$(A)$(A)", "aa"],
  ["[$(EMPTY)]", "[]"],
  ["$(REF)", "$(A)"],
  ["$(x y)", "odd"],
  ["$(B)", "$(B)"],
  ["$()", "$()"],
  ["$$", "$"],
  ["$$(A)", "$(A)"],
  ["$$$(A)", "$a"],
  ["$$$$(A)", "$$(A)"],
  ["$", "$"],
  ["$A", "$A"],
  ["a$", "a$"],
  ["$(A", "$(A"],
  ["$(A$$", "$(A$"],
  ["$($(A))", "$($(A))"],
  ["$é$(A)", "$éa"],
  ["$x$(A)", "$xa"],
])("expand %p gives %p", (text, want) => expect(expand(text, lookup)).toBe(want));

test("references in values are not expanded", () => {
  expect(expand("$(V)", () => "$& $1 $$ $(V)")).toBe("$& $1 $$ $(V)");
});

test("a path refuses unknown and empty names, each named once, sorted", () => {
  expect(expandStrictly("$(A)/x", lookup)).toEqual({ text: "a/x" });
  expect(expandStrictly("$(Z)/$(EMPTY)/$(Z)", lookup)).toEqual({ missing: ["EMPTY", "Z"] });
});
