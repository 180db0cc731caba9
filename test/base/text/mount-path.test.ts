import { expect, test } from "bun:test";
import { unescapeMountPath } from "../../../src/base/text/mount-path.ts";

test("mount paths lose their octal escapes", () => {
  expect(unescapeMountPath("/a\\040b\\134c\\012")).toBe("/a b\\c\n");
  expect(unescapeMountPath("/plain")).toBe("/plain");
});
