import { expect, test } from "bun:test";
import type { Pod, ResourceRequirements } from "../../src/base/api/pod.ts";
import { allocationOf, computeActualResources, withAllocation } from "../../src/plan/pod-resize.ts";
import { aContainer, aPod, NO_LIMITS } from "../support/builders.ts";

const asking = (cpu: string, spec: Partial<Pod["spec"]> = {}) =>
  aPod({ containers: [aContainer({ resources: { requests: { cpu } } })], ...spec });

test("a pod with the resources it was admitted with, and its edited rest", () => {
  const edited = asking("3", { hostname: "other", resources: { requests: { cpu: "4" } } });
  const { spec } = withAllocation(edited, { app: { requests: { cpu: "1" } }, "": { requests: { cpu: "2" } } });
  expect(spec.containers[0]?.resources).toEqual({ requests: { cpu: "1" } });
  expect([spec.hostname, spec.resources]).toEqual(["other", { requests: { cpu: "2" } }]);
  expect(withAllocation(edited, allocationOf(edited))).toBe(edited);
  // A container that was added holds nothing yet.
  expect(withAllocation(edited, { gone: {} })).toBe(edited);
});

const ALLOCATED: ResourceRequirements = {
  requests: { cpu: "100m", memory: "32Mi" },
  limits: { cpu: "500m", memory: "64Mi", "example.com/device": "1" },
};
const WANTED = {
  cpuShares: 102,
  cpuPeriodUs: 100_000,
  cpuQuotaUs: 50_000,
  memoryBytes: 2 ** 26,
  memorySwapBytes: 2 ** 26,
};

test.each([
  ["that is not running: what it is to get", undefined, {}, {}],
  ["that has it all", {}, {}, {}],
  ["without swap accounting", { memorySwapBytes: -1 }, {}, {}],
  ["with another request", { cpuShares: 1024 }, { cpu: "1" }, {}],
  ["with other limits", { cpuQuotaUs: 25_000, memoryBytes: 2 ** 25 }, {}, { cpu: "250m", memory: "32Mi" }],
  ["without limits", { cpuQuotaUs: 0, memoryBytes: 0 }, {}, {}],
])("resources in force of a container %s", (_, inForce, requests, limits) => {
  expect(computeActualResources(ALLOCATED, inForce && { ...WANTED, ...inForce }, WANTED)).toEqual({
    requests: { ...ALLOCATED.requests, ...requests },
    limits: { ...ALLOCATED.limits, ...limits },
  });
});

test("a resource that was not asked for is not shown", () => {
  const given = computeActualResources({ requests: { memory: "1Mi" } }, { ...WANTED, cpuShares: 512 }, NO_LIMITS);
  expect(given).toEqual({ requests: { memory: "1Mi" } });
});
