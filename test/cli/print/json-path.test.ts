import { describe, expect, test } from "bun:test";
import { readJsonPath, readJsonPathTemplate } from "../../../src/cli/print/json-path.ts";

const OBJECT = {
  metadata: { name: "web", labels: { "app.kubernetes.io/name": "web" } },
  status: {
    phase: "Running",
    conditions: [
      { type: "Initialized", status: "True" },
      { type: "Ready", status: "False" },
    ],
  },
};

describe("expressions", () => {
  test.each<[string, unknown[]]>([
    ["{.status.phase}", ["Running"]],
    [".status.phase", ["Running"]],
    ["status.phase", ["Running"]],
    ["{$.metadata.name}", ["web"]],
    ["{.status.conditions[0].type}", ["Initialized"]],
    ["{.status.conditions[-1].type}", ["Ready"]],
    ["{.status.conditions[*].type}", ["Initialized", "Ready"]],
    ['{.status.conditions[?(@.type=="Ready")].status}', ["False"]],
    ['{.status.conditions[?(@.type!="Ready")].status}', ["True"]],
    ["{.metadata.labels.app\\.kubernetes\\.io/name}", ["web"]],
    ["{.metadata.labels['app.kubernetes.io/name']}", ["web"]],
    ["{..type}", ["Initialized", "Ready"]],
    ["{.nothing.here}", []],
  ])("%s", (text, want) => {
    const path = readJsonPath(text);
    expect("problem" in path ? path.problem : path.values(OBJECT)).toEqual(want);
  });

  test.each(["{.a[}", "{.a[?(@)]}", "{.a b}"])("%s is refused", (text) => {
    expect(readJsonPath(text)).toHaveProperty("problem");
  });
});

describe("templates", () => {
  test.each([
    ["{.metadata.name}", "web"],
    ["name={.metadata.name}!", "name=web!"],
    ['{range .status.conditions[*]}{.type}={.status}{"\\n"}{end}', "Initialized=True\nReady=False\n"],
    ["{.status.conditions[*].type}", "Initialized Ready"],
    ["{.metadata.labels}", '{"app.kubernetes.io/name":"web"}'],
  ])("%s", (template, want) => {
    const read = readJsonPathTemplate(template);
    expect("problem" in read ? read.problem : read.render(OBJECT)).toBe(want);
  });

  test.each(["{range .a}{.b}", "{.a}{end}", "{.metadata.name", "a {.b} {.c"])("%s is refused", (template) => {
    expect(readJsonPathTemplate(template)).toHaveProperty("problem");
  });
});
