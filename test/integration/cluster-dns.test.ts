import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { list, object, sleeper, workload } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

const FLAG = "--cluster-dns-image=dnsmasq:test";
const OUTSIDE = "192.0.2.7";

/** A name server of the machine, on Docker's bridge: knows `outside.test` alone. */
async function machineServer(node: TestNode) {
  const address = await node.docker.gatewayOf("bridge");
  const answer = (query: Buffer) => {
    const end = query.indexOf(0, 12) + 5;
    const isKnown = query.subarray(12, end - 4).toString("latin1") === "\x07outside\x04test\0";
    const isA = isKnown && query.readUInt16BE(end - 4) === 1;
    const header = Buffer.from(query.subarray(0, 12));
    header.writeUInt16BE(isKnown ? 0x8180 : 0x8183, 2);
    header.writeUInt16BE(isA ? 1 : 0, 6);
    header.writeUInt32BE(0, 8);
    const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...OUTSIDE.split(".").map(Number)];
    return Buffer.concat([header, query.subarray(12, end), Buffer.from(isA ? record : [])]);
  };
  const socket = await Bun.udpSocket({
    port: 53,
    hostname: address,
    socket: { data: (own, query, port, from) => void own.send(answer(query), port, from) },
  });
  const file = join(node.directory, "resolv.conf");
  writeFileSync(file, `nameserver ${address}\n`);
  return { address, flag: `--resolv-conf=${file}`, [Symbol.dispose]: () => socket.close() };
}

const clusterIpOf = async (node: TestNode, name: string) =>
  JSON.parse((await node.run("get service", name, "-o", "json")).stdout).spec.clusterIP as string;

describeWithEngine("the DNS server of a node", () => {
  test("--cluster-dns-image: names of Services, and those outside", async () => {
    const node = testNode();
    using machine = await machineServer(node);
    const port = { name: "http", port: 80, targetPort: 8000 };
    const web = (name: string, spec: object = {}) =>
      object("Service", name, { spec: { selector: { app: "web" }, ports: [port], ...spec } });
    const objects = [
      workload("StatefulSet", "web", { serviceName: "web", replicas: 2 }),
      web("web", { clusterIP: "None" }),
      web("front"),
      web("alias", { type: "ExternalName", selector: undefined, externalName: "front.default.svc.cluster.local" }),
    ];
    const client = sleeper("client");
    node.writeManifest("client.yaml", client);
    const before = await node.start([machine.flag]);
    const { Id } = await node.runningContainer("app");
    const { ResolvConfPath } = await node.docker.inspectContainer(Id);
    const resolvConf = readFileSync(ResolvConfPath, "utf8");
    expect(await before.stop()).toMatchObject({ exitCode: 0 });
    const kubelet = await node.start([machine.flag, FLAG]);
    // The flag restarts nothing, and changes nothing of a pod that runs.
    await node.runningContainer("dnsmasq");
    expect((await node.runningContainer("app")).Id).toBe(Id);
    expect(readFileSync(ResolvConfPath, "utf8")).toBe(resolvConf);

    node.writeManifest("web.yaml", list(...objects));
    node.writeManifest("asker.yaml", sleeper("asker", { name: "asker" }));
    const asker = await node.runningContainer("asker");
    const look = (...argv: string[]) => node.exec(asker.Id, "nslookup", ...argv).catch(String);
    const untilFound = (want: string, ...argv: string[]) =>
      node.until(`${want} for ${argv.join(" ")}`, async () => (await look(...argv)).includes(want));
    const written = await node.exec(asker.Id, "cat", "/etc/resolv.conf");
    const server = /^nameserver (10\S+)\n/.exec(written)?.[1] ?? "";
    expect(written).toStartWith(
      `nameserver ${server}\nnameserver ${machine.address}\nsearch default.svc.cluster.local svc.cluster.local cluster.local\n`,
    );
    const front = await clusterIpOf(node, "front");
    const domain = "default.svc.cluster.local";
    await untilFound(front, `front.${domain}`, server);
    await untilFound(front, `alias.${domain}`, server);
    await untilFound(`canonical name = front.${domain}`, "-type=cname", `alias.${domain}`, server);
    await untilFound(`_http._tcp.front.${domain}`, "-type=srv", `_http._tcp.front.${domain}`, server);
    const pods = await node.until("both pods", async () => {
      const found = (await node.pods()).filter(({ metadata }) => metadata.name!.startsWith("web-"));
      return found.length === 2 && found.every(({ status }) => status?.podIP) && found;
    });
    for (const { metadata, status } of pods) {
      const name = `${metadata.name!.split("-").slice(0, 2).join("-")}.web.${domain}`;
      await untilFound(status!.podIP!, name, server);
      await untilFound(status!.podIP!, `web.${domain}`, server);
      await untilFound(`8000 ${name}`, "-type=srv", `_http._tcp.web.${domain}`, server);
      await untilFound(name, status!.podIP!, server);
    }
    await untilFound(front, "front");
    await untilFound(OUTSIDE, "outside.test");
    await untilFound(OUTSIDE, "outside.test", server);

    // A server that reads changes has not been started again.
    const dns = (await node.runningContainer("dnsmasq")).Id;
    node.removeManifest("web.yaml");
    await node.until("NXDOMAIN", async () => (await look(`front.${domain}`, server)).includes("NXDOMAIN"));
    expect((await node.runningContainer("dnsmasq")).Id).toBe(dns);

    // It is there again soon, and until then names outside are found by the machine's server.
    const [sandbox] = (await node.sandboxes()).filter(({ Names }) => Names[0]!.includes("POD_dns-"));
    await node.removeAll([sandbox!]);
    expect(await look("outside.test")).toContain(OUTSIDE);
    const next = await node.successorOf("dnsmasq", dns);
    await untilFound(OUTSIDE, "outside.test", server);

    await kubelet.kill();
    expect(await look("outside.test", server)).toContain(OUTSIDE);
    expect(await look("outside.test")).toContain(OUTSIDE);
    await node.docker.killContainer(next.Id, "SIGKILL");
    expect(await look("outside.test")).toContain(OUTSIDE);
    await node.removeAll((await node.sandboxes()).filter(({ Names }) => Names[0]!.includes("POD_dns-")));
    expect(await look("outside.test")).toContain(OUTSIDE);
    const again = await node.start([machine.flag, FLAG]);
    await untilFound(OUTSIDE, "outside.test", server);

    // Without the flag the server goes, and pods keep names outside.
    expect(await again.stop()).toMatchObject({ exitCode: 0 });
    await node.start([machine.flag]);
    // Its address refuses.
    await node.until("no server", async () => (await node.running("dnsmasq")).length === 0);
    expect(await look("outside.test")).toContain(OUTSIDE);
    expect((await node.runningContainer("asker")).Id).toBe(asker.Id);
  });
});
