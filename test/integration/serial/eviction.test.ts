import { expect, test } from "bun:test";
import type { Summary } from "../../../src/base/api/stats-summary.ts";
import { describeWithEngine, testNode } from "../../support/engine.ts";
import { fillerOnce, sleeper } from "../../support/manifests.ts";
import type { TestNode } from "../../support/test-node.ts";

const MI = 2 ** 20;

/** Only the threshold of the test: no default one may evict. */
const flags = (hard: string) => [`--eviction-hard=${hard}`, "--eviction-pressure-transition-period=1s"];

describeWithEngine("eviction", () => {
  test("short of memory: the pod that uses most is evicted, and comes back when there is enough again", async () => {
    const node = testNode();
    node.writeManifest("small.json", sleeper("small", { resources: { requests: { memory: "64Mi" } } }));
    const before = await node.start(flags("memory.available<1Mi"));
    await node.runningContainer("app");
    const threshold = Math.floor((await availableMemory(node)) / MI) - 500;
    await before.stop();
    const kubelet = await node.start(flags(`memory.available<${threshold}Mi`));
    // Memory that cannot be reclaimed: a file on a tmpfs of the pod.
    node.writeManifest("hog.json", fillerOnce("hog", 1000, { medium: "Memory" }, node.directory));
    await node.until("the hog to be evicted", async () => {
      const status = await node.statusOf("hog");
      return status?.phase === "Failed" && /^The node was low on resource: memory\. /.test(status.message ?? "");
    });
    const evicted = kubelet.log.split("\n").filter((line) => line.includes("Evicted"));
    expect(evicted.map((line) => line.includes(`hog-${node.name}`))).toEqual([true]);
    expect((await node.statusOf("small"))?.phase).toBe("Running");
    await node.untilPhase("hog", "Running");
  });
});

/** As the kubelet computes it. Other programs change it too: thresholds of a test are far from it. */
const availableMemory = async (node: TestNode) =>
  (await node.readJson<Summary>("/stats/summary")).node.memory?.availableBytes ?? 0;
