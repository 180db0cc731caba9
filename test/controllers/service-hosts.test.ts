import { describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import type { Service } from "../../src/base/api/service.ts";
import { prepareState } from "../../src/controllers/prepare-state.ts";
import { ExternalNames, ServiceHosts } from "../../src/controllers/service-hosts.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { aService, aServicePod, manifest, podTemplate, readObjects } from "./workload-world.ts";

const service = (spec: object = {}, metadata: object = {}) => aService("db", spec, metadata);

/** A name server with these addresses; without an entry its answer is an error, or `otherwise`. */
function nameServer(addresses: Record<string, string[]> = {}, otherwise?: Promise<string[]>) {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  const asked: string[] = [];
  const lookUp = (name: string) => {
    asked.push(name);
    if (addresses[name]) return Promise.resolve(addresses[name]);
    return otherwise ?? Promise.reject(new Error("ENOTFOUND"));
  };
  const names = new ExternalNames({ clock, logger, lookUp });
  return { clock, logger, asked, addresses, names, hosts: new ServiceHosts("", names) };
}

/** Lines that the hosts file of a client gets. */
function linesFor(client: Pod, services: Service[], pods: Pod[]): string[] {
  const { hosts } = nameServer();
  hosts.update(services, pods);
  return hosts.aliasesFor(client).map(({ ip, hostnames }) => `${ip} ${hostnames!.join(" ")}`);
}

const client = aServicePod("client", "10.0.0.9", { labels: {} });
const NAMES = "db db.default db.default.svc db.default.svc.cluster.local";

describe("names", () => {
  test("of each Ready pod behind a Service", () => {
    const pods = [
      aServicePod("a", "10.0.0.1"),
      aServicePod("b", "10.0.0.2"),
      aServicePod("c", "10.0.0.3", { ready: false }),
      client,
    ];
    expect(linesFor(client, [service()], pods)).toEqual([`10.0.0.1 ${NAMES}`, `10.0.0.2 ${NAMES}`]);
  });

  test("are on lines that musl reads whole", () => {
    const names = ["a", "b", "c", "d", "e"].map((letter) => letter.repeat(30));
    const services = names.map((name) => service({}, { name }));
    const lines = linesFor(client, services, [aServicePod("p", "10.0.0.1")]);
    expect(lines.length).toBeGreaterThan(1);
    expect(lines.every((line) => line.startsWith("10.0.0.1 ") && line.length < 511)).toBe(true);
    const found = lines.flatMap((line) => line.split(" ").slice(1));
    expect(found).toEqual(
      names.flatMap((name) => ["", ".default", ".default.svc", ".default.svc.cluster.local"].map((end) => name + end)),
    );
  });

  test("of pods that are not Ready, when the Service publishes them", () => {
    const pods = [aServicePod("a", "10.0.0.1", { ready: false })];
    expect(linesFor(client, [service({ publishNotReadyAddresses: true })], pods)).toEqual([`10.0.0.1 ${NAMES}`]);
  });

  test("without the short one from another namespace", () => {
    const other = aServicePod("other", "10.0.0.8", { namespace: "shop", labels: {} });
    expect(linesFor(other, [service()], [aServicePod("a", "10.0.0.1")])).toEqual([
      "10.0.0.1 db.default db.default.svc db.default.svc.cluster.local",
    ]);
  });

  test("of the pods of a StatefulSet by their host names", () => {
    const pods = [aServicePod("db-0", "10.0.0.1", { spec: { hostname: "db-0", subdomain: "db" } })];
    const [line] = linesFor(client, [service({ clusterIP: "None" })], pods);
    expect(line).toContain("db-0.db db-0.db.default db-0.db.default.svc db-0.db.default.svc.cluster.local");
  });

  test("not for pods whose DNS policy leaves the cluster out", () => {
    const outside = aServicePod("outside", "10.0.0.9", { labels: {}, spec: { dnsPolicy: "Default" } });
    expect(linesFor(outside, [service()], [aServicePod("a", "10.0.0.1")])).toEqual([]);
  });
});

describe("of type ExternalName", () => {
  const external = (externalName: string, name = "db") =>
    service({ type: "ExternalName", externalName, selector: undefined, ports: undefined }, { name });
  const lines = (hosts: ServiceHosts) =>
    hosts.aliasesFor(client).map(({ ip, hostnames }) => `${ip} ${hostnames!.join(" ")}`);

  test("has the addresses of its name, looked up again every minute", async () => {
    const { hosts, clock, addresses, asked } = nameServer({ "db.example.com": ["192.0.2.2", "192.0.2.1"] });
    const update = () => hosts.update([external("db.example.com.")], [client]);
    let changes = 0;
    hosts.onChange(() => {
      changes++;
      update();
    });
    update();
    expect(lines(hosts)).toEqual([]);
    await clock.advance(0);
    expect(lines(hosts)).toEqual([`192.0.2.1 ${NAMES}`, `192.0.2.2 ${NAMES}`]);
    addresses["db.example.com"] = ["192.0.2.7"];
    await clock.advance(59_000);
    expect(asked).toHaveLength(1);
    await clock.advance(1000);
    expect(lines(hosts)).toEqual([`192.0.2.7 ${NAMES}`]);
    expect({ changes, asked: asked.length }).toEqual({ changes: 2, asked: 2 });
    hosts.update([], [client]);
    await clock.advance(600_000);
    expect(asked).toHaveLength(2);
  });

  test("keeps its last addresses while no name server answers, and is asked for sooner", async () => {
    const { hosts, clock, addresses, asked, logger } = nameServer({ "db.example.com": ["192.0.2.1"] });
    const update = () => hosts.update([external("db.example.com")], [client]);
    hosts.onChange(update);
    update();
    await clock.advance(0);
    delete addresses["db.example.com"];
    await clock.advance(60_000);
    await clock.advance(20_000);
    expect(lines(hosts)).toEqual([`192.0.2.1 ${NAMES}`]);
    expect(asked).toHaveLength(4);
    expect(logger.lines).toEqual([
      'warn Cannot look up "db.example.com", which a Service of type ExternalName leads to, its last addresses stay: ENOTFOUND',
    ]);
  });

  test("holds up the other names until its first answer, at most five seconds", async () => {
    const { hosts, clock, asked } = nameServer({}, new Promise(() => {}));
    const update = () =>
      hosts.update([service(), external("slow.example.com", "slow")], [aServicePod("a", "10.0.0.1"), client]);
    hosts.onChange(update);
    update();
    await clock.advance(4000);
    expect(lines(hosts)).toEqual([]);
    await clock.advance(1000);
    expect(lines(hosts)).toEqual([`10.0.0.1 ${NAMES}`]);
    // One question is enough.
    await clock.advance(600_000);
    expect(asked).toHaveLength(1);
  });

  test.each([
    ["another Service", "db.shop.svc.cluster.local"],
    ["itself", "alias.default.svc.cluster.local"],
  ])("that leads to %s", (_, name) => {
    const { hosts, asked } = nameServer();
    const shop = service({}, { namespace: "shop" });
    hosts.update([shop, external(name, "alias")], [aServicePod("a", "10.0.0.1", { namespace: "shop" }), client]);
    const found = lines(hosts).join().includes("alias.default.svc");
    expect({ found, asked }).toEqual({ found: name.startsWith("db"), asked: [] });
  });
});

test("only the files that change are written again", () => {
  const { hosts } = nameServer();
  const written: string[] = [];
  hosts.onStale((stale) => {
    for (const pod of stale) hosts.aliasesFor(pod);
    written.push(...stale.map(({ metadata }) => metadata.name!));
  });
  const outside = aServicePod("outside", "10.0.0.8", { labels: {}, spec: { dnsPolicy: "None" } });
  hosts.aliasesFor(outside);
  const pods = [aServicePod("a", "10.0.0.1"), client, outside];
  hosts.update([service()], pods);
  expect(written).toEqual(["a", "client"]);
  hosts.update([service()], pods);
  expect(written).toHaveLength(2);
  hosts.update([service()], [aServicePod("a", "10.0.0.7"), client, outside]);
  expect(written.slice(2)).toEqual(["a", "client"]);
  hosts.update([], [client]);
  expect(written.slice(4)).toEqual(["client"]);
});

describe("published ports", () => {
  const deployment = (replicas: number, ports?: object[]) =>
    manifest(
      "Deployment",
      { name: "web" },
      {
        replicas,
        selector: { matchLabels: { app: "web" } },
        template: podTemplate("busybox:1", {
          containers: [{ name: "app", image: "busybox:1", ...(ports && { ports }) }],
        }),
      },
    );
  const publish = (spec: object, replicas = 1, ports?: object[]) => {
    const published = manifest("Service", { name: "web" }, { selector: { app: "web" }, ...spec });
    const objects = readObjects(deployment(replicas, ports), published);
    const prepared = prepareState({ pods: [], configMaps: new Map(), secrets: new Map(), objects });
    const [workload] = prepared.workloads;
    const { template } = (workload!.object as { spec: { template: Pod } }).spec;
    return { ports: template.spec.containers[0]!.ports, warnings: prepared.warnings };
  };

  const balanced = (targetPort: number | string) => ({ type: "LoadBalancer", ports: [{ port: 80, targetPort }] });
  const tcp = (containerPort: number, hostPort: number) => ({ containerPort, protocol: "TCP", hostPort });
  const numbered = { type: "NodePort", ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] };
  test.each<[what: string, service: object, own: object[] | undefined, want: object[] | undefined]>([
    ["NodePort with a number", numbered, undefined, [tcp(8080, 30080)]],
    [
      "LoadBalancer by the name of the container port",
      balanced("http"),
      [{ name: "http", containerPort: 8080 }],
      [{ name: "http", ...tcp(8080, 80) }],
    ],
    ["next to its own", balanced(8080), [{ containerPort: 8080, hostPort: 9000 }], [tcp(8080, 9000), tcp(8080, 80)]],
    ["ClusterIP", { ports: [{ port: 80 }] }, undefined, undefined],
  ])("%s", (_what, spec, ports, want) => {
    expect(publish(spec, 1, ports).ports).toEqual(want as never);
  });

  test("NodePort without a number gets one that stays", () => {
    const [port] = publish({ type: "NodePort", ports: [{ port: 80 }] }).ports!;
    expect(port!.hostPort).toBeGreaterThanOrEqual(30000);
    expect(port!.hostPort).toBeLessThan(32768);
    expect(publish({ type: "NodePort", ports: [{ port: 80 }] }).ports![0]).toEqual(port!);
  });

  test("of several pods is left out, and said", () => {
    const { ports, warnings } = publish({ type: "LoadBalancer", ports: [{ port: 80 }] }, 2);
    expect(ports).toBeUndefined();
    expect(warnings).toEqual([expect.stringContaining('Service "default/web" is not published on the node')]);
  });
});
