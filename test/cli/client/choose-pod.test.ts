import { describe, expect, test } from "bun:test";
import { findPod, inScope } from "../../../src/cli/client/choose-pod.ts";
import { shown } from "../print/pods.ts";

const WEB = shown({ name: "web-node1" });
const DB = shown({ name: "db-node1", namespace: "prod" });
const TWIN = shown({ name: "twin-node1" });
const OTHER_TWIN = shown({ name: "twin-node1", namespace: "prod" });
const ALL = [WEB, DB, TWIN, OTHER_TWIN];

describe("the pod that is meant", () => {
  test.each([
    ["web-node1", undefined, WEB],
    ["web", undefined, WEB],
    ["pod/web", undefined, WEB],
    ["pods/web-node1", "default", WEB],
    ["db", undefined, DB],
    ["twin", "prod", OTHER_TWIN],
  ])("%s in %p", (name, namespace, want) => {
    expect(findPod(ALL, name, { namespace })).toBe(want);
  });

  test("a whole name goes before one without the node's", () => {
    const odd = shown({ name: "web" });
    expect(findPod([WEB, odd], "web", { namespace: undefined })).toBe(odd);
  });
});

describe("what is reported instead", () => {
  test.each([
    ["twin", undefined, ["default, prod", "-n"]],
    ["wbe", undefined, ['pod "wbe" not found;', 'did you mean "web"?']],
    ["we", undefined, ['did you mean "web-node1"?']],
    ["node", undefined, ['did you mean "web-node1"?']],
    ["nothing-like-it", undefined, ["there are web-node1, db-node1, twin-node1"]],
    ["db", "default", ['not found in namespace "default"', 'it is in namespace "prod"']],
    ["wbe", "prod", ["there are db-node1, twin-node1"]],
  ])("%s in %p", (name, namespace, message) => {
    const found = findPod(ALL, name, { namespace });
    for (const part of message) expect((found as { problem: string }).problem).toContain(part);
  });

  test("there are none", () => {
    expect(findPod([], "web", { namespace: undefined })).toMatchObject({
      problem: 'pod "web" not found; there are no pods',
    });
  });

  test("not all of very many are named", () => {
    const many = Array.from({ length: 30 }, (_, i) => shown({ name: `p${i}-node1` }));
    expect(findPod(many, "zzzzzz", { namespace: undefined })).toHaveProperty(
      "problem",
      expect.stringContaining("(30 in all)"),
    );
  });
});

test("a namespace, or all", () => {
  expect(inScope(ALL, { namespace: "prod" })).toEqual([DB, OTHER_TWIN]);
  expect(inScope(ALL, { namespace: undefined })).toHaveLength(4);
});
