import { expect, test } from "bun:test";
import type { Summary } from "../../../src/base/api/stats-summary.ts";
import { describeWithEngine, testNode } from "../../support/engine.ts";
import { STOPPABLE, shell, sleeper } from "../../support/manifests.ts";
import type { TestNode } from "../../support/test-node.ts";

const MI = 2 ** 20;

/** Fills a file of its volume once: its next start finds the mark and only runs. */
const filler = (name: string, mebibytes: number, emptyDir: object, { directory }: TestNode) => {
  const dd = `test -e /mark/${name} || dd if=/dev/zero of=/data/big bs=1M count=${mebibytes}; touch /mark/${name}`;
  const volumes = [
    { name: "data", emptyDir },
    { name: "mark", hostPath: { path: directory } },
  ];
  const volumeMounts = volumes.map((volume) => ({ name: volume.name, mountPath: `/${volume.name}` }));
  return sleeper(name, { ...shell(`${dd}; ${STOPPABLE}`), volumeMounts }, { volumes });
};

/** Only the thresholds of the test: no default one may evict. */
const flags = (hard: string, transition = "1s") => [
  `--eviction-hard=${hard}`,
  `--eviction-pressure-transition-period=${transition}`,
];

describeWithEngine("eviction", () => {
  test.concurrent("an emptyDir over its sizeLimit evicts its pod, which stays away through kill -9 and comes back with an empty one", async () => {
    const node = testNode();
    node.writeManifest("full.json", filler("full", 8, { sizeLimit: "4Mi" }, node));
    node.writeManifest("modest.json", sleeper("modest"));
    const first = await node.start(flags("memory.available<1Mi", "1h"));
    const message = 'Usage of EmptyDir volume "data" exceeds the limit "4Mi". ';
    await node.until("the pod to be evicted", async () => {
      const status = await node.statusOf("full");
      return status?.phase === "Failed" && status.reason === "Evicted" && status.message === message;
    });
    expect((await node.statusOf("modest"))?.phase).toBe("Running");
    const evicted = await node.statusOf("full");
    await first.kill();
    const second = await node.start(flags("memory.available<1Mi", "1h"));
    await node.untilPhase("modest", "Running");
    expect(await node.statusOf("full")).toEqual(evicted);
    await second.stop();
    const kubelet = await node.start(flags("memory.available<1Mi"));
    await node.untilPhase("full", "Running");
    expect(first.log).toContain("Evicted");
    expect(kubelet.log.match(/was evicted and may run again/g)).toHaveLength(1);
  });

  test.concurrent("short of memory: the pod that uses most is evicted, and comes back when there is enough again", async () => {
    const node = testNode();
    node.writeManifest("small.json", sleeper("small", { resources: { requests: { memory: "64Mi" } } }));
    const before = await node.start(flags("memory.available<1Mi"));
    await node.runningContainer("app");
    const threshold = Math.floor((await availableMemory(node)) / MI) - 500;
    await before.stop();
    const kubelet = await node.start(flags(`memory.available<${threshold}Mi`));
    // Memory that cannot be reclaimed: a file on a tmpfs of the pod.
    node.writeManifest("hog.json", filler("hog", 1000, { medium: "Memory" }, node));
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
