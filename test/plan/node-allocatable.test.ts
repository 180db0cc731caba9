import { expect, test } from "bun:test";
import { DEFAULT_KUBELET_OPTIONS } from "../../src/config/option-table.ts";
import { computeKubepodsBounds, computeNodeAllocatable } from "../../src/plan/node-allocatable.ts";

const NODE = { cpuCount: 2, memoryBytes: 25_276_502_016 };
const MI = 1024 * 1024;

test.each([
  { when: "nothing reserved: the recorded kubelet's figures", options: {}, cpu: 2000, memory: 25_171_644_416 },
  {
    when: "both reservations count",
    options: { systemReserved: { cpu: "250m", memory: "100Mi" }, kubeReserved: { cpu: "250m", memory: "28Mi" } },
    cpu: 1500,
    memory: 25_171_644_416 - 128 * MI,
  },
  { when: "no threshold", options: { evictionHard: [] }, cpu: 2000, memory: NODE.memoryBytes },
  {
    when: "a threshold in per cent",
    options: { evictionHard: [{ signal: "memory.available" as const, percentage: 10 }] },
    cpu: 2000,
    memory: NODE.memoryBytes - 2_527_650_201,
  },
])("$when", ({ options, cpu, memory }) => {
  const allocatable = computeNodeAllocatable(NODE, { ...DEFAULT_KUBELET_OPTIONS, ...options });
  expect(allocatable).toEqual({ cpuMillis: cpu, memoryBytes: memory });
});

test("all pods together are bounded by what is not reserved; eviction thresholds do not count", () => {
  const node = { cpuCount: 2, memoryBytes: 8 * 1024 ** 3, pidLimit: 32768 };
  const none = { systemReserved: {}, kubeReserved: {} };
  expect(computeKubepodsBounds(node, none)).toEqual({ cpuMillis: 2000, memoryBytes: 8 * 1024 ** 3, pids: 32768 });
  const reserved = { systemReserved: { cpu: "500m", memory: "1Gi", pid: "1000" }, kubeReserved: { memory: "1Gi" } };
  expect(computeKubepodsBounds(node, reserved)).toEqual({
    cpuMillis: 1500,
    memoryBytes: 6 * 1024 ** 3,
    pids: 31768,
  });
});
