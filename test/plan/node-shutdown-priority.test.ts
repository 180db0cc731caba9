import { expect, test } from "bun:test";
import { computePodPriority } from "../../src/plan/node-shutdown.ts";
import { aPod } from "../support/builders.ts";

test.each([
  { when: "neither", spec: {}, want: 0 },
  { when: "a priority", spec: { priority: -7, priorityClassName: "system-node-critical" }, want: -7 },
  { when: "a class of every cluster", spec: { priorityClassName: "system-node-critical" }, want: 2_000_001_000 },
  { when: "an unknown class", spec: { priorityClassName: "gold" }, want: 0 },
  { when: "a class named as a word of JavaScript", spec: { priorityClassName: "constructor" }, want: 0 },
])("$when", ({ spec, want }) => {
  expect(computePodPriority(aPod(spec))).toBe(want);
});
