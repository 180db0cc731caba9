import { afterAll, expect, test } from "bun:test";
import { LABEL } from "../../src/docker/labels.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { CniNetwork } from "../support/cluster/cni-network.ts";
import { freePorts, TestNode } from "../support/test-node.ts";

const IMAGE = "busybox:1.35";

/** A node whose pods get their network from Debian's plugins. */
class CniNode extends TestNode {
  readonly network = new CniNetwork(this.directory);

  override async cleanUp(): Promise<void> {
    await super.cleanUp();
    this.network.remove();
  }
}

const aServer = (hostPort: number) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web" },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: "app",
        image: IMAGE,
        imagePullPolicy: "Never",
        command: ["sh", "-c", "hostname > /tmp/index.html; exec httpd -f -p 80 -h /tmp"],
        ports: [{ containerPort: 80, hostPort }],
        readinessProbe: { httpGet: { port: 80 }, periodSeconds: 1 },
      },
    ],
  },
});

describeCluster("networks of CNI", () => {
  const nodes: CniNode[] = [];
  const aNode = () => {
    const node = new CniNode();
    nodes.push(node);
    return node;
  };

  afterAll(async () => {
    for (const node of nodes) await node.cleanUp();
  });

  const readyPod = (node: TestNode) =>
    node.until("a Ready pod", async () => {
      const [pod] = await node.pods();
      const isReady = pod?.status.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
      return isReady && pod;
    });

  const read = async (url: string) => (await fetch(url, { keepalive: false })).text();

  test("a pod has an address, host ports and names of the plugins' network, and gives them back", async () => {
    const node = aNode();
    node.network.configure();
    const [hostPort] = freePorts(1) as [number];
    node.writeManifest("web.json", aServer(hostPort));
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
    await node.until("no container", async () => (await node.listAll()).length === 0);
    expect(node.network.addresses()).toEqual([]);
    expect(node.network.records()).toEqual([]);
    await expect(read(`http://127.0.0.1:${hostPort}/`)).rejects.toThrow();
  });

  test("while there is no configuration a pod waits and says why; pods of the host's network do not", async () => {
    const node = aNode();
    const [hostPort] = freePorts(1) as [number];
    node.writeManifest("web.json", aServer(hostPort));
    const onHost = { ...aServer(0), metadata: { name: "on-host" } };
    const command = ["sleep", "3600"];
    const container = { name: "host", image: IMAGE, imagePullPolicy: "Never", command };
    node.writeManifest("host.json", { ...onHost, spec: { hostNetwork: true, containers: [container] } });
    const kubelet = await node.start(node.network.flags);
    await node.runningContainer("host");
    await node.until("the event", () => kubelet.log.includes("NetworkNotReady: network is not ready:"));
    expect(await node.containers("app")).toEqual([]);
    node.network.configure();
    await node.runningContainer("app");
  });

  test("a kill leaves the pod and its address; what went away meanwhile is given back at the next start", async () => {
    const node = aNode();
    node.network.configure();
    const [hostPort] = freePorts(1) as [number];
    node.writeManifest("web.json", aServer(hostPort));
    await (async () => {
      const kubelet = await node.start(node.network.flags);
      const before = (await readyPod(node)).status.podIP;
      const [container] = await node.containers("app");
      await kubelet.kill();
      const next = await node.start(node.network.flags);
      expect((await readyPod(node)).status.podIP).toBe(before);
      expect((await node.containers("app")).map(({ Id }) => Id)).toEqual([container!.Id]);
      expect(next.log).not.toContain("has changed since it was set up");
      await next.kill();
    })();
    for (const { Id } of await node.listAll()) await node.docker.removeContainer(Id, { force: true });
    expect(node.network.addresses()).toHaveLength(1);
    await node.start(node.network.flags);
    await readyPod(node);
    expect(node.network.addresses()).toHaveLength(1);
    expect(node.network.records()).toHaveLength(1);
    expect(await read(`http://127.0.0.1:${hostPort}/`)).toBe(`web-${node.name}\n`);
  });

  test("a sandbox that was removed by hand has a successor with the host port", async () => {
    const node = aNode();
    node.network.configure();
    const [hostPort] = freePorts(1) as [number];
    node.writeManifest("web.json", aServer(hostPort));
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
    const node = aNode();
    const config = { cniVersion: "0.4.0", name: "broken", plugins: [{ type: "bridge", ipam: { type: "no-such" } }] };
    node.network.write(config);
    node.writeManifest("web.json", aServer(0));
    const kubelet = await node.start(node.network.flags);
    await node.until("the event", () => kubelet.log.includes("FailedCreatePodSandBox: failed to set up sandbox"));
    node.removeManifest("web.json");
    await node.until("no container", async () => (await node.listAll()).length === 0);
    expect((await node.listAll()).map(({ Labels }) => Labels[LABEL.podName])).toEqual([]);
  });
});
