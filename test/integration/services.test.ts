import { expect, test } from "bun:test";
import { runProgram } from "../../src/base/host/run-program.ts";
import { computeRootHash } from "../../src/docker/labels.ts";
import { chainPrefix } from "../../src/kubelet/kernel-rules.ts";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { askApi } from "../support/local-api.ts";
import { list, object, podSpec, shell, sleeper, workload } from "../support/manifests.ts";
import type { PodItem, TestNode } from "../support/test-node.ts";
import { PATIENCE_MS, until } from "../support/until.ts";

const LIMITS = { timeoutMs: 30_000, maxBytes: 16 * 1024 * 1024 };
const program = async (...argv: string[]) => (await runProgram(argv, LIMITS)).stdout;
const prefixOf = (node: TestNode) => chainPrefix(computeRootHash(node.rootDir));
/** The kernel's rules of this node. */
const rulesOf = async (node: TestNode, save = "iptables-save") =>
  (await program(save)).split("\n").filter((line) => line.includes(prefixOf(node)));

/**
 * That many Ready pods, to which the kernel leads, as far as they are of Deployment "web": as in a cluster the rules follow
 * readiness. They take seconds where another kubelet-ts changes thousands; until the first ones, addresses leave the machine.
 */
async function readyPodsInRules(node: TestNode, count: number) {
  const pods = await node.readyPods(count);
  const ips = pods.flatMap(({ metadata, status }) => (metadata.name!.startsWith("web-") ? [status.podIP] : []));
  let rules: string[] = [];
  const areThere = async () => {
    rules = await rulesOf(node);
    return ips.every((ip) => rules.some((rule) => rule.includes(`--to-destination ${ip}:`)));
  };
  const details = async () => [...rules, await node.diagnosis()].join("\n");
  await until(`rules for ${ips.join()}`, areThere, { details, limitMs: PATIENCE_MS });
  return pods;
}

/** A Deployment of pods that answer with their name on port 8000, and end their work when they are asked to. */
const servers = (name: string, replicas: number, env = "1") =>
  workload(
    "Deployment",
    name,
    { replicas, strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
    podSpec(
      {
        ...shell("hostname > /tmp/index.html; exec httpd -f -p 8000 -h /tmp"),
        ports: [{ name: "http", containerPort: 8000 }],
        env: [{ name: "VERSION", value: env }],
        readinessProbe: { httpGet: { path: "/", port: "http" }, periodSeconds: 1 },
        lifecycle: { preStop: { exec: { command: ["sleep", "2"] } } },
      },
      { terminationGracePeriodSeconds: 3 },
    ),
  );
const service = (name: string, spec: object = {}) =>
  object("Service", name, { spec: { selector: { app: name }, ports: [{ port: 80, targetPort: "http" }], ...spec } });

interface ShownService {
  spec: { clusterIP: string; clusterIPs: string[]; ports: { port: number; nodePort?: number }[] };
  status: { loadBalancer: { ingress?: { ip: string }[] }; conditions?: { message: string }[] };
}
const shown = async (node: TestNode, name: string) =>
  JSON.parse((await node.run("get service", name, "-o", "json")).stdout) as ShownService;

/** The names of pods that answer, from the host. */
const fetchName = async (address: string) =>
  (await (await fetch(`http://${address}/`, { signal: AbortSignal.timeout(3000), keepalive: false })).text()).trim();

/** A program that answers with a name. */
const udpEcho = (name: string) =>
  `await Bun.udpSocket({ port: 9053, hostname: "0.0.0.0", socket: { data: (socket, _, port, from) => void socket.send("${name}", port, from) } }); console.log("ready")`;

/** A client that sends everything from one port. */
async function udpClient(host: string, port: number) {
  let received = "";
  const data = (_: unknown, bytes: Buffer) => {
    received = bytes.toString();
  };
  const socket = await Bun.udpSocket({
    connect: { hostname: host, port },
    socket: { data, error: () => {} },
  });
  const ask = async () => {
    received = "";
    socket.send("?");
    await Bun.sleep(100);
    return received;
  };
  return { socket, ask };
}

/** A machine behind a cable of its own: its address, and a request from there. */
async function anotherMachine(name: string) {
  const [near, far] = [1, 9].map((last) => `192.168.${128 + (Number.parseInt(name.slice(2), 10) % 127)}.${last}`);
  const ip = async (line: string) => {
    const { exitCode, stderr } = await runProgram(["ip", ...line.split(" ")], LIMITS);
    if (exitCode !== 0) throw new Error(`ip ${line}: ${stderr}`);
  };
  await ip(`netns add ${name}`);
  await ip(`link add ${name} type veth peer name eth0 netns ${name}`);
  await ip(`addr add ${near}/24 dev ${name}`);
  await ip(`link set ${name} up`);
  await ip(`-n ${name} addr add ${far}/24 dev eth0`);
  await ip(`-n ${name} link set eth0 up`);
  await ip(`-n ${name} route add default via ${near}`);
  const code = "console.log(await (await fetch(process.argv[1], { signal: AbortSignal.timeout(2000) })).text())";
  const ask = async (url: string) =>
    (await program("ip", "netns", "exec", name, process.execPath, "-e", code, url)).trim();
  return { far: far!, ask, [Symbol.asyncDispose]: () => ip(`netns del ${name}`) };
}

/** Answers with its name and the address of the client. */
const WHO = `mkdir -p /tmp/cgi-bin
printf '#!/bin/sh\\necho; echo $(hostname) $REMOTE_ADDR' > /tmp/cgi-bin/who
chmod +x /tmp/cgi-bin/who; exec httpd -f -p 8000 -h /tmp`;

describeWithEngine("Services", () => {
  test("an address leads to every Ready pod, from pods, the pods themselves and the host, also after a kill, until there is none", async () => {
    const node = testNode();
    node.writeManifest("web.yaml", list(servers("web", 3), service("web"), service("nothing")));
    node.writeManifest("client.yaml", sleeper("client", { name: "client" }));
    const kubelet = await node.start();
    const pods = await readyPodsInRules(node, 4);
    const names = pods.flatMap(({ metadata }) => (metadata.name!.startsWith("web-") ? metadata.name! : [])).sort();
    const ask = `for i in $(seq 100); do wget -q -O - http://web/; done`;
    const client = await node.runningContainer("client");
    const countsOf = (text: string) => Map.groupBy(text.trim().split("\n"), (name) => name);
    const counts = countsOf(await node.exec(client.Id, "sh", "-c", ask));
    expect([...counts.keys()].sort()).toEqual(names);
    for (const { length } of counts.values()) expect(length).toBeGreaterThan(10);
    const [server] = await node.running("app");
    expect([...countsOf(await node.exec(server!.Id, "sh", "-c", ask)).keys()].sort()).toEqual(names);
    const { clusterIP } = (await shown(node, "web")).spec;
    expect(names).toContain(await fetchName(clusterIP));
    const hosts = await node.exec(client.Id, "cat", "/etc/hosts");
    expect(hosts).toContain(`${clusterIP}\tweb`);
    expect(await node.exec(client.Id, "sh", "-c", "echo $WEB_SERVICE_HOST")).toBe(`${clusterIP}\n`);
    const ips = pods.flatMap(({ metadata, status }) => (metadata.labels?.app === "web" ? [status.podIP!] : [])).sort();
    const { stdout } = await node.run("get endpoints web", "-o", "jsonpath={.subsets[*].addresses[*].ip}");
    expect(stdout.trim().split(" ").sort()).toEqual(ips);
    expect((await node.run("get endpointslices")).stdout).toMatch(/^web-\w{5}\s+IPv4\s+8000\s/m);
    const { spec } = await shown(node, "nothing");
    const startMs = performance.now();
    await expect(fetchName(spec.clusterIP)).rejects.toThrow();
    // Without an answer the first packet is sent again after a second.
    expect(performance.now() - startMs).toBeLessThan(950);
    // A connection of TCP that is refused by ICMP is tried again after a second.
    const refused = await node.exec(client.Id, "sh", "-c", "timeout 1 wget -O - http://nothing/ 2>&1; true");
    expect(refused).toContain("refused");
    await kubelet.kill();
    expect(countsOf(await node.exec(client.Id, "sh", "-c", ask)).size).toBe(3);
    // Without addresses a name leads to the pods, and the rules of those that there were are gone.
    await node.start(["--service-cluster-ip-range=none"]);
    await node.readyPods(4);
    const byName = () => node.exec(client.Id, "sh", "-c", "wget -q -O - http://web:8000/ 2>&1; true");
    await node.until("the pods by the name", async () => names.includes((await byName()).trim()));
    expect(await rulesOf(node)).toEqual([]);
  });

  test.concurrent("rules that were removed come back; down --all removes them, and those of another node stay", async () => {
    const [node, other] = [testNode(), testNode()];
    for (const each of [node, other]) {
      each.writeManifest("web.yaml", list(servers("web", 1), service("web")));
      await each.start();
      await readyPodsInRules(each, 1);
    }
    const [own, foreign] = [(await shown(node, "web")).spec.clusterIP, (await shown(other, "web")).spec.clusterIP];
    expect(own).not.toBe(foreign);
    const [name, otherName] = [await fetchName(own), await fetchName(foreign)];
    expect(name).not.toBe(otherName);
    const before = await rulesOf(node);
    for (const chain of ["PREROUTING", "OUTPUT"]) {
      await program("iptables", "-t", "nat", "-D", chain, "-j", `${prefixOf(node)}-SERVICES`);
    }
    await expect(fetchName(own)).rejects.toThrow();
    await until("the rules", async () => (await fetchName(own).catch(() => "")) === name);
    expect((await rulesOf(node)).sort()).toEqual(before.sort());
    await node.endProcesses();
    expect(await fetchName(own)).toBe(name);
    const foreignRules = await rulesOf(other);
    expect((await node.run("down --all --now")).exitCode).toBe(0);
    expect(await rulesOf(node)).toEqual([]);
    expect(await rulesOf(other)).toEqual(foreignRules);
    expect(await fetchName(foreign)).toBe(otherName);
  });

  test.concurrent("externalIPs, loadBalancerSourceRanges, sessionAffinity, publishNotReadyAddresses, SCTP", async () => {
    const node = testNode();
    await using outside = await anotherMachine(`kv${node.kubeletPort}`);
    const balancer = (name: string, port: number, range: string) =>
      service(name, {
        selector: { app: "web" },
        type: "LoadBalancer",
        ports: [{ port, targetPort: 8000 }],
        loadBalancerSourceRanges: [range],
      });
    const ports = [{ port: 80, targetPort: 8000 }];
    const clientIP = { timeoutSeconds: 1 };
    const hidden = { ...shell(WHO), readinessProbe: { exec: { command: ["false"] } } };
    const selector = { app: "web" };
    node.writeManifest(
      "all.yaml",
      list(
        workload("Deployment", "web", { replicas: 3 }, podSpec(shell(WHO))),
        sleeper("hidden", { ...hidden, name: "hidden" }, {}, { labels: { app: "hidden" } }),
        sleeper("client", { name: "client" }),
        service("outer", { selector, ports, externalIPs: ["203.0.113.7"] }),
        balancer("open", node.kubeletPort, `${outside.far}/32`),
        balancer("shut", node.cadvisorPort, "198.51.100.0/24"),
        service("same", { selector, ports, sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP } }),
        service("early", { selector: { app: "hidden" }, ports, publishNotReadyAddresses: true }),
        service("late", { selector: { app: "hidden" }, ports }),
        service("sctp", { selector, ports: [{ port: 99, protocol: "SCTP" }] }),
      ),
    );
    await node.start(["--cadvisor-port=0"]);
    const pods = await readyPodsInRules(node, 4);
    const client = await node.runningContainer("client");
    const hostIp = pods[0]!.status.hostIP!;
    const urlOf = (address: string) => `http://${address}/cgi-bin/who`;
    const ask = (address: string, times = 1) =>
      node.exec(client.Id, "sh", "-c", `for i in $(seq ${times}); do wget -q -O - ${urlOf(address)} 2>&1; done; true`);
    // Other machines are named with their own addresses.
    const isSeen = new RegExp(`^web-\\S+ \\[::ffff:${outside.far}\\]$`);
    expect(await outside.ask(urlOf("203.0.113.7"))).toMatch(isSeen);
    expect(await ask("203.0.113.7")).toMatch(/^web-/);
    expect(await outside.ask(urlOf(`${hostIp}:${node.kubeletPort}`))).toMatch(isSeen);
    expect(await outside.ask(urlOf(`${hostIp}:${node.cadvisorPort}`))).toBe("");
    expect(await ask(`${hostIp}:${node.kubeletPort}`)).toContain("refused");
    expect(await ask("early")).toMatch(/^hidden-/);
    expect(await ask("late")).toContain("refused");
    const namesOf = async (address: string) =>
      new Set(
        (await ask(address, 40))
          .trim()
          .split("\n")
          .map((line) => line.split(" ")[0]!),
      );
    expect([(await namesOf("outer")).size, (await namesOf("same")).size]).toEqual([3, 1]);
    const seen = new Set<string>();
    await until("another pod after the time of the affinity", async () => {
      await Bun.sleep(1200);
      seen.add([...(await namesOf("same"))][0]!);
      return seen.size > 1;
    });
    const rules = await rulesOf(node);
    expect(rules.filter((line) => line.includes("-p sctp") && line.includes("-j DNAT"))).toHaveLength(3);
  });

  test("a rolling update at 200 requests a second loses none", async () => {
    const node = testNode();
    node.writeManifest("web.yaml", list(servers("web", 3), service("web")));
    await node.start();
    const before = new Set((await readyPodsInRules(node, 3)).map(({ metadata }) => metadata.name!));
    const { clusterIP } = (await shown(node, "web")).spec;
    const seen = new Set<string>();
    const failures: string[] = [];
    const requests: Promise<void>[] = [];
    const timer = setInterval(() => {
      const request = fetchName(clusterIP).then(
        (name) => void seen.add(name),
        (error: Error) => void failures.push(error.message),
      );
      requests.push(request);
    }, 5);
    node.writeManifest("web.yaml", list(servers("web", 3, "2"), service("web")));
    const areOthers = async () => {
      const pods = await node.pods();
      return pods.length === 3 && pods.every(({ metadata }) => !before.has(metadata.name!));
    };
    // One pod after the other.
    await node.until("three other pods", areOthers, 2 * PATIENCE_MS);
    await node.readyPods(3);
    clearInterval(timer);
    await Promise.all(requests);
    expect(failures).toEqual([]);
    expect(seen.size).toBe(6);
    expect(requests.length).toBeGreaterThan(500);
  });

  test.concurrent("--service-cluster-ip-range: ports of several pods, without a restart", async () => {
    const node = testNode();
    const [port, lbPort, heldPort] = [node.kubeletPort, node.cadvisorPort, node.readOnlyPort];
    node.writeManifest("web.yaml", list(servers("web", 2), service("web", { clusterIP: "10.123.45.7" })));
    await node.start(["--service-cluster-ip-range=10.123.45.0/24", "--cadvisor-port=0"]);
    const uids = (await node.readyPods(2)).map(({ metadata }) => metadata.uid).sort();
    const names = (await node.pods()).map(({ metadata }) => metadata.name!);
    await node.until("the address answers", async () => names.includes(await fetchName("10.123.45.7").catch(() => "")));
    const httpPort = { targetPort: "http" };
    const published = list(
      servers("web", 2),
      service("web", { clusterIP: "10.123.45.7" }),
      object("Service", "open", {
        spec: { type: "NodePort", selector: { app: "web" }, ports: [{ ...httpPort, port: 80, nodePort: port }] },
      }),
      object("Service", "balanced", {
        spec: { type: "LoadBalancer", selector: { app: "web" }, ports: [{ ...httpPort, port: lbPort }] },
      }),
      object("Service", "held", {
        spec: { type: "LoadBalancer", selector: { app: "web" }, ports: [{ ...httpPort, port: heldPort }] },
      }),
    );
    node.writeManifest("web.yaml", published);
    const seen = new Set<string>();
    await node.until("both pods by the node port of 127.0.0.1", async () => {
      const name = await fetchName(`127.0.0.1:${port}`).catch(() => "");
      if (name !== "") seen.add(name);
      return seen.size === 2;
    });
    expect([...seen].sort()).toEqual(names.sort());
    const { status } = await shown(node, "balanced");
    const [{ ip } = { ip: "" }] = status.loadBalancer.ingress ?? [];
    expect(names).toContain(await fetchName(`${ip}:${lbPort}`));
    expect((await shown(node, "held")).status.conditions![0]!.message).toContain(
      `port TCP/${heldPort} of the machine is held by kubelet-ts (pid `,
    );
    expect((await node.run("get service held")).stdout).toContain("<port is held>");
    expect((await node.run("explain service held")).stdout).toContain(`TCP/${heldPort}`);
    expect((await node.pods()).map(({ metadata }) => metadata.uid).sort()).toEqual(uids);
    node.writeManifest("web.yaml", list(servers("web", 2), service("web", { clusterIP: "10.123.45.7" })));
    await node.until("the port is closed", async () => (await fetchName(`127.0.0.1:${port}`).catch(() => "")) === "");
    expect((await node.pods()).map(({ metadata }) => metadata.uid).sort()).toEqual(uids);
  });

  test.concurrent("UDP, --nodeport-addresses: a client that keeps its port reaches a pod that was not there before, and another when its pod is not Ready", async () => {
    const node = testNode();
    const nodePort = node.kubeletPort;
    const ports = [{ name: "echo", port: 53, targetPort: 9053, nodePort, protocol: "UDP" }];
    const readinessProbe = {
      exec: { command: ["test", "!", "-e", "/tmp/busy"] },
      periodSeconds: 1,
      failureThreshold: 1,
    };
    const pod = (name: string) => sleeper(name, { name, readinessProbe }, {}, { labels: { app: "echo" } });
    const echo = object("Service", "echo", { spec: { type: "NodePort", selector: { app: "echo" }, ports } });
    await using servers = new AsyncDisposableStack();
    const clientOf = async (host: string, port: number) => {
      const client = await udpClient(host, port);
      servers.defer(() => client.socket.close());
      return client;
    };
    const serve = async (name: string) => {
      const { Id } = await node.runningContainer(name);
      const { State } = await node.docker.inspectContainer(Id);
      const child = Bun.spawn(["nsenter", `--target=${State.Pid}`, "--net", process.execPath, "-e", udpEcho(name)], {
        stdout: "pipe",
      });
      servers.defer(() => child.kill("SIGKILL"));
      await child.stdout.getReader().read();
      return Id;
    };
    const early = await clientOf("127.0.0.1", nodePort);
    expect(await early.ask()).toBe("");
    node.writeManifest("echo.yaml", list(echo, pod("first")));
    await node.start(["--nodeport-addresses=127.0.0.0/8"]);
    const first = await serve("first");
    const late = await clientOf((await shown(node, "echo")).spec.clusterIP, 53);
    // Each question keeps the kernel's entry of its connection alive.
    for (const { ask } of [early, late]) await until("the first pod", async () => (await ask()) === "first");
    const [{ status }] = (await node.pods()) as [PodItem];
    const elsewhere = await clientOf(status.hostIP!, nodePort);
    expect(await elsewhere.ask()).toBe("");
    node.writeManifest("second.yaml", pod("second"));
    await serve("second");
    await node.readyPods(2);
    await node.exec(first, "touch", "/tmp/busy");
    await node.readyPods(1);
    for (const { ask } of [early, late]) await until("the second pod", async () => (await ask()) === "second");
  });

  test.concurrent("a Service without a selector leads to the addresses that a manifest or a client writes", async () => {
    const node = testNode();
    const database = Bun.serve({ port: 0, hostname: "0.0.0.0", fetch: () => new Response("database\n") });
    const port = database.port!;
    const ofPort = (spec: object) => ({ selector: undefined, ports: [{ name: "http", port }], ...spec });
    node.writeManifest("client.yaml", list(sleeper("client", { name: "client" }), service("db", ofPort({}))));
    await node.start();
    const client = await node.runningContainer("client");
    const ask = async (name: string) =>
      (await node.exec(client.Id, "sh", "-c", `timeout 3 wget -q -O - http://${name}:${port}/ 2>&1; true`)).trim();
    expect(await ask("db")).toContain("refused");
    const gateway = await node.exec(client.Id, "sh", "-c", "ip route | sed -n 's/^default via \\([^ ]*\\).*/\\1/p'");
    const ports = [{ name: "http", port }];
    const subsets = [{ addresses: [{ ip: gateway.trim() }], ports }];
    node.writeManifest("endpoints.yaml", object("Endpoints", "db", { subsets }));
    await node.until("the Endpoints of a file", async () => (await ask("db")) === "database");
    expect((await node.run("explain service/db")).stdout).toContain("1 written addresses are behind it");
    expect((await node.run("describe service db")).stdout).toContain(`Endpoints:         ${gateway.trim()}:${port}`);
    expect((await node.run("get endpointslices")).stdout).toMatch(/^db-\w{5}\s+IPv4\s/m);
    const slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    const slice = {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "headless-1", labels: { "kubernetes.io/service-name": "headless" } },
      addressType: "IPv4",
      endpoints: [{ addresses: [gateway.trim()], hostname: "db-0" }],
      ports,
    };
    expect((await askApi(node, "POST", slices, slice)).status).toBe(201);
    const headless = service("headless", ofPort({ clusterIP: "None" }));
    expect((await askApi(node, "POST", "/api/v1/namespaces/default/services", headless)).status).toBe(201);
    for (const name of ["headless", "db-0.headless"]) {
      await node.until(name, async () => (await ask(name)) === "database");
    }
    node.removeManifest("endpoints.yaml");
    await node.until("no endpoint is left", async () => (await ask("db")).includes("refused"));
    // As a controller of a cluster does, that of a selector takes the Endpoints over.
    const api = "/api/v1/namespaces/default";
    expect((await askApi(node, "POST", `${api}/endpoints`, { metadata: { name: "own" }, subsets })).status).toBe(201);
    await askApi(node, "POST", `${api}/services`, service("own", ofPort({ selector: { app: "client" } })));
    const own = async () => (await askApi(node, "GET", `${api}/endpoints/own`)).json;
    await node.until("the controller's", async () => (await own()).metadata.ownerReferences?.[0].kind === "Service");
    const refused = await askApi(node, "PUT", `${api}/endpoints/own`, { metadata: { name: "own" }, subsets });
    expect(refused.json.message).toContain('endpoints "own" is made by Service "own": edit that');
    await database.stop(true);
  }, 120_000);

  test.concurrent("an engine that writes its own rules is restarted while all rules are flushed: the address works again", async () => {
    const engine = await privateEngine({ hasNetwork: true });
    await engine.provideImages("busybox:test");
    const node = testNode({ socketPath: engine.socketPath });
    node.writeManifest("web.yaml", list(servers("web", 2), service("web")));
    node.writeManifest("client.yaml", sleeper("client", { name: "client" }));
    node.spawn(node.flags(), { prefix: engine.enter });
    const inside = (...argv: string[]) => program(...engine.enter, ...argv);
    const ask = async () => {
      const client = await node.runningContainer("client");
      return await node.exec(client.Id, "sh", "-c", "timeout 3 wget -q -O - http://web/");
    };
    const answers = () => node.until("the Service to answer", async () => (await ask()).startsWith("web-"));
    await answers();
    expect(await inside("iptables-save")).toContain("-j DOCKER-USER");
    await engine.stop();
    for (const table of ["nat", "filter"]) {
      await inside("iptables", "-t", table, "-F");
      await inside("iptables", "-t", table, "-X");
    }
    await engine.start();
    await answers();
    for (const table of ["nat", "filter"]) await inside("iptables", "-t", table, "-F");
    await answers();
    const jumps = (await inside("iptables-save", "-t", "filter"))
      .split("\n")
      .filter((line) => line.startsWith("-A FORWARD"));
    expect(jumps[0]).toContain(prefixOf(node));
  });

  test.concurrent("both families: addresses, names, endpoints and node ports, which all go with the second range", async () => {
    const node = testNode();
    const part = () => Math.floor(Math.random() * 0xffff).toString(16);
    const [lan, range] = [`fd5a:${part()}:${part()}`, `fd5b:${part()}:${part()}`];
    const ranges = `10.122.${Math.floor(Math.random() * 256)}.0/24`;
    await node.docker.createNetwork({
      Name: node.name,
      EnableIPv6: true,
      IPAM: { Config: [{ Subnet: `${lan}::/64` }] },
    });
    try {
      const inNetwork = { annotations: { "kubelet-ts.io/network": node.name } };
      const server = (name: string) =>
        sleeper(name, { ...shell(WHO), name }, {}, { ...inNetwork, labels: { app: "web" } });
      const ports = [{ port: 80, targetPort: 8000, nodePort: node.kubeletPort }];
      const web = { type: "NodePort", ports, ipFamilyPolicy: "RequireDualStack", ipFamilies: ["IPv6"] };
      const client = sleeper("client", { name: "client" }, {}, inNetwork);
      const elsewhere = sleeper("elsewhere", { name: "elsewhere" });
      node.writeManifest("web.yaml", list(server("a"), server("b"), service("web", web), client, elsewhere));
      const kubelet = await node.start([`--service-cluster-ip-range=${ranges},${range}::/112`]);
      const [{ status }] = (await node.readyPods(4)) as [PodItem];
      const { clusterIP, clusterIPs } = (await shown(node, "web")).spec;
      expect(clusterIPs).toEqual([expect.stringContaining(`${range}::`), expect.stringContaining("10.122.")]);
      const { Id } = await node.runningContainer("client");
      const ask = async (address: string, from = Id) => {
        const url = `http://${address}/cgi-bin/who`;
        return await node.exec(from, "sh", "-c", `for i in $(seq 30); do wget -q -O - ${url} 2>&1; done; true`);
      };
      const namesOf = (text: string) => [...new Set(text.match(/^[ab]-/gm))].sort();
      for (const address of [`[${clusterIP}]`, clusterIPs[1]!, "web", `[${lan}::1]:${node.kubeletPort}`]) {
        expect([address, namesOf(await ask(address))]).toEqual([address, ["a-", "b-"]]);
      }
      expect(await ask(`[${clusterIP}]`)).toContain(`[${lan}::`);
      // Docker lets nothing pass from one of its networks to another, but what it publishes.
      const other = await node.runningContainer("elsewhere");
      expect(namesOf(await ask(`${status.hostIP}:${node.kubeletPort}`, other.Id))).toEqual(["a-", "b-"]);
      const own = await fetch(`http://[${lan}::1]:${node.kubeletPort}/cgi-bin/who`, { keepalive: false });
      expect(namesOf(await own.text())).toHaveLength(1);
      const slices = (await node.run("get endpointslices")).stdout;
      expect([...slices.matchAll(/^web-\w{5}\s+(IPv\d)/gm)].map(([, family]) => family).sort()).toEqual([
        "IPv4",
        "IPv6",
      ]);
      await program("ip6tables", "-t", "nat", "-D", "PREROUTING", "-j", `${prefixOf(node)}-SERVICES`);
      await node.until("the rules of IPv6", async () => namesOf(await ask(`[${clusterIP}]`)).length === 2);
      await kubelet.stop();
      await node.start([`--service-cluster-ip-range=${ranges}`]);
      await node.until("an answer", async () => namesOf(await ask(clusterIPs[1]!)).length === 2);
      expect(await rulesOf(node, "ip6tables-save")).toEqual([]);
      const told = (await shown(node, "web")).status.conditions?.map(({ message }) => message);
      expect(told?.join()).toContain("not configured");
    } finally {
      await node.cleanUp();
      await node.docker.removeNetwork(node.name);
    }
  });
});
