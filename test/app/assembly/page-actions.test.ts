import { expect, test } from "bun:test";
import { toFindings, withoutCommand } from "../../../src/app/assembly/page-actions.ts";

test("findings of a pasted manifest are reported by line and column", () => {
  const output =
    '-:6:3: spec.containerz: there is no field "containerz" here\nUnknown fields have no effect\n1 object: 0 ok\n';
  expect(toFindings(output)).toBe('line 6, column 3: spec.containerz: there is no field "containerz" here');
  expect(toFindings('-:3:9: : "," was expected here')).toBe('line 3, column 9: "," was expected here');
  expect(toFindings("1 object: 1 ok, 0 with errors\n")).toBe("");
});

test.each([
  ['kubelet-ts apply: -: Pod "x": refused\n', 'Pod "x": refused'],
  ["kubelet-ts delete: web comes from /m/web.yaml\n", "web comes from /m/web.yaml"],
  ["pod/web created\n", "pod/web created"],
])("%p", (output, shown) => {
  expect(withoutCommand(output)).toBe(shown);
});
