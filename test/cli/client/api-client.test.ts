import { expect, test } from "bun:test";
import { parseWarnings } from "../../../src/cli/client/api-client.ts";

test.each([
  ["", []],
  ['299 - "one"', ["one"]],
  ['299 - "say \\"no\\", twice", 299 kubelet "back\\\\slash"', ['say "no", twice', "back\\slash"]],
])("warnings of the header %p", (header, want) => {
  expect(parseWarnings(header)).toEqual(want);
});
