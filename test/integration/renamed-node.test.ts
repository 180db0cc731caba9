import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { serveEmptyCluster, toKubeconfig } from "../support/cluster/empty-cluster.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { HOST, HOST_POD, sleeper, workload } from "../support/manifests.ts";
import { freePorts } from "../support/test-servers.ts";

describeWithEngine("a node that is renamed", () => {
  test("replaces pods of manifests, keeps those of workloads, and runs none twice", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web", {}, HOST));
    node.writeManifest("db.json", workload("Deployment", "db", {}, HOST_POD));
    const first = await node.start();
    const before = await node.untilRunning(2);
    await first.stop();
    const again = await node.start([`--hostname-override=${node.name}-b`]);
    await node.until("the pod under its new name", async () =>
      (await node.running()).some(({ Labels }) => Labels["io.kubernetes.pod.name"] === `web-${node.name}-b`),
    );
    expect(again.log).toContain(`The node was "${node.name}" and is "${node.name}-b" now`);
    const after = await node.running();
    expect(after).toHaveLength(2);
    const ofWorkload = (list: typeof after) =>
      list.find(({ Labels }) => Labels["io.kubernetes.pod.name"]?.startsWith("db-"))?.Id;
    expect(ofWorkload(after)).toBe(ofWorkload(before)!);
    expect(after.some(({ Labels }) => Labels["io.kubernetes.pod.name"] === `web-${node.name}`)).toBe(false);
  });

  test("that gets a new root directory tells that its pods run from the former one, and runs none of them twice", async () => {
    const node = testNode();
    node.writeManifest("web.json", workload("Deployment", "web", {}, HOST_POD));
    await node.start();
    const [pod] = await node.untilRunning(1);
    const flags = [...node.flags(), `--root-dir=${join(node.directory, "new")}`, "--read-only-port=0"];
    const second = node.spawn([...flags, "--healthz-port=0", "--cadvisor-port=0", "--local-api-port=0"]);
    await node.untilLogged(second, `runs already, from the root directory ${node.rootDir}`);
    const label = [`kubelet-ts.io/node=${node.name}`, "io.kubernetes.docker.type=container"];
    expect((await node.docker.listContainers({ filters: { label } })).map(({ Id }) => Id)).toEqual([pod!.Id]);
    await second.stop();
  });

  test("starts its pods from the checkpoint while the API server of its cluster is away", async () => {
    const node = testNode();
    await (await node.start()).stop();
    const name = `${node.name}-b`;
    const [port = 0] = freePorts(1);
    const identity = { namespace: "default", uid: crypto.randomUUID(), resourceVersion: "1" };
    const cluster = serveEmptyCluster(port, [sleeper("web", {}, { ...HOST, nodeName: name }, identity)]);
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
