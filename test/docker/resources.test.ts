import { describe, expect, test } from "bun:test";
import { computeLimitsUpdate } from "../../src/base/model/container-limits.ts";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import {
  clampOomScoreAdj,
  computeContainerLimits,
  computeDeviceRequests,
  computeOomScoreAdj,
  type ResourceSettings,
} from "../../src/docker/resources.ts";
import { aPod, ENGINE, type Json, NODE } from "./mapping-requests.ts";

const limitsOf = (resources: Json, over: Partial<ResourceSettings> = {}, node = NODE) => {
  const pod = aPod({ container: { resources } });
  const settings = { ...DEFAULT_KUBELET_OPTIONS, ...over };
  return computeContainerLimits({ pod, container: pod.spec.containers[0]!, node, settings });
};

describe("cpu → CpuShares, CpuQuota", () => {
  test.each<[Json, number, number]>([
    [{}, 2, 0],
    [{ requests: { cpu: "100m" }, limits: { cpu: "100m" } }, 102, 10_000],
    [{ requests: { cpu: "1500m" }, limits: { cpu: "1500m" } }, 1536, 150_000],
    [{ limits: { cpu: "500m" } }, 512, 50_000],
    [{ requests: { cpu: "1m" }, limits: { cpu: "1m" } }, 2, 1000],
    [{ requests: { cpu: "300m" }, limits: { cpu: "500m" } }, 307, 50_000],
    [{ requests: { cpu: "300" } }, 262_144, 0],
    [{ requests: { cpu: "0" } }, 2, 0],
  ])("%j", (resources, CpuShares, CpuQuota) => {
    expect(limitsOf(resources)).toMatchObject({ CpuShares, CpuQuota, CpuPeriod: 100_000 });
  });
});

describe("memory → Memory, MemorySwap", () => {
  const GI = 1024 ** 3;
  const node = { ...NODE, memoryBytes: 8 * GI, swapBytes: 4 * GI };
  const limited = { memorySwap: "LimitedSwap" } as const;

  test.each<[string, Json, Partial<ResourceSettings>, number, number]>([
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
    [
      "LimitedSwap, request = limit",
      { requests: { cpu: "1", memory: "1Gi" }, limits: { memory: "1Gi" } },
      limited,
      GI,
      GI,
    ],
    [
      "LimitedSwap, Guaranteed",
      { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "1", memory: "1Gi" } },
      limited,
      GI,
      GI,
    ],
    ["LimitedSwap, Burstable without a limit", { requests: { memory: "2Gi" } }, limited, 8 * GI, 9 * GI],
    ["LimitedSwap, BestEffort: none", {}, limited, 8 * GI, 8 * GI],
  ])("%s", (_, resources, over, Memory, MemorySwap) => {
    expect(limitsOf(resources, over, node)).toMatchObject({ Memory, MemorySwap });
  });
});

describe("OOM score", () => {
  const GI = 1024 ** 3;
  const scoreOf = (spec: Json, name = "c") => {
    const pod = aPod({ spec });
    const container = [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find((one) => one.name === name)!;
    return computeOomScoreAdj(pod, container, 10 * GI);
  };
  const withMemory = (request: string, limit?: string) => ({
    containers: [
      {
        name: "c",
        image: "i",
        resources: { requests: { memory: request }, ...(limit && { limits: { memory: limit } }) },
      },
    ],
  });
  const guaranteed = { requests: { cpu: "1", memory: "1Gi" }, limits: { cpu: "1", memory: "1Gi" } };

  test.each<[string, Json, number]>([
    ["BestEffort", {}, 1000],
    ["Guaranteed", { containers: [{ name: "c", image: "i", resources: guaranteed }] }, -997],
    ["Burstable: a tenth of the memory", withMemory("1Gi"), 900],
    ["Burstable: half", withMemory("5Gi"), 500],
    ["Burstable: next to nothing stays below BestEffort", withMemory("1Ki"), 999],
    ["Burstable: everything stays above Guaranteed", withMemory("20Gi"), 3],
    ["a critical pod", { ...withMemory("1Gi"), priorityClassName: "system-cluster-critical" }, -997],
    ["a priority alone makes nothing critical", { ...withMemory("1Gi"), priority: 2_000_001_000 }, 900],
    ["the pod's own request counts for its containers", { resources: { requests: { memory: "2Gi" } } }, 800],
  ])("%s", (_, spec, want) => {
    expect(scoreOf(spec)).toBe(want);
  });

  test("a sidecar does not go before the containers it serves, an init container is on its own", () => {
    const spec = {
      ...withMemory("5Gi"),
      initContainers: [
        { name: "side", image: "i", restartPolicy: "Always" },
        { name: "init", image: "i" },
      ],
    };
    expect(scoreOf(spec, "side")).toBe(500);
    expect(scoreOf(spec, "init")).toBe(999);
  });

  test("a kernel that refuses negative scores gets 0", () => {
    const poor = { ...ENGINE, negativeOomScores: false };
    expect([clampOomScoreAdj(-997, poor), clampOomScoreAdj(900, poor), clampOomScoreAdj(-997, ENGINE)]).toEqual([
      0, 900, -997,
    ]);
  });
});

describe("devices", () => {
  const requestsOf = (limits: Json, cdiDevices?: string[]) =>
    computeDeviceRequests(aPod({ container: { resources: { limits } } }).spec.containers[0]!, {
      ...ENGINE,
      ...(cdiDevices && { cdiDevices }),
    });
  const found = ["nvidia.com/gpu=0", "nvidia.com/gpu=1", "nvidia.com/gpu=all", "acme.com/fpga=a"];

  test.each<[string, Json, string[] | undefined, Json[]]>([
    [
      "a GPU by the engine's GPU driver",
      { "nvidia.com/gpu": "1" },
      undefined,
      [{ Driver: "", Count: 1, Capabilities: [["gpu"]] }],
    ],
    [
      "a GPU by CDI where the engine found any",
      { "nvidia.com/gpu": "2" },
      found,
      [{ Driver: "cdi", DeviceIDs: ["nvidia.com/gpu=0", "nvidia.com/gpu=1"] }],
    ],
    ["any CDI device", { "acme.com/fpga": "1" }, found, [{ Driver: "cdi", DeviceIDs: ["acme.com/fpga=a"] }]],
    ["none", { "nvidia.com/gpu": "0", cpu: "1" }, found, []],
    ["an unknown resource has no effect, as upstream", { "example.com/dongle": "1" }, found, []],
  ])("%s", (_, limits, cdi, want) => {
    expect(requestsOf(limits, cdi)).toEqual(want as never);
  });

  test("more than there are is refused", () => {
    expect(() => requestsOf({ "acme.com/fpga": "2" }, found)).toThrow(
      'resources.limits["acme.com/fpga"]: 2 wanted, the engine has 1',
    );
  });
});

describe("in-place resize", () => {
  const HAVE = { CpuShares: 102, CpuPeriod: 100_000, CpuQuota: 10_000, Memory: 100, MemorySwap: 100 };

  test.each<[string, Partial<typeof HAVE>, Partial<typeof HAVE>, Json | undefined]>([
    ["nothing to do", {}, {}, undefined],
    ["a higher request", {}, { CpuShares: 204 }, { CpuShares: 204 }],
    ["a higher limit", {}, { CpuQuota: 20_000 }, { CpuQuota: 20_000 }],
    ["a limit taken away", {}, { CpuQuota: 0 }, { CpuQuota: -1 }],
    ["a limit that was taken away is gone", { CpuQuota: -1 }, { CpuQuota: 0 }, undefined],
    ["memory", {}, { Memory: 200, MemorySwap: 200 }, { Memory: 200, MemorySwap: 200 }],
    ["swap", {}, { MemorySwap: 150 }, { Memory: 100, MemorySwap: 150 }],
    ["CFS quotas switched off on the node", {}, { CpuPeriod: 0, CpuQuota: 0 }, { CpuQuota: -1 }],
  ])("%s", (_, have, want, body) => {
    expect(computeLimitsUpdate({ ...HAVE, ...have }, { ...HAVE, ...want })).toEqual(body as never);
  });
});
