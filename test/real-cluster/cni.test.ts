import { afterAll, expect, test } from "bun:test";
import { IMAGE } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { CniNetwork } from "../support/cluster/cni-network.ts";
import { sleeper } from "../support/manifests.ts";
import { TestNode } from "../support/test-node.ts";
import { freePorts } from "../support/test-servers.ts";

/** A node whose pods get their network from Debian's plugins. */
class CniNode extends TestNode {
  readonly network = new CniNetwork(this.directory);

  override async cleanUp(): Promise<void> {
    await super.cleanUp();
    this.network.remove();
  }
}

const LOCAL = { image: IMAGE, imagePullPolicy: "Never" };

const aServer = (hostPort: number) =>
  sleeper("web", {
    ...LOCAL,
    command: ["sh", "-c", "hostname > /tmp/index.html; exec httpd -f -p 80 -h /tmp"],
    ports: [{ containerPort: 80, hostPort }],
    readinessProbe: { httpGet: { port: 80 }, periodSeconds: 1 },
  });

describeCluster("networks of CNI", () => {
  const nodes: CniNode[] = [];
  /** With the manifest of a server. */
  const aNode = (isConfigured = true) => {
    const node = new CniNode();
    nodes.push(node);
    const [hostPort = 0] = freePorts(1);
    node.writeManifest("web.json", aServer(hostPort));
    if (isConfigured) node.network.configure();
    return { node, hostPort };
  };

  afterAll(async () => {
    for (const node of nodes) await node.cleanUp();
  });

  const readyPod = async (node: TestNode) => (await node.readyPods(1))[0]!;

  const read = async (url: string) => (await fetch(url, { keepalive: false })).text();

  test("a pod has an address, host ports and names of the plugins' network, and gives them back", async () => {
    const { node, hostPort } = aNode();
    await node.start(node.network.flags);
    const pod = await readyPod(node);
    const ip = pod.status.podIP ?? "";
    expect(node.network.addresses()).toEqual([ip]);
    expect(node.network.records()).toHaveLength(1);
    expect(await read(`http://${ip}/`)).toBe(`web-${node.name}\n`);
    expect(await read(`http://127.0.0.1:${hostPort}/`)).toBe(`web-${node.name}\n`);
    const [sandbox] = await node.sandboxes();
    const { HostConfig } = await node.docker.inspectContainerRaw(sandbox!.Id);
    expect(HostConfig).toMatchObject({ NetworkMode: "none" });
    node.removeManifest("web.json");
    await node.untilEmpty();
    expect(node.network.addresses()).toEqual([]);
    expect(node.network.records()).toEqual([]);
    await expect(read(`http://127.0.0.1:${hostPort}/`)).rejects.toThrow();
  });

  test("while there is no configuration a pod waits and says why; pods of the host's network do not", async () => {
    const { node } = aNode(false);
    node.writeManifest("host.json", sleeper("on-host", { ...LOCAL, name: "host" }, { hostNetwork: true }));
    const kubelet = await node.start(node.network.flags);
    await node.runningContainer("host");
    await node.untilLogged(kubelet, "NetworkNotReady: network is not ready:");
    expect(await node.containers("app")).toEqual([]);
    node.network.configure();
    await node.runningContainer("app");
  });

  test("a kill leaves the pod and its address; what went away meanwhile is given back at the next start", async () => {
    const { node, hostPort } = aNode();
    const kubelet = await node.start(node.network.flags);
    const before = (await readyPod(node)).status.podIP;
    const ids = await node.containerIds();
    await kubelet.kill();
    const next = await node.start(node.network.flags);
    expect((await readyPod(node)).status.podIP).toBe(before);
    expect(await node.containerIds()).toEqual(ids);
    expect(next.log).not.toContain("has changed since it was set up");
    await next.kill();
    await node.removeAll(await node.listAll());
    expect(node.network.addresses()).toHaveLength(1);
    await node.start(node.network.flags);
    await readyPod(node);
    expect(node.network.addresses()).toHaveLength(1);
    expect(node.network.records()).toHaveLength(1);
    expect(await read(`http://127.0.0.1:${hostPort}/`)).toBe(`web-${node.name}\n`);
  });

  test("a sandbox that was removed by hand has a successor with the host port", async () => {
    const { node, hostPort } = aNode();
    await node.start(node.network.flags);
    await readyPod(node);
    const [first] = await node.sandboxes();
    await node.docker.removeContainer(first!.Id, { force: true });
    await node.until("another sandbox that serves", async () => {
      const [sandbox] = await node.sandboxes();
      if (sandbox === undefined || sandbox.Id === first!.Id) return false;
      return (await read(`http://127.0.0.1:${hostPort}/`)) === `web-${node.name}\n`;
    });
    expect(node.network.addresses()).toHaveLength(1);
  });

  test("a plugin that fails leaves no sandbox behind", async () => {
    const { node } = aNode(false);
    const config = { cniVersion: "0.4.0", name: "broken", plugins: [{ type: "bridge", ipam: { type: "no-such" } }] };
    node.network.write(config);
    const kubelet = await node.start(node.network.flags);
    await node.untilLogged(kubelet, "FailedCreatePodSandBox: failed to set up sandbox");
    node.removeManifest("web.json");
    await node.untilEmpty();
  });
});
