import { expect, test } from "bun:test";
import { aPodSpec, conditionOf } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { CniNetwork } from "../support/cluster/cni-network.ts";
import { ClusterTestNode, useCluster } from "../support/cluster/use-cluster.ts";
import type { AnyObject } from "../support/kubectl.ts";
import { shell, workload } from "../support/manifests.ts";

describeCluster("two kubelet-ts as two nodes with CNI bridge networks", () => {
  let nodes: { node: ClusterTestNode; network: CniNetwork }[] = [];
  const { kubectl } = useCluster(
    async ({ plane, node }) => {
      nodes = [node, new ClusterTestNode(plane)].map((it) => ({ node: it, network: new CniNetwork(it.directory) }));
      for (const { node, network } of nodes) await node.join({ flags: network.flags });
    },
    {
      tearDown: async () => {
        await nodes[1]?.node.cleanUp();
        for (const { network } of nodes) network.remove();
      },
    },
  );

  const readiness = async () => {
    const found = await kubectl.list("nodes");
    return found.map((node: AnyObject) => conditionOf(node, "Ready"));
  };

  test("nodes are not Ready while no network configuration is there", async () => {
    await kubectl.until("two nodes that say why they are not Ready", async () => {
      const found = await kubectl.list("nodes");
      const messages = found.map(
        ({ status }: AnyObject) => status.conditions?.find(({ type }: AnyObject) => type === "Ready")?.message ?? "",
      );
      return messages.length === 2 && messages.every((message) => message.includes("reason:NetworkPluginNotReady"));
    });
    expect(await readiness()).toEqual(["False", "False"]);
    for (const { network } of nodes) network.configure();
    await kubectl.until("two Ready nodes", async () => (await readiness()).every((status) => status === "True"));
  });

  test("pods spread over both and reach each other by their addresses, which are given back", async () => {
    const spread = {
      maxSkew: 1,
      topologyKey: "kubernetes.io/hostname",
      whenUnsatisfiable: "DoNotSchedule",
      labelSelector: { matchLabels: { app: "web" } },
    };
    const server = shell("hostname > /tmp/index.html; exec httpd -f -p 80 -h /tmp");
    const spec = aPodSpec(server, { topologySpreadConstraints: [spread] });
    await kubectl.apply(workload("Deployment", "web", { replicas: 4 }, spec));
    const pods = await kubectl.readyPods("web", 4);
    const nodeNames = pods.map(({ spec }) => spec.nodeName as string);
    for (const { node } of nodes) expect(nodeNames.filter((name) => name === node.name)).toHaveLength(2);
    for (const { network } of nodes) expect(network.addresses()).toHaveLength(2);
    for (const from of pods) {
      for (const to of pods) {
        const answer = await kubectl.exec(from.metadata.name, "wget", "-qO-", to.status.podIP);
        expect(answer).toBe(to.metadata.name);
      }
    }
    await kubectl.words("delete deployment web");
    await kubectl.noneOf("pods", "web");
    for (const { node, network } of nodes) {
      expect(await node.listAll()).toEqual([]);
      expect(network.addresses()).toEqual([]);
      expect(network.records()).toEqual([]);
    }
  });
});
