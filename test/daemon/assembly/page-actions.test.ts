import { expect, test } from "bun:test";
import { joinFindings, shortenDiff, toFindings, withoutCommand } from "../../../src/daemon/assembly/page-actions.ts";

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

test("an object that was applied before another failed stays named", () => {
  const findings = "line 9, column 3: spec.x: there is no such field";
  expect(joinFindings({ message: 'Pod "b": refused', stdout: "" }, findings)).toBe(findings);
  expect(joinFindings({ message: "x is immutable", stdout: "" }, "")).toBe("x is immutable");
  expect(joinFindings({ message: 'pod/a created\nPod "b": refused', stdout: "pod/a created\n" }, findings)).toBe(
    `pod/a created\nPod "b": refused\n\n${findings}`,
  );
});

test("a long difference keeps what restarts", () => {
  const diff = 'pod "default/web"\n  - a\n  + b\n  => container app restarts';
  expect(shortenDiff(diff, 100)).toBe(diff);
  expect(shortenDiff(diff, 20)).toBe(
    'pod "default/web"\n  => container app restarts\n(57 characters of changed lines are left out: kubelet-ts diff shows them)',
  );
});
