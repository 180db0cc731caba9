import { describe, expect, test } from "bun:test";
import type { NodeObject } from "../../../src/apiserver/printers/node-row.ts";
import type { PodSummary, Summary } from "../../../src/base/api/stats-summary.ts";
import { toNodeUsageRow, toUsageRows, toUsageSum } from "../../../src/cli/commands/top.ts";

const time = "2026-11-21T08:30:00Z";
const MI = 2 ** 20;

const uses = (nanoCores: number | undefined, bytes: number | undefined) => ({
  cpu: { time, ...(nanoCores !== undefined && { usageNanoCores: nanoCores }) },
  memory: { time, ...(bytes !== undefined && { workingSetBytes: bytes }) },
});

const A: PodSummary = {
  podRef: { name: "a-node1", namespace: "default", uid: "a" },
  startTime: time,
  ...uses(1_200_000, 10.9 * MI),
  containers: [
    { name: "x", startTime: time, ...uses(200_000, 9 * MI) },
    { name: "y", startTime: time, ...uses(1_000_000, 1 * MI) },
  ],
};
const B: PodSummary = {
  podRef: { name: "b-node1", namespace: "prod", uid: "b" },
  startTime: time,
  ...uses(500_000_000, 2 * MI),
  containers: null,
};
const NEW: PodSummary = {
  podRef: { name: "new-node1", namespace: "default", uid: "n" },
  startTime: time,
  ...uses(undefined, undefined),
  containers: [],
};

describe("what pods use", () => {
  test("a share of a thousandth counts as one, a share of a Mi as none", () => {
    expect(toUsageRows([A, B, NEW], undefined, false)).toEqual([
      { namespace: "default", cells: ["a-node1", "2m", "10Mi"] },
      { namespace: "prod", cells: ["b-node1", "500m", "2Mi"] },
      { namespace: "default", cells: ["new-node1", "<unknown>", "<unknown>"] },
    ]);
  });

  test.each([
    ["cpu", ["b-node1", "a-node1", "new-node1"]],
    ["memory", ["a-node1", "b-node1", "new-node1"]],
  ] as const)("by %s", (order, want) => {
    expect(toUsageRows([A, B, NEW], order, false).map(({ cells }) => cells[0]!)).toEqual([...want]);
  });

  test("each container", () => {
    expect(toUsageRows([A, B], "cpu", true).map(({ cells }) => cells)).toEqual([
      ["a-node1", "y", "1m", "1Mi"],
      ["a-node1", "x", "1m", "9Mi"],
    ]);
  });

  test("the sum is that of the figures, not of what was rounded", () => {
    expect(toUsageSum([A, B, NEW])).toEqual(["502m", "12Mi"]);
  });
});

describe("what the node uses", () => {
  const summary: Summary = {
    node: { nodeName: "node1", startTime: time, ...uses(1_000_000_000, 2048 * MI) },
    pods: [],
  };
  const node: NodeObject = {
    kind: "Node",
    apiVersion: "v1",
    metadata: { name: "node1" },
    spec: {},
    status: { capacity: { cpu: "4", memory: "8Gi" }, allocatable: { cpu: "2500m", memory: "4096Mi" } },
  };

  test.each([
    ["of what pods may have", false, ["node1", "1000m", "40%", "2048Mi", "50%"]],
    ["of all there is", true, ["node1", "1000m", "25%", "2048Mi", "25%"]],
  ])("%s", (_, ofCapacity, want) => {
    expect(toNodeUsageRow(summary, node, ofCapacity)).toEqual(want);
  });

  test("no figures yet", () => {
    const nothing: Summary = { node: { nodeName: "node1", startTime: time }, pods: [] };
    expect(toNodeUsageRow(nothing, node, false)).toEqual(["node1", ...Array<string>(4).fill("<unknown>")]);
  });
});
