import { expect, test } from "bun:test";
import { describeWithEngine, hasNetworkNames, testNode } from "../support/engine.ts";
import { STOPPABLE, shell, sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

/** The container has the name of the pod. */
const podOf = (name: string, annotations: object, script = STOPPABLE, spec = {}) =>
  sleeper(name, { name, ...shell(script) }, spec, { annotations });

const whyNot = async (node: TestNode, name: string) => {
  const message = (await node.waitingOf(name))?.message ?? (await node.statusOf(name))?.message;
  return message ?? "";
};

/** Waits until the pod says this of its start. */
const untilSaid = (node: TestNode, name: string, text: string) =>
  node.until(`${name} to say "${text}"`, async () => {
    const message = await whyNot(node, name);
    return message.includes(text) && message;
  });

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
  test.skipIf(!hasNetworkNames)(
    "a fixed address, names, a clash, a network that comes later and one that goes",
    async () => {
      const node = testNode();
      const networks = new Networks(node);
      try {
        const lan = await networks.make(`lan-${node.name}`);
        const later = `later-${node.name}`;
        const inLan = { "kubelet-ts.io/network": lan.name };
        const fixed = { ...inLan, "kubelet-ts.io/ip": lan.address(77) };
        node.writeManifest(
          "alpha.yaml",
          podOf("alpha", fixed, "echo hi > /tmp/i; httpd -f -p 8000 -h /tmp", { hostname: "front" }),
        );
        const fetchAll = ["alpha", "front", lan.address(77)]
          .map((host) => `until wget -q -O - http://${host}:8000/i; do sleep 0.2; done`)
          .join("; ");
        const dnsConfig = { searches: ["lan.example"], options: [{ name: "timeout", value: "1" }] };
        const client = podOf("beta", inLan, `${fetchAll}; cat /etc/resolv.conf; echo done; ${STOPPABLE}`, {
          dnsConfig,
        });
        node.writeManifest("beta.yaml", client);
        node.writeManifest("late.yaml", podOf("late", { "kubelet-ts.io/network": later }));
        node.writeManifest("lost.yaml", podOf("lost", { "kubelet-ts.io/ip": lan.address(78) }));
        const kubelet = await node.start();

        const { Id: betaId } = await node.runningContainer("beta");
        const printed = await node.until("all three names to answer", async () => {
          const log = await node.logs(betaId);
          return log.includes("done") && log;
        });
        expect(printed).toContain("nameserver 127.0.0.11\n");
        expect(printed).toMatch(/^search .*lan\.example$/m);
        expect(printed).toMatch(/^options .*timeout:1/m);
        expect(await node.statusOf("alpha")).toMatchObject({ podIP: lan.address(77) });
        const { Id: alphaId } = await node.runningContainer("alpha");

        // Refused before anything is made.
        expect(await node.statusOf("lost")).toMatchObject({ phase: "Failed", reason: "Unsupported" });
        expect(await whyNot(node, "lost")).toContain("Docker assigns fixed addresses only in user-defined networks");

        // A network that is not there yet.
        expect(await untilSaid(node, "late", "not found")).toContain(`in network "${later}"`);
        await networks.make(later);
        await node.runningContainer("late");

        // Two pods, one address: the one that has it keeps it.
        node.writeManifest("gamma.yaml", podOf("gamma", fixed));
        const clash = await untilSaid(node, "gamma", "Address already in use");
        expect(clash).toContain(`in network "${lan.name}" with address ${lan.address(77)}`);
        expect(kubelet.log).toContain("FailedCreatePodSandBox");
        expect(await node.runningContainer("alpha")).toMatchObject({ Id: alphaId });
        node.removeManifest("alpha.yaml");
        await node.runningContainer("gamma");
        expect(await node.statusOf("gamma")).toMatchObject({ podIP: lan.address(77) });

        // The network is taken away from under a pod: it can only start again once it is back.
        const [sandbox] = (await node.sandboxes()).filter(({ Labels }) =>
          Labels["io.kubernetes.pod.name"]?.startsWith("late-"),
        );
        await node.docker.disconnectNetwork(later, { Container: sandbox?.Id ?? "", Force: true });
        await networks.remove(later);
        expect(await node.runningContainer("late")).toBeDefined();
        await node.docker.killContainer(sandbox?.Id ?? "", "SIGKILL");
        expect(await untilSaid(node, "late", "not found")).toContain(`in network "${later}"`);
        await networks.make(later);
        await node.runningContainer("late");
      } finally {
        await networks.cleanUp();
      }
    },
  );
});
