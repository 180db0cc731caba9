import { expect, test } from "bun:test";
import type { Pod, ResourceRequirements } from "../../src/base/api/pod.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import {
  allocationOf,
  computeActualResources,
  computeContainerLimits,
  computeLimitsUpdate,
  computeQosClass,
  isCriticalPod,
  withAllocation,
} from "../../src/plan/pod-resources.ts";
import { aPod, type Json, NODE } from "../docker/mapping-requests.ts";
import { aContainer, aPod as aPodOf, NO_LIMITS } from "../support/builders.ts";

const limitsOf = (resources: Json, over: Partial<typeof DEFAULT_KUBELET_OPTIONS> = {}, node = NODE) => {
  const pod = aPod({ container: { resources } });
  const settings = { ...DEFAULT_KUBELET_OPTIONS, ...over };
  return computeContainerLimits({ pod, container: pod.spec.containers[0]!, node, settings });
};

test.each<[Json, number, number]>([
  [{}, 2, 0],
  [{ requests: { cpu: "100m" }, limits: { cpu: "100m" } }, 102, 10_000],
  [{ requests: { cpu: "1500m" }, limits: { cpu: "1500m" } }, 1536, 150_000],
  [{ limits: { cpu: "500m" } }, 512, 50_000],
  [{ requests: { cpu: "1m" }, limits: { cpu: "1m" } }, 2, 1000],
  [{ requests: { cpu: "300m" }, limits: { cpu: "500m" } }, 307, 50_000],
  [{ requests: { cpu: "300" } }, 262_144, 0],
  [{ requests: { cpu: "0" } }, 2, 0],
])("cpu → shares and quota: %j", (resources, cpuShares, cpuQuotaUs) => {
  expect(limitsOf(resources)).toMatchObject({ cpuShares, cpuQuotaUs, cpuPeriodUs: 100_000 });
});

const GI = 1024 ** 3;
const node = { ...NODE, memoryBytes: 8 * GI, swapBytes: 4 * GI };
const limited = { memorySwap: "LimitedSwap" } as const;

test.each<[string, Json, Partial<typeof DEFAULT_KUBELET_OPTIONS>, number, number]>([
  ["no limit", {}, {}, 0, 0],
  ["decimal", { limits: { memory: "128M" } }, {}, 128_000_000, 128_000_000],
  ["a fraction is rounded up", { limits: { memory: "1.1Mi" } }, {}, 1_153_434, 1_153_434],
  ["more than the engine can count", { limits: { memory: "16Ei" } }, {}, 2 ** 63 - 1024, 2 ** 63 - 1024],
  ["NoSwap", { requests: { memory: "1Gi" }, limits: { memory: "2Gi" } }, {}, 2 * GI, 2 * GI],
  [
    "LimitedSwap: an eighth of the memory, an eighth of the swap",
    { requests: { memory: "1Gi" }, limits: { memory: "2Gi" } },
    limited,
    2 * GI,
    2.5 * GI,
  ],
  ["LimitedSwap, as requested", { requests: { cpu: "1", memory: "1Gi" }, limits: { memory: "1Gi" } }, limited, GI, GI],
  ["Guaranteed", { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "1", memory: "1Gi" } }, limited, GI, GI],
  ["LimitedSwap, Burstable without a limit", { requests: { memory: "2Gi" } }, limited, 8 * GI, 9 * GI],
  ["LimitedSwap, BestEffort: none", {}, limited, 8 * GI, 8 * GI],
])("memory → memory and swap: %s", (_, resources, over, memoryBytes, memorySwapBytes) => {
  expect(limitsOf(resources, over, node)).toMatchObject({ memoryBytes, memorySwapBytes });
});

const HAVE = { cpuShares: 102, cpuPeriodUs: 100_000, cpuQuotaUs: 10_000, memoryBytes: 100, memorySwapBytes: 100 };

test.each<[string, Partial<typeof HAVE>, Partial<typeof HAVE>, Json | undefined]>([
  ["nothing to do", {}, {}, undefined],
  ["a higher request", {}, { cpuShares: 204 }, { cpuShares: 204 }],
  ["a higher limit", {}, { cpuQuotaUs: 20_000 }, { cpuQuotaUs: 20_000 }],
  ["a limit taken away", {}, { cpuQuotaUs: 0 }, { cpuQuotaUs: 0 }],
  ["a limit that was taken away is gone", { cpuQuotaUs: -1 }, { cpuQuotaUs: 0 }, undefined],
  ["memory", {}, { memoryBytes: 200, memorySwapBytes: 200 }, { memoryBytes: 200, memorySwapBytes: 200 }],
  ["swap", {}, { memorySwapBytes: 150 }, { memoryBytes: 100, memorySwapBytes: 150 }],
  ["CFS quotas switched off on the node", {}, { cpuPeriodUs: 0, cpuQuotaUs: 0 }, { cpuQuotaUs: 0 }],
  ["CFS quotas switched on, without a limit", { cpuPeriodUs: 0, cpuQuotaUs: 0 }, { cpuQuotaUs: 0 }, undefined],
])("in-place resize: %s", (_, have, want, body) => {
  expect(computeLimitsUpdate({ ...HAVE, ...have }, { ...HAVE, ...want })).toEqual(body as never);
});

const asking = (cpu: string, spec: Partial<Pod["spec"]> = {}) =>
  aPodOf({ containers: [aContainer({ resources: { requests: { cpu } } })], ...spec });

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

type Resources = { requests?: Record<string, string>; limits?: Record<string, string> };

const podOf = (containers: Resources[], initContainers: Resources[] = [], resources?: Resources, spec: object = {}) =>
  ({
    metadata: {},
    spec: {
      containers: containers.map((one) => ({ name: "c", resources: one })),
      initContainers: initContainers.map((one) => ({ name: "i", resources: one })),
      ...(resources && { resources }),
      ...spec,
    },
  }) as unknown as Pod;

const FULL = { requests: { cpu: "10m", memory: "8Mi" }, limits: { cpu: "10m", memory: "8Mi" } };

test.each<[string, Pod, string]>([
  ["nothing", podOf([{}]), "BestEffort"],
  ["ephemeral storage alone", podOf([{ limits: { "ephemeral-storage": "1Gi" } }]), "BestEffort"],
  ["cpu 0", podOf([{ requests: { cpu: "0" } }]), "BestEffort"],
  ["all limited", podOf([FULL]), "Guaranteed"],
  ["only cpu limited", podOf([{ requests: { cpu: "10m" }, limits: { cpu: "10m" } }]), "Burstable"],
  ["one of two containers", podOf([FULL, {}]), "Burstable"],
  ["a request below its limit", podOf([{ ...FULL, requests: { cpu: "5m", memory: "8Mi" } }]), "Burstable"],
  ["an init container without", podOf([FULL], [{}]), "Burstable"],
  ["an init container with", podOf([FULL], [FULL]), "Guaranteed"],
  [
    "the same amount written otherwise",
    podOf([{ requests: { cpu: "1", memory: "1Mi" }, limits: { cpu: "1000m", memory: "1048576" } }]),
    "Guaranteed",
  ],
  ["resources of the pod decide alone", podOf([{}], [], FULL), "Guaranteed"],
  ["resources of the pod, a request only", podOf([FULL], [], { requests: { cpu: "1" } }), "Burstable"],
  [
    "resources of the pod that name neither cpu nor memory",
    podOf([FULL], [], { limits: { "hugepages-2Mi": "2Mi" } }),
    "Guaranteed",
  ],
])("%s", (_, pod, want) => {
  expect(computeQosClass(pod)).toBe(want as ReturnType<typeof computeQosClass>);
});

test("critical only by priority class, not by being static or by a number", () => {
  const criticalOf = (spec: object) => isCriticalPod(podOf([{}], [], undefined, spec));
  expect(criticalOf({ priorityClassName: "system-node-critical" })).toBe(true);
  expect(criticalOf({ priorityClassName: "system-cluster-critical" })).toBe(true);
  expect(criticalOf({ priorityClassName: "high" })).toBe(false);
  expect(criticalOf({ priority: 2_000_001_000 })).toBe(false);
  expect(criticalOf({})).toBe(false);
});
