import { expect, test } from "bun:test";
import { formatAccessModes, formatLabelSelector, formatLabels } from "../../../src/apiserver/kinds/columns.ts";

test("labels are sorted, and none are said so", () => {
  expect(formatLabels({ b: "2", a: "1" })).toBe("a=1,b=2");
  expect([formatLabels({}), formatLabels(undefined)]).toEqual(["<none>", "<none>"]);
});

test("a selector is written as kubectl takes it", () => {
  const matchExpressions = [
    { key: "tier", operator: "In", values: ["b", "a"] },
    { key: "x", operator: "DoesNotExist" },
    { key: "y", operator: "NotIn", values: ["1"] },
    { key: "z", operator: "Exists" },
  ];
  expect(formatLabelSelector({ matchLabels: { app: "web" }, matchExpressions })).toBe(
    "app=web,tier in (a,b),!x,y notin (1),z",
  );
  expect(formatLabelSelector(undefined)).toBe("<none>");
});

test("access modes are abbreviated", () => {
  expect(formatAccessModes(["ReadWriteOnce", "ReadOnlyMany"])).toBe("RWO,ROX");
});
