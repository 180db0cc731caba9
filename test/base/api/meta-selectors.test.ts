import { expect, test } from "bun:test";
import { formatSelector, parseLabelSelector } from "../../../src/base/api/meta.ts";

const WEB = { app: "web", tier: "front", "example.com/team": "a" };

test.each([
  ["", true],
  ["app=web", true],
  ["app==web", true],
  ["app=db", false],
  ["app!=db", true],
  ["missing!=db", true],
  ["app=web,tier=front", true],
  ["app=web, tier=back", false],
  ["app", true],
  ["missing", false],
  ["!missing", true],
  ["!app", false],
  ["app in (web, db)", true],
  ["app in (db)", false],
  ["app notin (db,cache)", true],
  ["missing notin (x)", true],
  ["example.com/team=a,app in (web,db),!legacy", true],
  ["constructor", false],
])("%j matches: %p", (selector, want) => {
  const filter = parseLabelSelector(selector);
  expect("problem" in filter ? filter.problem : filter(WEB)).toBe(want);
});

test.each(["=web", "app=web=x", "app in web", "a b", "app in (a", ","])("%j is none", (selector) => {
  expect(parseLabelSelector(selector)).toHaveProperty("problem");
});

test("a selector is written as one text, sorted by its keys", () => {
  const matchExpressions = [
    { key: "tier", operator: "In" as const, values: ["b", "a"] },
    { key: "x", operator: "DoesNotExist" as const },
    { key: "y", operator: "NotIn" as const, values: ["1"] },
    { key: "z", operator: "Exists" as const },
  ];
  expect(formatSelector({ matchLabels: { app: "web" }, matchExpressions })).toBe(
    "app=web,tier in (a,b),!x,y notin (1),z",
  );
  expect(formatSelector({ tier: "db", app: "web" })).toBe("app=web,tier=db");
});
