import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { computeQosClass, isCriticalPod } from "../../src/plan/pod-resources.ts";

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
