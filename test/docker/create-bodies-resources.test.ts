import { describe, expect, test } from "bun:test";
import { computeDeviceRequests, computeOomScoreAdj, toUpdateBody } from "../../src/docker/create-bodies.ts";
import { aPod, ENGINE, type Json } from "./mapping-requests.ts";

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
      "a GPU by CDI where the engine found any",
      { "nvidia.com/gpu": "2" },
      found,
      [{ Driver: "cdi", DeviceIDs: ["nvidia.com/gpu=0", "nvidia.com/gpu=1"] }],
    ],
    ["any CDI device", { "acme.com/fpga": "1" }, found, [{ Driver: "cdi", DeviceIDs: ["acme.com/fpga=a"] }]],
    [
      "a CDI device by its name",
      { "nvidia.com/gpu=all": "1" },
      found,
      [{ Driver: "cdi", DeviceIDs: ["nvidia.com/gpu=all"] }],
    ],
    [
      "all GPUs without CDI",
      { "nvidia.com/gpu=all": "1" },
      undefined,
      [{ Driver: "", Count: -1, Capabilities: [["gpu"]] }],
    ],
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

test("an update names what changes, and takes a quota away by -1", () => {
  expect(JSON.stringify(toUpdateBody({ cpuQuotaUs: 0, memoryBytes: 5 }))).toBe('{"CpuQuota":-1,"Memory":5}');
});
