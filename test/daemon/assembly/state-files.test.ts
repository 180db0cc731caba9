import { expect, test } from "bun:test";
import * as v from "valibot";
import { STATE_FILES } from "../../../src/daemon/assembly/state-files.ts";

const status = { phase: "Succeeded", conditions: [], qosClass: "BestEffort" };

test.each([
  ["oom-killed", ["a"], [1]],
  ["pods", [{ uid: "u", name: "web", namespace: "default" }], [{ uid: "u" }]],
  [
    "evictions",
    [["u", { reason: "Evicted", message: "", revision: "r", since: "2026-01-01T00:00:00.000Z" }]],
    [["u", { reason: "Evicted", message: "", revision: "r", since: "yesterday" }]],
  ],
  [
    "conditions",
    [["u", [{ type: "Ready", status: "True", lastProbeTime: null, lastTransitionTime: "2026-01-01T00:00:00Z" }]]],
    [["u", [{ type: "Ready", status: 1 }]]],
  ],
  [
    "completions",
    { u: { runRevision: "r", end: { phase: "Succeeded" }, status } },
    { u: { runRevision: "r", end: { phase: "Running" }, status } },
  ],
  ["images-used", { id: { names: ["busybox"], unusedMs: 0 } }, { id: { names: "busybox", unusedMs: 0 } }],
  ["probes", [["id", { startedAtMs: 1, liveness: "success" }]], [["id", { startedAtMs: 1, liveness: 1 }]]],
  [
    "workloads",
    {
      records: { w: { uid: "u", createdAt: "2026-01-01T00:00:00Z", generation: 1, revisions: {}, pods: [] } },
      claims: {},
    },
    {
      records: { w: { uid: "u", createdAt: "2026-01-01T00:00:00Z", generation: 1, revisions: {}, pods: [null] } },
      claims: {},
    },
  ],
] as const)("%s takes what is written and refuses another shape", (name, good, bad) => {
  expect(v.is(STATE_FILES[name].schema, good)).toBe(true);
  expect(v.is(STATE_FILES[name].schema, bad)).toBe(false);
  expect(v.is(STATE_FILES[name].schema, null)).toBe(false);
});
