import { expect, test } from "bun:test";
import type { Container, Pod } from "../../src/base/api/pod.ts";
import { formatMap, resolveFieldRef, resolveResourceFieldRef } from "../../src/plan/downward-api.ts";

const ALLOCATABLE = { cpuMillis: 3500, memoryBytes: 2 ** 31, ephemeralStorageBytes: 2 ** 40 };
const pod = {
  metadata: { name: "p", labels: { b: "2", a: "1" }, annotations: { "x/y": 'say "hi"\n' } },
  spec: {
    containers: [
      { name: "app", resources: { limits: { "hugepages-2Mi": "4Mi", memory: "0" } } },
      { name: "big", resources: { limits: { cpu: "2" }, requests: { "ephemeral-storage": "1Gi" } } },
    ],
    initContainers: [{ name: "init", resources: { limits: { memory: "1Mi" } } }],
  },
} as unknown as Pod;

test("whole maps are sorted and quoted, without a last line feed", () => {
  const fieldOf = (fieldPath: string) => resolveFieldRef({ apiVersion: "v1", fieldPath }, pod);
  expect(fieldOf("metadata.labels")).toEqual({ value: 'a="1"\nb="2"' });
  expect(fieldOf("metadata.annotations")).toEqual({ value: 'x/y="say \\"hi\\"\\n"' });
  expect(formatMap({})).toBe("");
});

test("addresses are for env only", () => {
  expect(resolveFieldRef({ apiVersion: "v1", fieldPath: "status.podIP" }, pod)).toEqual({
    problem: "unsupported fieldPath: status.podIP",
  });
});

test.each<[string, string | undefined, string, string]>([
  ["limits.cpu", "app", "1m", "3500"],
  ["limits.cpu", "big", "1m", "2000"],
  ["limits.memory", "app", "1Gi", "2"],
  ["limits.memory", "init", "1Ki", "1024"],
  ["limits.ephemeral-storage", "app", "0", String(2 ** 40)],
  ["requests.ephemeral-storage", "big", "1Mi", "1024"],
  ["requests.memory", "big", "0", "0"],
  ["limits.hugepages-2Mi", "app", "1Mi", "4"],
  ["limits.hugepages-1Gi", "app", "0", "0"],
])("%s of %s in units of %s is %s", (resource, containerName, divisor, want) => {
  const selector = { resource, divisor, ...(containerName && { containerName }) };
  expect(resolveResourceFieldRef(selector, pod, undefined, ALLOCATABLE)).toEqual({ value: want });
});

test("unsupported fields", () => {
  const ask = (resource: string, container?: Container) =>
    resolveResourceFieldRef({ resource, divisor: "0" }, pod, container, ALLOCATABLE);
  expect(ask("limits.cpu")).toEqual({ problem: "container  not found" });
  expect(ask("limits.gpu", pod.spec.containers[0])).toEqual({ problem: "unsupported container resource : limits.gpu" });
  expect(ask("cpu", pod.spec.containers[0])).toEqual({ problem: "unsupported container resource : cpu" });
});
