import { expect, test } from "bun:test";
import { parseDependsOn } from "../../../src/base/api/depends-on.ts";

test.each([
  ["default/db", [{ namespace: "default", name: "db", condition: "Ready" }]],
  [
    "default/db=Ready, jobs/migrate=Succeeded",
    [
      { namespace: "default", name: "db", condition: "Ready" },
      { namespace: "jobs", name: "migrate", condition: "Succeeded" },
    ],
  ],
  ["a/b.c-1=Running", [{ namespace: "a", name: "b.c-1", condition: "Running" }]],
])("%s", (text, dependencies) => {
  expect(parseDependsOn(text)).toEqual(dependencies as never);
});

test.each(["", "db", "default/db=Up", "default/db=Ready=Ready", "a/b/c", "default/DB", "default/db,,", "/db"])(
  "%j has another format",
  (text) => {
    expect(parseDependsOn(text)).toBeUndefined();
  },
);
