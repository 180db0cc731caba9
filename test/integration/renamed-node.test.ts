import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { serveEmptyCluster, toKubeconfig } from "../support/cluster/empty-cluster.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import { freePorts } from "../support/test-node.ts";

describeWithEngine("a node that is renamed", () => {
  test("starts its pods from the checkpoint while the API server of its cluster is away", async () => {
    const node = testNode();
    await (await node.start()).stop();
    const name = `${node.name}-b`;
    const [port = 0] = freePorts(1);
    const identity = { namespace: "default", uid: crypto.randomUUID(), resourceVersion: "1" };
    const cluster = serveEmptyCluster(port, [sleeper("web", {}, { nodeName: name }, identity)]);
    const kubeconfig = join(node.directory, "kubeconfig");
    writeFileSync(kubeconfig, toKubeconfig(`http://127.0.0.1:${port}`));
    const flags = [`--hostname-override=${name}`, `--kubeconfig=${kubeconfig}`];
    const first = await node.start(flags);
    await node.untilRunning(1);
    await first.stop();
    await cluster.stop(true);
    await node.removeAll(await node.listAll());
    const again = await node.start(flags);
    await node.untilRunning(1);
    expect(again.log).not.toContain("not used");
  });
});
