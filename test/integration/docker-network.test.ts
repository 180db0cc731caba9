import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import type { TestNode } from "../support/test-node.ts";

const podOf = (name: string, script: string, annotations: Record<string, string>, spec: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, annotations },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [{ name, image: "busybox:test", command: ["sh", "-c", script] }],
    ...spec,
  },
});

const SLEEP = "sleep 3600 & wait";

/** The message of the pod's only container while it waits. */
const waitingMessage = async (node: TestNode, name: string) => {
  const shown = (await node.pods()).find(({ metadata }) => metadata.name === `${name}-${node.name}`);
  return shown?.status.containerStatuses?.[0]?.state?.waiting?.message ?? shown?.status.message ?? "";
};

const statusOf = async (node: TestNode, name: string) =>
  (await node.pods()).find(({ metadata }) => metadata.name === `${name}-${node.name}`)?.status;

/** Networks of the test, with subnets of its own. */
class Networks {
  readonly #node: TestNode;
  readonly #made: string[] = [];

  constructor(node: TestNode) {
    this.#node = node;
  }

  async make(name: string): Promise<{ name: string; address: (last: number) => string }> {
    for (let attempt = 0; ; attempt++) {
      const prefix = `10.${251 + (attempt % 3)}.${Math.floor(Math.random() * 256)}`;
      try {
        const IPAM = { Config: [{ Subnet: `${prefix}.0/24` }] };
        await this.#node.docker.createNetwork({ Name: name, IPAM });
        this.#made.push(name);
        return { name, address: (last) => `${prefix}.${last}` };
      } catch (error) {
        if (attempt > 5) throw error;
      }
    }
  }

  async remove(name: string): Promise<void> {
    await this.#node.docker.removeNetwork(name);
    this.#made.splice(this.#made.indexOf(name), 1);
  }

  async cleanUp(): Promise<void> {
    await this.#node.cleanUp();
    for (const name of [...this.#made]) await this.remove(name);
  }
}

describeWithEngine("a Docker network by annotation", () => {
  test("a fixed address, names, a clash, a network that comes later and one that goes", async () => {
    const node = testNode();
    const networks = new Networks(node);
    try {
      const lan = await networks.make(`lan-${node.name}`);
      const later = `later-${node.name}`;
      const inLan = { "kubelet-ts.io/network": lan.name };
      const fixed = { ...inLan, "kubelet-ts.io/ip": lan.address(77) };
      const serve = `echo hi > /tmp/i; httpd -f -p 8000 -h /tmp`;
      node.writeManifest("alpha.yaml", podOf("alpha", serve, fixed, { hostname: "front" }));
      const fetchAll = ["alpha", "front", lan.address(77)]
        .map((host) => `until wget -q -O - http://${host}:8000/i; do sleep 0.2; done`)
        .join("; ");
      node.writeManifest("beta.yaml", podOf("beta", `${fetchAll}; echo done; ${SLEEP}`, inLan));
      node.writeManifest("late.yaml", podOf("late", SLEEP, { "kubelet-ts.io/network": later }));
      node.writeManifest("lost.yaml", podOf("lost", SLEEP, { "kubelet-ts.io/ip": lan.address(78) }));
      const kubelet = await node.start();

      const client = await node.runningContainer("beta");
      await node.until("all three names to answer", async () => (await node.logs(client.Id)).includes("done"));
      expect(await statusOf(node, "alpha")).toMatchObject({ podIP: lan.address(77) });
      const { Id: alphaId } = await node.runningContainer("alpha");

      // Refused before anything is made.
      expect(await statusOf(node, "lost")).toMatchObject({ phase: "Failed", reason: "Unsupported" });
      expect(await waitingMessage(node, "lost")).toContain(
        "Docker assigns fixed addresses only in user-defined networks",
      );

      // A network that is not there yet.
      const missing = await node.until("the missing network to be named", async () => {
        const message = await waitingMessage(node, "late");
        return message.includes("not found") && message;
      });
      expect(missing).toContain(`in network "${later}"`);
      await networks.make(later);
      await node.runningContainer("late");

      // Two pods, one address: the one that has it keeps it.
      node.writeManifest("gamma.yaml", podOf("gamma", SLEEP, fixed));
      const clash = await node.until("the conflict to be reported", async () => {
        const message = await waitingMessage(node, "gamma");
        return message.includes("Address already in use") && message;
      });
      expect(clash).toContain(`in network "${lan.name}" with address ${lan.address(77)}`);
      expect(kubelet.log).toContain("FailedCreatePodSandBox");
      expect(await node.runningContainer("alpha")).toMatchObject({ Id: alphaId });
      node.removeManifest("alpha.yaml");
      await node.runningContainer("gamma");
      expect(await statusOf(node, "gamma")).toMatchObject({ podIP: lan.address(77) });

      // The network is taken away from under a pod: it can only start again once it is back.
      const [sandbox] = (await node.sandboxes()).filter(({ Labels }) =>
        Labels["io.kubernetes.pod.name"]?.startsWith("late-"),
      );
      await node.docker.disconnectNetwork(later, { Container: sandbox?.Id ?? "", Force: true });
      await networks.remove(later);
      expect(await node.runningContainer("late")).toBeDefined();
      await node.docker.killContainer(sandbox?.Id ?? "", "SIGKILL");
      const gone = await node.until("the lost network to be reported", async () => {
        const message = await waitingMessage(node, "late");
        return message.includes("not found") && message;
      });
      expect(gone).toContain(`in network "${later}"`);
      await networks.make(later);
      await node.runningContainer("late");
    } finally {
      await networks.cleanUp();
    }
  });
});
