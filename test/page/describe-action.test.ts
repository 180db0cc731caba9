import { expect, test } from "bun:test";
import { describeAction, describePlan } from "../../src/page/describe-action.ts";

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

test("the question before an apply names objects and what restarts", () => {
  const checked = "pod/a created (server dry run)\ndeployment.apps/b configured (server dry run)";
  const compared = 'pod "default/a-node1"\n  + x\n  => the pod starts\nDeployment "default/b"\n  - 1\n  + 2';
  expect(describePlan(checked, { ok: true, message: compared })).toBe(
    'pod/a created\ndeployment.apps/b configured\n\npod "default/a": the pod starts',
  );
  expect(describePlan(checked, { ok: false, message: "no engine" })).toContain("What restarts is not known: no engine");
});
