import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Summary } from "../../src/base/api/stats-summary.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";

interface NodeObject {
  metadata: { name: string; creationTimestamp: string; labels: Record<string, string> };
  spec: object;
  status: {
    capacity: Record<string, string>;
    allocatable: Record<string, string>;
    conditions: { type: string; status: string; reason: string }[];
    addresses: { type: string; address: string }[];
    nodeInfo: Record<string, string>;
    images: { names: string[]; sizeBytes: number }[];
  };
}

describeWithEngine("/node of the compiled binary", () => {
  test("reports what the machine has, what is set aside, and what it is short of", async () => {
    const node = testNode();
    // No machine has that much, so the soft threshold is met; no pod is evicted for an hour.
    await node.start([
      `--port=${node.kubeletPort}`,
      "--node-ip=192.0.2.7",
      "--node-labels=zone=a",
      "--register-with-taints=edge=yes:NoSchedule",
      "--pods-per-core=3",
      "--system-reserved=cpu=250m,memory=64Mi",
      "--eviction-hard=memory.available<1Mi",
      "--eviction-soft=memory.available<900Ti",
      "--eviction-soft-grace-period=memory.available=1h",
    ]);
    const seen = await node.until("the node to be ready", async () => {
      const now = await node.readJson<NodeObject>("/node");
      return now.status.conditions.at(-1)?.status === "True" && now;
    });
    expect(seen).toMatchObject({
      kind: "Node",
      apiVersion: "v1",
      metadata: { name: node.name, labels: { "kubernetes.io/hostname": node.name, zone: "a" } },
      spec: { taints: [{ key: "edge", value: "yes", effect: "NoSchedule" }] },
      status: { daemonEndpoints: { kubeletEndpoint: { Port: node.kubeletPort } } },
    });
    expect(Math.abs(Date.parse(seen.metadata.creationTimestamp) - Date.now())).toBeLessThan(300_000);
    const { capacity, allocatable, conditions, addresses, nodeInfo, images } = seen.status;
    const cores = navigator.hardwareConcurrency;
    expect(capacity).toMatchObject({ cpu: String(cores), pods: String(3 * cores) });
    expect(allocatable).toMatchObject({ cpu: `${cores * 1000 - 250}m`, pods: String(3 * cores) });
    const kibibytes = Number(/^MemTotal:\s*(\d+) kB/m.exec(readFileSync("/proc/meminfo", "utf8"))![1]);
    expect(inKibibytes(capacity.memory)).toBe(kibibytes);
    expect(inKibibytes(capacity.memory) - inKibibytes(allocatable.memory)).toBeGreaterThanOrEqual(65 * 1024);
    expect(conditions.map(({ type, status }) => `${type} ${status}`).slice(0, 1)).toEqual(["MemoryPressure True"]);
    expect(conditions.at(-1)).toMatchObject({ type: "Ready", status: "True", reason: "KubeletReady" });
    expect(addresses).toEqual([
      { type: "InternalIP", address: "192.0.2.7" },
      { type: "Hostname", address: node.name },
    ]);
    const { ServerVersion: Version } = await node.docker.info();
    expect(nodeInfo.containerRuntimeVersion).toBe(`docker://${Version}`);
    expect(nodeInfo.bootID).toBe(readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
    const { RepoTags, Size } = await node.docker.inspectImage("busybox:test");
    expect(images.find(({ names }) => names.includes("busybox:test"))).toEqual({ names: RepoTags, sizeBytes: Size });
    const summary = await node.readJson<Summary>("/stats/summary");
    const all = await node.docker.listImages();
    const largest = Math.max(...all.map(({ Size }) => Size));
    // Other tests load and remove images at the same time; layers that images share may count once.
    const sum = all.reduce((bytes, { Size }) => bytes + Size, 0);
    expect(summary.node.runtime?.imageFs?.usedBytes).toBeWithin(largest, 2 * sum);
  });
});

/** `16268196Ki`, `8Gi`. */
function inKibibytes(quantity = ""): number {
  const [, amount, unit = ""] = /^(\d+)([KMG]i)$/.exec(quantity) ?? [];
  return Number(amount) * 1024 ** ["Ki", "Mi", "Gi"].indexOf(unit);
}
