import { describe, expect, test } from "bun:test";
import { type NodeObjectFacts, toNodeConditions, toNodeObject } from "../../src/server/node-object.ts";
import { layTree } from "../stats/lay-tree.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { aNode, aServerWorld } from "./a-context.ts";

const tree = layTree("cgroup-v2", tempDirs()());
const NOW = new Date("2026-11-21T06:40:00.500Z");

describe("conditions", () => {
  const conditions = (facts: Pick<NodeObjectFacts, "pressures" | "ready">) =>
    toNodeConditions(facts, NOW).map(
      ({ type, status, reason, message, lastTransitionTime, lastHeartbeatTime }) =>
        `${type} ${status} ${reason}: ${message} (${lastTransitionTime}, ${lastHeartbeatTime})`,
    );
  const since = new Date("2026-11-21T06:30:00.700Z");
  const KINDS = ["PIDPressure", "MemoryPressure", "DiskPressure"] as const;

  test.each([
    {
      node: "a node that is well, in upstream's order and words",
      is: false,
      runtimeError: undefined,
      want: [
        "MemoryPressure False KubeletHasSufficientMemory: kubelet has sufficient memory available",
        "DiskPressure False KubeletHasNoDiskPressure: kubelet has no disk pressure",
        "PIDPressure False KubeletHasSufficientPID: kubelet has sufficient PID available",
        "Ready True KubeletReady: kubelet is posting ready status",
      ],
    },
    {
      node: "a node short of everything, and of a kubelet with errors",
      is: true,
      runtimeError: "containers were last listed 200 s ago",
      want: [
        "MemoryPressure True KubeletHasInsufficientMemory: kubelet has insufficient memory available",
        "DiskPressure True KubeletHasDiskPressure: kubelet has disk pressure",
        "PIDPressure True KubeletHasInsufficientPID: kubelet has insufficient PID available",
        "Ready False KubeletNotReady: containers were last listed 200 s ago",
      ],
    },
  ])("of $node", ({ is, runtimeError, want }) => {
    const pressures = new Map(KINDS.map((kind) => [kind, { is, since }]));
    const shown = conditions({ pressures, ready: { runtimeError, since } });
    expect(shown).toEqual(want.map((line) => `${line} (2026-11-21T06:30:00Z, 2026-11-21T06:40:00Z)`));
  });
});

const cadvisor = aServerWorld(tree).cadvisor.facts.forNodeObject();
const capacity = { capacityBytes: 100 * 2 ** 30, usedBytes: 0, availableBytes: 0, inodes: 0, inodesFree: 0 };

test("the whole node, key by key", () => {
  const node = toNodeObject(
    {
      ...aNode,
      taints: [
        { key: "edge", value: "", effect: "NoSchedule" },
        { key: "a", value: "b", effect: "NoExecute" },
      ],
      runtimes: { names: ["runsc", "runc"], recursiveReadOnlyMounts: true },
    },
    { ...cadvisor, nodeFs: capacity },
    NOW,
  );
  expect(node).toEqual({
    kind: "Node",
    apiVersion: "v1",
    metadata: {
      name: "node1",
      creationTimestamp: "2026-11-20T12:00:00Z",
      labels: { "kubernetes.io/hostname": "node1", zone: "a" },
    },
    spec: {
      taints: [
        { key: "edge", effect: "NoSchedule" },
        { key: "a", value: "b", effect: "NoExecute" },
      ],
    },
    status: {
      capacity: {
        cpu: "4",
        "ephemeral-storage": "100Gi",
        memory: "16268196Ki",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "16Mi",
        pods: "110",
      },
      allocatable: {
        cpu: "3500m",
        "ephemeral-storage": String(50 * 2 ** 30),
        memory: "8Gi",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "16Mi",
        pods: "110",
      },
      conditions: toNodeConditions(aNode, NOW),
      addresses: [
        { type: "InternalIP", address: "192.0.2.7" },
        { type: "Hostname", address: "node1" },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      nodeInfo: {
        machineID: "3d1219c7c4c5404aaa1f6d2a48adfda4",
        systemUUID: cadvisor.machine.system_uuid,
        bootID: cadvisor.machine.boot_id,
        kernelVersion: "6.8.0-45-generic",
        osImage: "Ubuntu 24.04.1 LTS",
        containerRuntimeVersion: "docker://20.10.24",
        kubeletVersion: "v0.1.0",
        kubeProxyVersion: "",
        operatingSystem: "linux",
        architecture: process.arch === "x64" ? "amd64" : process.arch,
      },
      images: [
        { names: ["web@sha256:d", "web:1", "web:2", "web:3", "web:4"], sizeBytes: 70_000_000 },
        { names: ["busybox:1"], sizeBytes: 4_000_000 },
      ],
      runtimeHandlers: ["", "runc", "runsc"].map((name) => ({
        name,
        features: { recursiveReadOnlyMounts: true, userNamespaces: false },
      })),
      features: { supplementalGroupsPolicy: false },
    },
  });
});

test("what is not known is left out", () => {
  const node = toNodeObject(
    { ...aNode, images: undefined, createdAt: undefined },
    { ...cadvisor, nodeFs: undefined },
    NOW,
  );
  expect(node).toMatchObject({ metadata: { creationTimestamp: null }, spec: {} });
  const { status } = node as { status: { capacity: object } };
  expect(Object.keys(status)).not.toContain("images");
  expect(Object.keys(status.capacity)).toEqual(["cpu", "memory", "hugepages-1Gi", "hugepages-2Mi", "pods"]);
});

test("what is left is measured", () => {
  const seen = aServerWorld(tree).stats.signals();
  expect(seen["memory.available"]).toEqual({
    capacity: 16_268_196 * 1024,
    available: 16_268_196 * 1024 - ((16_268_196 - 10_123_456) * 1024 - 1_610_612_736),
  });
  expect(seen["pid.available"]).toEqual({ capacity: 4_194_304, available: 4_194_304 - 413 });
  expect(seen["nodefs.available"]!.capacity).toBeGreaterThan(0);
});

const sized = (...sizes: number[]) => sizes.map((sizeBytes) => ({ names: [`i:${sizeBytes}`], sizeBytes }));

test.each([
  { maxImages: 2, images: [...sized(1, 1, 2), { names: [], sizeBytes: 9 }], want: [2, 1] },
  { maxImages: -1, images: [...sized(1, 1, 2), { names: [], sizeBytes: 9 }], want: [2, 1, 1] },
  { maxImages: undefined, images: sized(...Array(60).keys()), want: Array.from({ length: 50 }, (_, at) => 59 - at) },
])(
  "--node-status-max-images=$maxImages: the biggest; images without a name are left out",
  ({ images, maxImages, want }) => {
    const facts = { ...aNode, images, ...(maxImages !== undefined && { maxImages }) };
    const { status } = toNodeObject(facts, cadvisor, NOW) as { status: { images: { sizeBytes: number }[] } };
    expect(status.images.map(({ sizeBytes }) => sizeBytes)).toEqual([...want]);
  },
);
