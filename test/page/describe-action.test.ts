import { expect, test } from "bun:test";
import { describeAction, describeApplied, describeChanges, describePlan } from "../../src/page/describe-action.ts";
import type { AppliedObject } from "../../src/page/wire.ts";

test.each([
  { source: "submitted", owner: "", action: "Delete", text: /comes back only if its manifest is applied again/ },
  { source: "/m/web.yaml:3", owner: "", action: undefined, text: /comes from \/m\/web\.yaml:3: .* from that file/ },
  { source: "https://x/web.yaml", owner: "", action: undefined, text: /from that manifest/ },
  { source: "/m/web.yaml:3", owner: "Deployment web", action: "Delete", text: /Deployment web starts another pod/ },
  { source: "submitted", owner: "Job once", action: "Delete", text: /Job once starts another pod if/ },
])("deletion of a pod of $source, $owner", ({ source, owner, action, text }) => {
  const question = describeAction("delete", { name: "web-x", source, owner });
  expect(question.action).toBe(action);
  expect(question.text).toMatch(text);
  expect(question.text).toContain("web-x");
});

const object = (reference: string, outcome: AppliedObject["outcome"], ...warnings: string[]) => ({
  reference,
  outcome,
  warnings,
});

test("the result of an apply has a line for each object, its warnings, and what was refused", () => {
  const objects = [object("pod/a", "created"), object("networkpolicy/b", "ignored", "traffic is not filtered")];
  expect(describeApplied({ objects, problems: ['Pod "c": refused'] }, true)).toBe(
    `pod/a created (server dry run)
networkpolicy/b ignored (server dry run)
Warning: traffic is not filtered

Pod "c": refused`,
  );
  expect(describeApplied({ objects: [], problems: ["line 2, column 1: no kind"] }, false)).toBe(
    "line 2, column 1: no kind",
  );
});

const POD_CHANGE = { subject: 'pod "default/a"', lines: ["+ x"], effects: ["the pod starts"] };

test("the question before an apply names objects and what restarts", () => {
  const checked = { objects: [object("pod/a", "created"), object("deployment.apps/b", "configured")], problems: [] };
  const changes = [POD_CHANGE, { subject: 'Deployment "default/b"', lines: ["- 1"], effects: [] }];
  expect(describePlan(checked, { changes, leftOut: 0, problems: [] })).toBe(
    'pod/a created (server dry run)\ndeployment.apps/b configured (server dry run)\n\npod "default/a": the pod starts',
  );
  expect(describePlan(checked, { changes: [], leftOut: 0, problems: ["no engine"] })).toContain(
    "What restarts is not known: no engine",
  );
});

test("changes are shown with their effects; lines that are left out are counted", () => {
  const text = 'pod "default/a"\n  + x\n  => the pod starts';
  expect(describeChanges({ changes: [POD_CHANGE], leftOut: 0, problems: [] })).toBe(text);
  expect(describeChanges({ changes: [{ ...POD_CHANGE, lines: [] }], leftOut: 9, problems: [] })).toBe(
    'pod "default/a"\n  => the pod starts\n(9 characters of changed lines are left out: kubelet-ts diff shows them)',
  );
  expect(describeChanges({ changes: [], leftOut: 0, problems: [] })).toBe("No difference: nothing restarts.");
});
