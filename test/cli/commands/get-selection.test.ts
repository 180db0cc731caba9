import { describe, expect, test } from "bun:test";
import { parseFieldSelector, parseSortBy, parseTemplate } from "../../../src/cli/commands/get.ts";

const pod = (name: string, phase: string, restarts: number) => ({ metadata: { name }, status: { phase, restarts } });
const PODS = [pod("web-10", "Running", 10), pod("web-9", "Failed", 9)];

describe("field selectors", () => {
  test.each([
    ["status.phase=Running", ["web-10"]],
    ["status.phase==Running", ["web-10"]],
    ["status.phase!=Running", ["web-9"]],
    ["status.phase=Failed,metadata.name=web-9", ["web-9"]],
    ["spec.nodeName=", ["web-10", "web-9"]],
    ["", ["web-10", "web-9"]],
  ])("%p", (text, want) => {
    const selector = parseFieldSelector(text);
    expect(
      "problem" in selector ? selector : PODS.filter(selector.matches).map(({ metadata }) => metadata.name),
    ).toEqual(want);
  });

  test("without an operator it is refused", () => {
    expect(parseFieldSelector("status.phase")).toHaveProperty("problem");
  });
});

test.each([
  [".status.restarts", ["web-9", "web-10"]],
  ["{.metadata.name}", ["web-9", "web-10"]],
  [".status.phase", ["web-9", "web-10"]],
])("sorted by %s", (text, want) => {
  const order = parseSortBy(text);
  expect("problem" in order ? order : PODS.toSorted(order.compare).map(({ metadata }) => metadata.name)).toEqual(want);
});

describe("templates", () => {
  test("a list or one object is rendered", () => {
    const list = parseTemplate("jsonpath={.items[*].metadata.name}");
    expect(list && "render" in list && list.render({ items: PODS })).toBe("web-10 web-9");
    const one = parseTemplate("jsonpath={.metadata.name}");
    expect(one && "render" in one && one.render(PODS[0])).toBe("web-10");
  });

  test.each(["jsonpath", "jsonpath={.a[}"])("%s is refused", (output) => {
    expect(parseTemplate(output)).toHaveProperty("problem");
  });
  test("others are left to their printer", () => expect(parseTemplate("wide")).toBeUndefined());
});
