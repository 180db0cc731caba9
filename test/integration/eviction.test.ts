import { expect, test } from "bun:test";
import { join } from "node:path";
import { readTextIfExists } from "../../src/base/files/whole-file.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { fillerOnce, HOST, sleeper } from "../support/manifests.ts";

/** No default threshold may evict. */
const flags = (transition: string) => [
  "--eviction-hard=memory.available<1Mi",
  `--eviction-pressure-transition-period=${transition}`,
];

describeWithEngine("eviction", () => {
  test("an emptyDir over its sizeLimit evicts its pod, which stays away through kill -9 and comes back with an empty one", async () => {
    const node = testNode();
    node.writeManifest("full.json", fillerOnce("full", 8, { sizeLimit: "4Mi" }, node.directory));
    node.writeManifest("modest.json", sleeper("modest", {}, HOST));
    const first = await node.start(flags("1h"));
    const message = 'Usage of EmptyDir volume "data" exceeds the limit "4Mi". ';
    await node.until("the pod to be evicted", async () => {
      const status = await node.statusOf("full");
      return status?.phase === "Failed" && status.reason === "Evicted" && status.message === message;
    });
    expect((await node.statusOf("modest"))?.phase).toBe("Running");
    const evicted = await node.statusOf("full");
    // It is shown before it is on the disk: what is killed in between knows nothing of it.
    const stored = join(node.rootDir, "state", `evictions-${node.name}.json`);
    await node.until("the eviction to be stored", async () => readTextIfExists(stored, 65_536)?.includes('"Evicted"'));
    await first.kill();
    const second = await node.start(flags("1h"));
    await node.untilPhase("modest", "Running");
    expect(await node.statusOf("full")).toEqual(evicted);
    await second.stop();
    const kubelet = await node.start(flags("1s"));
    await node.untilPhase("full", "Running");
    expect(first.log).toContain("Evicted");
    expect(kubelet.log.match(/was evicted and may run again/g)).toHaveLength(1);
  });
});
