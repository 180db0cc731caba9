import { describe, expect, test } from "bun:test";
import { parseFieldSelector, parseObjectFormat, parseSortBy } from "../../../src/cli/print/selection.ts";

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

describe("formats", () => {
  test.each([
    ["jsonpath={.items[*].metadata.name}", "web-10 web-9"],
    ["custom-columns=NAME:.metadata.name,IP:.status.podIP", "NAME     IP\nweb-10   <none>\nweb-9    <none>\n"],
  ])("%s", (output, want) => {
    const format = parseObjectFormat(output, true);
    expect(typeof format === "function" ? format(PODS, false) : format).toBe(want);
  });

  test("one object is not a list", () => {
    const format = parseObjectFormat("jsonpath={.metadata.name}", true);
    expect(typeof format === "function" && format([PODS[0]!], true)).toBe("web-10");
  });

  test.each(["jsonpath", "jsonpath={.a[}", "custom-columns=NAME"])("%s is refused", (output) => {
    expect(parseObjectFormat(output, true)).toHaveProperty("problem");
  });
  test("others are left to their printer", () => expect(parseObjectFormat("wide", true)).toBeUndefined());
});
