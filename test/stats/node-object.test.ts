import { describe, expect, test } from "bun:test";
import type { NodeSignals } from "../../src/model/node-signals.ts";
import { metThresholds, NodeConditions, type NodeObjectFacts } from "../../src/stats/node-object.ts";
import { aNode, aServerWorld } from "../server/a-context.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { layTree } from "./lay-tree.ts";

const tree = layTree("cgroup-v2", tempDirs()());
const GI = 2 ** 30;

const signals = (memoryAvailable: number): NodeSignals => ({
  "memory.available": { capacity: 16 * GI, available: memoryAvailable },
  "nodefs.available": { capacity: 100 * GI, available: 9 * GI },
});

test.each([
  { when: "as much as the threshold", threshold: { signal: "memory.available", quantity: GI }, memory: GI, want: 0 },
  { when: "less than the threshold", threshold: { signal: "memory.available", quantity: GI }, memory: GI - 1, want: 1 },
  { when: "less than the share", threshold: { signal: "nodefs.available", percentage: 10 }, memory: 0, want: 1 },
  { when: "just the share", threshold: { signal: "nodefs.available", percentage: 9 }, memory: 0, want: 0 },
  { when: "a signal that cannot be read", threshold: { signal: "pid.available", quantity: 1 }, memory: 0, want: 0 },
] as const)("$when: met $want times", ({ threshold, memory, want }) => {
  expect(metThresholds(signals(memory), [threshold])).toHaveLength(want);
});

describe("conditions", () => {
  const facts: NodeObjectFacts = { ...aNode, evictionHard: [{ signal: "memory.available", quantity: GI }] };

  function setUp() {
    const clock = new FakeClock("2026-11-21T06:40:00.500Z");
    const conditions = new NodeConditions(clock);
    const at = (available: number, more: Partial<NodeObjectFacts> = {}) =>
      conditions.conditions(signals(available), { ...facts, ...more }) as {
        type: string;
        status: string;
        reason: string;
        message: string;
        lastTransitionTime: string;
      }[];
    return { clock, at };
  }

  test("of a node that is well, with upstream's words", () => {
    const { at } = setUp();
    expect(at(2 * GI).map(({ type, status, reason }) => `${type} ${status} ${reason}`)).toEqual([
      "MemoryPressure False KubeletHasSufficientMemory",
      "DiskPressure False KubeletHasNoDiskPressure",
      "PIDPressure False KubeletHasSufficientPID",
      "Ready True KubeletReady",
    ]);
  });

  test("a pressure is told at once, and until the transition period is over after it passed", async () => {
    const { clock, at } = setUp();
    at(2 * GI);
    await clock.advance(60_000);
    expect(at(0)[0]).toMatchObject({
      status: "True",
      reason: "KubeletHasInsufficientMemory",
      lastTransitionTime: "2026-11-21T06:41:00Z",
    });
    await clock.advance(299_000);
    expect(at(2 * GI)[0]).toMatchObject({ status: "True", lastTransitionTime: "2026-11-21T06:41:00Z" });
    await clock.advance(2_000);
    expect(at(2 * GI)[0]).toMatchObject({ status: "False", lastTransitionTime: "2026-11-21T06:46:01Z" });
  });

  test("a kubelet in trouble is not ready and says why", () => {
    const { at } = setUp();
    expect(at(2 * GI, { trouble: "no look at the engine for 3m0s" }).at(-1)).toMatchObject({
      status: "False",
      reason: "KubeletNotReady",
      message: "no look at the engine for 3m0s",
    });
  });
});

test("the node of the tree", () => {
  const { context } = aServerWorld(tree);
  expect(context.node!()).toMatchObject({
    kind: "Node",
    metadata: { name: "node1", labels: { "kubernetes.io/hostname": "node1", zone: "a" } },
    spec: {},
    status: {
      capacity: {
        cpu: "4",
        memory: "16268196Ki",
        pods: "110",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": "16Mi",
      },
      allocatable: { cpu: "3500m", memory: "8388608Ki" },
      addresses: [
        { type: "InternalIP", address: "192.0.2.7" },
        { type: "Hostname", address: "box" },
      ],
      daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
      nodeInfo: {
        machineID: "3d1219c7c4c5404aaa1f6d2a48adfda4",
        kernelVersion: "6.8.0-45-generic",
        osImage: "Ubuntu 24.04.1 LTS",
        containerRuntimeVersion: "docker://20.10.24",
        kubeletVersion: "v0.1.0",
      },
    },
  });
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
