import { expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { Service } from "../../src/base/api/service.ts";
import { rangeOfAddress } from "../../src/base/text/ip-range.ts";
import { ExternalNames, ServiceHosts } from "../../src/controllers/service-hosts.ts";
import { ServiceManager } from "../../src/controllers/service-manager.ts";
import type { ServiceAddresses } from "../../src/plan/service-addresses.ts";
import type { RuledService } from "../../src/plan/service-rules.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { aContext, aService, aServicePod } from "./workload-world.ts";

/** @param kept survives the manager, as its file does */
function aManager(kept: { addresses?: ServiceAddresses } = {}, networks = ["172.17.0.1/16"], range = "") {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  const applied: RuledService[][] = [];
  const events: string[] = [];
  const holders = new Map<number, string>();
  const proxy = {
    problem: undefined as string | undefined,
    hasRules: true,
    written: Promise.resolve(),
    settled: () => proxy.written,
    ranges: [] as string[],
    networks: (andRanges: boolean) =>
      [...networks, ...(andRanges ? proxy.ranges : [])].map((text) => rangeOfAddress(text)!),
    rivals: new Map<string, string>(),
    holderOf: (protocol: string, port: number) => proxy.rivals.get(`${protocol}/${port}`),
    apply: (services: readonly RuledService[]) => void applied.push([...services]),
    check: () => {},
    onChange(listener: () => void) {
      proxy.check = listener;
    },
    stop() {},
  };
  const hosts = new ServiceHosts("", new ExternalNames({ clock, logger, lookUp: async () => [] }));
  const manager = new ServiceManager({
    context: aContext(
      clock,
      { record: ({ kind, name }, { reason, message }) => void events.push(`${kind} ${name} ${reason} ${message}`) },
      logger,
    ),
    hosts,
    proxy,
    file: {
      read: () => kept.addresses,
      write: (addresses) => {
        kept.addresses = addresses;
      },
    },
    range,
    portHolder: (_, port) => holders.get(port),
  });
  const update = (services: Service[], pods: Pod[]) => manager.update(services, pods);
  const namesOf = () => hosts.aliasesFor(client).map(({ ip, hostnames }) => `${ip} ${hostnames![0]}`);
  return { manager, proxy, applied, events, holders, logger, kept, clock, update, namesOf };
}

const client = aServicePod("client", "172.17.0.9", { labels: {} });

test("a name leads to the cluster IP, which stays while the pods change", () => {
  const { update, namesOf, applied, kept } = aManager();
  update([aService("web")], [aServicePod("a", "172.17.0.2"), client]);
  const ip = kept.addresses!.clusterIps["default/web"]!;
  expect(namesOf()).toEqual([`${ip} web`]);
  update([aService("web")], [aServicePod("b", "172.17.0.3"), client]);
  expect(namesOf()).toEqual([`${ip} web`]);
  expect(applied.map(([one]) => one!.ports[0]!.endpoints)).toEqual([
    [{ ip: "172.17.0.2", port: 8000 }],
    [{ ip: "172.17.0.3", port: 8000 }],
  ]);
});

test("an address is used when the kernel has its first rules, or after some seconds", async () => {
  for (const isSlow of [false, true]) {
    const { manager, proxy, applied, logger, clock, update, namesOf } = aManager();
    const { promise, resolve } = Promise.withResolvers<void>();
    Object.assign(proxy, { hasRules: false, written: promise });
    manager.onChange(() => update([aService("web")], [aServicePod("a", "172.17.0.2"), client]));
    manager.setServices([aService("web")]);
    // Refused until its pods are known.
    expect(applied.map(([one]) => one!.ports[0]!.endpoints)).toEqual([[]]);
    const opened = manager.opened().then(() => "opened");
    update([aService("web")], [aServicePod("a", "172.17.0.2"), client]);
    expect([namesOf(), await Promise.race([opened, Promise.resolve("closed")])]).toEqual([[], "closed"]);
    if (isSlow) await clock.advance(5_000);
    else resolve();
    await opened;
    await Bun.sleep(0);
    expect([namesOf().length, logger.lines.length, applied.length]).toEqual([1, isSlow ? 1 : 0, 2]);
    await manager.opened();
  }
});

test("a pod is awaited until the rules that lead to it are written", async () => {
  const { manager, proxy, update } = aManager();
  const status = (ip: string) => aServicePod("a", ip).status!;
  const { promise, resolve } = Promise.withResolvers<void>();
  proxy.written = promise;
  update([aService("web")], [aServicePod("a", "172.17.0.2"), client]);
  expect(["172.17.0.2", "172.17.0.9"].map((ip) => manager.isAwaited(status(ip)))).toEqual([true, false]);
  resolve();
  await Bun.sleep(0);
  expect(manager.isAwaited(status("172.17.0.2"))).toBe(false);
});

test("a pod that ends is left when the rules without it are written, or after a second", async () => {
  const { manager, proxy, update, clock } = aManager();
  const pod = aServicePod("a", "172.17.0.2");
  update([aService("web")], [pod, client]);
  await Bun.sleep(0);
  await manager.left(["172.17.0.9"]);
  const order: string[] = [];
  const leaving = manager.left(["172.17.0.2"]).then(() => order.push("left"));
  const { promise, resolve } = Promise.withResolvers<void>();
  proxy.written = promise.then(() => void order.push("written"));
  update([aService("web")], [client]);
  await clock.advance(100);
  resolve();
  await Bun.sleep(0);
  await clock.advance(100);
  await leaving;
  expect(order).toEqual(["written", "left"]);
  update([aService("web")], [pod, client]);
  const late = manager.left(["172.17.0.2"]);
  await clock.advance(1_000);
  await late;
});

test("no range is chosen before the rules of others can be read", () => {
  const { update, proxy, kept, logger, manager } = aManager();
  proxy.problem = "iptables-restore: Can't lock /run/xtables.lock";
  manager.onChange(() => update([aService("web")], []));
  update([aService("web")], []);
  expect(kept.addresses?.range ?? "").toBe("");
  proxy.problem = undefined;
  proxy.check();
  expect([kept.addresses?.range, logger.lines]).toEqual(["10.96.0.0/16", []]);
});

test("a Service of both families is ruled in both, and its name leads to both addresses", () => {
  const { manager, update, namesOf, applied, kept } = aManager({}, [], "10.96.0.0/16,fd00:96::/112");
  const web = aService("web", {
    ipFamilyPolicy: "PreferDualStack",
    type: "LoadBalancer",
    loadBalancerSourceRanges: ["198.51.100.0/24"],
    externalIPs: ["203.0.113.5", "2001:db8::0:1"],
  });
  const pod = aServicePod("a", "172.17.0.2");
  pod.status!.podIPs!.push({ ip: "fd00::2" });
  update([web], [pod, client]);
  const clusterIPs = kept.addresses!.clusterIps["default/web"]!.split(",");
  expect(namesOf()).toEqual(clusterIPs.map((ip) => `${ip} web`));
  const published = (sources: string[]) => [{ port: 80, sources }];
  expect(applied[0]).toMatchObject([
    {
      externalIps: ["203.0.113.5"],
      ports: [{ published: published(["198.51.100.0/24"]), endpoints: [{ ip: "172.17.0.2" }] }],
    },
    // A client that no range of its family names stays out.
    { externalIps: ["2001:db8::1"], ports: [{ published: published([]), endpoints: [{ ip: "fd00::2" }] }] },
  ]);
  expect(manager.specOf(web)).toMatchObject({ clusterIP: clusterIPs[0], clusterIPs, ipFamilies: ["IPv4", "IPv6"] });
  expect(manager.derivedObjects().map(({ addressType }) => addressType)).toEqual([undefined, "IPv4", "IPv6"]);
});

test("nothing is applied twice, and an unready pod gets nothing", () => {
  const { update, applied } = aManager();
  const services = [aService("web")];
  update(services, [aServicePod("a", "172.17.0.2"), client]);
  update(services, [aServicePod("a", "172.17.0.2"), client]);
  expect(applied).toHaveLength(1);
  update(services, [aServicePod("a", "172.17.0.2", { ready: false }), client]);
  expect(applied[1]![0]!.ports[0]!.endpoints).toEqual([]);
});

test.each(["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"])(
  "a Service with the label %s has an address and no rules while it has the label",
  (label) => {
    const { update, applied, kept } = aManager();
    const service = aService("web");
    const labeled = { ...service, metadata: { ...service.metadata, labels: { [label]: "x" } } };
    update([labeled], [aServicePod("a", "172.17.0.2")]);
    expect(Object.keys(kept.addresses!.clusterIps)).toEqual(["default/web"]);
    expect(applied.flat()).toEqual([]);
    update([service], [aServicePod("a", "172.17.0.2")]);
    expect(applied.at(-1)).toHaveLength(1);
  },
);

test("addresses outlive the process", () => {
  const kept = {};
  const first = aManager(kept);
  first.update([aService("web")], []);
  const second = aManager(kept, ["10.96.0.1/16"]);
  second.update([aService("web")], []);
  expect(second.manager.specOf(aService("web"))).toEqual(first.manager.specOf(aService("web"))!);
  expect(second.logger.lines.join()).toContain(
    "Cluster IPs are of 10.96.0.0/16, and this machine now has the network 10.96.0.0/16",
  );
});

test("names lead to pods while the kernel takes no rules", () => {
  const { update, namesOf, proxy } = aManager();
  proxy.problem = "iptables-restore: refused";
  update([aService("web")], [aServicePod("a", "172.17.0.2"), client]);
  expect(namesOf()).toEqual(["172.17.0.2 web"]);
});

test("session affinity, ranges of clients and external addresses reach the rules", () => {
  const { update, applied } = aManager();
  const spec = { type: "LoadBalancer", sessionAffinity: "ClientIP", loadBalancerSourceRanges: ["198.51.100.0/24 "] };
  update([aService("web", { ...spec, externalIPs: ["203.0.113.5", "2001:db8::1"] })], []);
  expect(applied[0]![0]).toMatchObject({
    affinitySeconds: 10_800,
    externalIps: ["203.0.113.5"],
    ports: [{ published: [{ port: 80, sources: ["198.51.100.0/24"] }] }],
  });
  update([aService("web", { ...spec, sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } })], []);
  expect(applied[1]![0]!.affinitySeconds).toBe(60);
});

test.each([
  [["198.51.100.7/24"], ["198.51.100.0/24"]],
  // A client that no IPv4 range names stays out.
  [["2001:db8::/32"], []],
  [undefined, undefined],
])("clients of %j are those of %j", (loadBalancerSourceRanges, sources) => {
  const { update, applied } = aManager();
  update([aService("web", { type: "LoadBalancer", loadBalancerSourceRanges })], []);
  expect(applied[0]![0]!.ports[0]!.published).toEqual([{ port: 80, sources }]);
});

test.each(["198.51.100.0/24/ -j ACCEPT\n-A INPUT", "198.51.100.0/33", "2001:db8::/129", "198.51.100.0"])(
  "%j is no range of clients",
  (range) => {
    const spec = { type: "LoadBalancer", loadBalancerSourceRanges: [range] };
    expect(() => aService("web", spec)).toThrow("must be a range of addresses");
  },
);

test("a Service is not published while its port is held: event, condition and status say so", () => {
  const { manager, update, applied, events, holders } = aManager();
  const web = aService("web", { type: "LoadBalancer" });
  const statusOf = () => manager.statusOf(web) as { conditions?: object[]; loadBalancer: object };
  holders.set(80, "nginx (pid 812)");
  const pods = [aServicePod("a", "172.17.0.2")];
  update([web], pods);
  update([web], pods);
  const message = "it is not published: port TCP/80 of the machine is held by nginx (pid 812)";
  expect(events).toEqual([`Service web PortNotAllocated ${message}`]);
  expect(statusOf()).toMatchObject({ conditions: [{ reason: "PortNotAllocated", message }], loadBalancer: {} });
  expect(applied[0]![0]!.ports[0]).toMatchObject({ published: [], endpoints: [{ ip: "172.17.0.2" }] });
  holders.clear();
  update([web], pods);
  expect(statusOf()).toEqual({ loadBalancer: { ingress: [{ ip: "192.0.2.1", ipMode: "VIP" }] } });
  expect(applied[1]![0]!.ports[0]!.published).toEqual([{ port: 80, sources: undefined }]);
});

test("a port that a pod has by its hostPort is named with the pod, also when the Service had it first", () => {
  const { update, applied, events } = aManager();
  const services = [aService("web", { type: "LoadBalancer" })];
  const published = () => applied.at(-1)![0]!.ports[0]!.published.map(({ port }) => port);
  update(services, []);
  expect(published()).toEqual([80]);
  update(services, [aServicePod("a", "172.17.0.2", { ports: [{ containerPort: 80, hostPort: 80, protocol: "TCP" }] })]);
  expect(events).toEqual([
    'Service web PortNotAllocated it is not published: port TCP/80 of the machine is held by the hostPort of pod "default/a"',
  ]);
  expect(published()).toEqual([]);
  update(services, []);
  expect(published()).toEqual([80]);
});

test("a network of the machine that comes later and overlaps the addresses is told once, within a minute; no range of another kubelet-ts", async () => {
  const networks = ["172.17.0.1/16"];
  const { manager, update, logger, proxy, clock } = aManager({}, networks);
  manager.onChange(() => {});
  update([aService("web")], []);
  // Both started at the same moment.
  proxy.ranges.push("10.96.0.0/16");
  await clock.advance(60_000);
  proxy.check();
  expect(logger.lines).toEqual([]);
  networks.push("10.96.7.1/24");
  proxy.check();
  expect(logger.lines).toEqual([]);
  for (let minute = 0; minute < 2; minute++) {
    await clock.advance(60_000);
    proxy.check();
  }
  expect(logger.lines).toEqual([expect.stringContaining("this machine now has the network 10.96.7.0/24")]);
});

test("a client's Service keeps the address of the answer, though another range has become the first free one", () => {
  const networks = ["172.17.0.1/16", "10.96.0.1/16"];
  const kept = {};
  const { spec } = aManager(kept, networks).manager.assign(aService("web"), () => []);
  // The process ends before it hears of its own object.
  networks.pop();
  const { manager, update } = aManager(kept, networks);
  const web = aService("web", { ...(spec as object) });
  update([web], []);
  expect(spec).toMatchObject({ clusterIP: expect.stringMatching(/^10\.97\./) });
  expect(manager.specOf(web)).toMatchObject({ clusterIP: (spec as { clusterIP: string }).clusterIP });
});

test("a Service shows what it was given", () => {
  const { manager, update } = aManager();
  const web = aService("web", { type: "NodePort" });
  update([web], []);
  expect(manager.specOf(web)).toEqual({
    clusterIP: expect.stringMatching(/^10\.96\./),
    clusterIPs: [expect.stringMatching(/^10\.96\./)],
    ports: [{ port: 80, targetPort: 8000, protocol: "TCP", nodePort: expect.any(Number) }],
  });
  expect(manager.specOf(aService("other", { clusterIP: "None" }))).toBeUndefined();
});

test("variables of Services are known before the first pod starts", () => {
  const { manager } = aManager();
  manager.setServices([aService("web"), aService("headless", { clusterIP: "None" })]);
  const ip = (manager.specOf(aService("web")) as { clusterIP: string }).clusterIP;
  const names = (pod: Pod) => [...manager.environmentOf(pod)].filter(([name]) => name.endsWith("_HOST"));
  expect(names(client)).toEqual([["WEB_SERVICE_HOST", ip]]);
  expect(names({ ...client, spec: { ...client.spec, enableServiceLinks: false } })).toEqual([]);
  expect(names({ ...client, metadata: { ...client.metadata, namespace: "shop" } })).toEqual([]);
});

test("a port that another kubelet-ts had first is given up, and taken again when it is free", () => {
  const { manager, update, applied, events, proxy } = aManager();
  const services = [aService("web", { type: "LoadBalancer" })];
  let looks = 0;
  manager.onChange(() => looks++);
  update(services, []);
  proxy.check();
  expect(looks).toBe(0);
  proxy.rivals.set("TCP/80", "another");
  proxy.check();
  expect(looks).toBe(1);
  update(services, []);
  expect(applied.at(-1)![0]!.ports[0]!.published).toEqual([]);
  expect(events).toEqual([
    "Service web PortNotAllocated it is not published: port TCP/80 of the machine is held by another",
  ]);
  proxy.rivals.clear();
  proxy.check();
  expect(looks).toBe(2);
  update(services, []);
  expect(applied.at(-1)![0]!.ports[0]!.published).toHaveLength(1);
});
