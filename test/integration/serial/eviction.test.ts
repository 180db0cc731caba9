import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../../support/engine.ts";
import { sleeper } from "../../support/manifests.ts";
import type { TestNode } from "../../support/test-node.ts";

const MI = 2 ** 20;

const podOf = async (node: TestNode, name: string) =>
  (await node.pods()).find(({ metadata }) => metadata.name === `${name}-${node.name}`);

/** Nothing else on this machine may decide: only what a test sets. */
const flags = (hard: string, transition = "1s") => [
  `--eviction-hard=${hard}`,
  `--eviction-pressure-transition-period=${transition}`,
];

describeWithEngine("eviction", () => {
  test("an emptyDir over its sizeLimit evicts its pod, which stays away through kill -9 and comes back with an empty one", async () => {
    const node = testNode();
    const filler = {
      command: [
        "sh",
        "-c",
        "test -e /mark/full || dd if=/dev/zero of=/cache/big bs=1M count=8; touch /mark/full; sleep 9999",
      ],
      volumeMounts: [
        { name: "cache", mountPath: "/cache" },
        { name: "mark", mountPath: "/mark" },
      ],
    };
    const volumes = [
      { name: "cache", emptyDir: { sizeLimit: "4Mi" } },
      { name: "mark", hostPath: { path: node.directory } },
    ];
    node.writeManifest("full.json", sleeper("full", filler, { volumes }));
    node.writeManifest("modest.json", sleeper("modest"));
    const first = await node.start(flags("memory.available<1Mi", "1h"));
    const message = 'Usage of EmptyDir volume "cache" exceeds the limit "4Mi". ';
    await node.until("the pod to be evicted", async () => {
      const status = (await podOf(node, "full"))?.status;
      return status?.phase === "Failed" && status.reason === "Evicted" && status.message === message;
    });
    expect((await podOf(node, "modest"))?.status.phase).toBe("Running");
    const evicted = await podOf(node, "full");
    await first.kill();
    const second = await node.start(flags("memory.available<1Mi", "1h"));
    await node.until(
      "the other pod to be known",
      async () => (await podOf(node, "modest"))?.status.phase === "Running",
    );
    expect((await podOf(node, "full"))?.status).toEqual(evicted!.status);
    await second.stop();
    const kubelet = await node.start(flags("memory.available<1Mi"));
    await node.until("the pod to run again", async () => (await podOf(node, "full"))?.status.phase === "Running");
    expect(first.log).toContain("Evicted");
    expect(kubelet.log.match(/was evicted and may run again/g)).toHaveLength(1);
  });

  test("short of memory: who uses most goes, and comes back when there is enough again", async () => {
    const node = testNode();
    // Memory that cannot be reclaimed: a file on a tmpfs of the pod.
    const hog = {
      command: [
        "sh",
        "-c",
        "test -e /mark/hog || dd if=/dev/zero of=/hog/big bs=1M count=1000; touch /mark/hog; sleep 9999",
      ],
      volumeMounts: [
        { name: "hog", mountPath: "/hog" },
        { name: "mark", mountPath: "/mark" },
      ],
    };
    const volumes = [
      { name: "hog", emptyDir: { medium: "Memory" } },
      { name: "mark", hostPath: { path: node.directory } },
    ];
    node.writeManifest("small.json", sleeper("small", { resources: { requests: { memory: "64Mi" } } }));
    const before = await node.start(flags("memory.available<1Mi"));
    await node.runningContainer("app");
    const threshold = Math.floor((await availableMemory(node)) / MI) - 500;
    await before.stop();
    const kubelet = await node.start(flags(`memory.available<${threshold}Mi`));
    node.writeManifest("hog.json", sleeper("hog", hog, { volumes }));
    await node.until("the hog to be evicted", async () => {
      const status = (await podOf(node, "hog"))?.status;
      return status?.phase === "Failed" && /^The node was low on resource: memory\. /.test(status.message ?? "");
    });
    const evicted = kubelet.log.split("\n").filter((line) => line.includes("Evicted"));
    expect(evicted.map((line) => line.includes(`hog-${node.name}`))).toEqual([true]);
    expect((await podOf(node, "small"))?.status.phase).toBe("Running");
    await node.until("the hog to be back", async () => (await podOf(node, "hog"))?.status.phase === "Running");
  });
});

/** As the kubelet itself reckons: the rest of the machine moves too, so a test keeps well away from it. */
async function availableMemory(node: TestNode): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${node.readOnlyPort}/stats/summary`);
  const { node: summary } = (await answer.json()) as { node: { memory: { availableBytes: number } } };
  return summary.memory.availableBytes;
}
