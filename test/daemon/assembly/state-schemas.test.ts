import { expect, test } from "bun:test";
import * as v from "valibot";
import {
  CompletionsSchema,
  ContainerIdsSchema,
  EvictionsSchema,
  KnownImagesSchema,
  PodsToCleanUpSchema,
  ProbeResultsSchema,
  WorkloadsSchema,
} from "../../../src/daemon/assembly/state-schemas.ts";

const schemas = {
  CompletionsSchema,
  ContainerIdsSchema,
  EvictionsSchema,
  KnownImagesSchema,
  PodsToCleanUpSchema,
  ProbeResultsSchema,
  WorkloadsSchema,
};

const status = { phase: "Succeeded", conditions: [], qosClass: "BestEffort" };

test.each([
  ["ContainerIdsSchema", ["a"], [1]],
  ["PodsToCleanUpSchema", [{ uid: "u", name: "web", namespace: "default" }], [{ uid: "u" }]],
  [
    "EvictionsSchema",
    [["u", { reason: "Evicted", message: "", revision: "r", since: "2026-01-01T00:00:00.000Z" }]],
    [["u", { reason: "Evicted", message: "", revision: "r", since: "yesterday" }]],
  ],
  [
    "CompletionsSchema",
    { u: { runRevision: "r", end: { phase: "Succeeded" }, status } },
    { u: { runRevision: "r", end: { phase: "Running" }, status } },
  ],
  ["KnownImagesSchema", { id: { names: ["busybox"], unusedMs: 0 } }, { id: { names: "busybox", unusedMs: 0 } }],
  ["ProbeResultsSchema", [["id", { startedAtMs: 1, liveness: "success" }]], [["id", { startedAtMs: 1, liveness: 1 }]]],
  [
    "WorkloadsSchema",
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
  expect(v.is(schemas[name], good)).toBe(true);
  expect(v.is(schemas[name], bad)).toBe(false);
  expect(v.is(schemas[name], null)).toBe(false);
});
