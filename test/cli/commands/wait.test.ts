import { expect, test } from "bun:test";
import type { ApiObject } from "../../../src/cli/client/api-client.ts";
import { mergeKubeconfig } from "../../../src/cli/commands/kubeconfig.ts";
import { parseFor } from "../../../src/cli/commands/wait.ts";

const pod = (ready: string, phase = "Running"): ApiObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web" },
  status: { phase, conditions: [{ type: "Ready", status: ready }] },
});

test.each<[string, ApiObject | undefined, boolean]>([
  ["condition=Ready", pod("True"), true],
  ["condition=ready", pod("True"), true],
  ["condition=Ready", pod("False"), false],
  ["condition=Ready=False", pod("False"), true],
  ["condition=Ready", undefined, false],
  ["delete", undefined, true],
  ["delete", pod("True"), false],
  ["jsonpath={.status.phase}=Running", pod("True"), true],
  ["jsonpath={.status.phase}=Failed", pod("True"), false],
  ["jsonpath={.status.phase}", pod("True"), true],
  ["jsonpath={.status.podIP}", pod("True"), false],
])("%s", (text, object, isMet) => {
  expect(parseFor(text).isMet(object)).toBe(isMet);
});

test.each([
  [undefined, "--for"],
  ["ready", '(found "ready"; did you mean condition=Ready?)'],
  ["jsonpath={.a[}=1", "--for"],
])("%p is refused", (text, message) => {
  expect(() => parseFor(text)).toThrow(message);
});

test("a kubeconfig keeps what it has, and its context becomes the current one", () => {
  const before = {
    clusters: [{ name: "prod" }, { name: "node1", old: true }],
    users: null,
    "current-context": "prod",
    preferences: {},
  };
  const added = {
    clusters: [{ name: "node1" }],
    users: [{ name: "admin" }],
    contexts: [{ name: "node1" }],
    "current-context": "node1",
  };
  expect(mergeKubeconfig(before, added)).toEqual({
    apiVersion: "v1",
    kind: "Config",
    preferences: {},
    clusters: [{ name: "prod" }, { name: "node1" }],
    users: [{ name: "admin" }],
    contexts: [{ name: "node1" }],
    "current-context": "node1",
  });
});
