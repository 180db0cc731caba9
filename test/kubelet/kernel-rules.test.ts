import { describe, expect, test } from "bun:test";
import type { UdpFlow } from "../../src/base/host/netfilter.ts";
import { type IpFamily, rangeOfAddress } from "../../src/base/text/ip-range.ts";
import { DualStackRules, Host, KernelRules } from "../../src/kubelet/kernel-rules.ts";
import type { RuledService } from "../../src/plan/service-rules.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { RecordingLogger } from "../support/recording-logger.ts";

/** A kernel with two tables, and the programs that change them. */
class FakeIptables {
  readonly tables = new Map<string, Map<string, string[]>>();
  /** Texts that were written. */
  readonly writes: string[] = [];
  failure: string | undefined;
  isMissing = false;
  saves = 0;
  /** Changes to the rules, as the kernel counts them. */
  generation = 0;
  version = "iptables-restore v1.8.9 (nf_tables)\n";
  onSave = async () => {};
  onFailure = async () => {};

  constructor() {
    this.tables.set("nat", new Map(["PREROUTING", "OUTPUT", "POSTROUTING"].map((chain) => [chain, []])));
    const filter = new Map<string, string[]>(["INPUT", "FORWARD", "OUTPUT"].map((chain) => [chain, []]));
    filter.get("FORWARD")!.push("-j DOCKER-USER");
    this.tables.set("filter", filter);
  }

  readonly run = async (argv: readonly string[], { input = "" }: { input?: string | undefined }) => {
    const done = (exitCode: number, stdout = "", stderr = "") => ({ exitCode, stdout, stderr });
    if (this.isMissing) throw Object.assign(new Error("no such program"), { code: "ENOENT" });
    if (this.failure !== undefined) await this.onFailure();
    if (this.failure !== undefined) return done(4, "", `${argv[0]}: v1.8.9 (nf_tables):\n${this.failure}\n`);
    if (argv[0]!.endsWith("tables-save")) {
      this.saves++;
      await this.onSave();
      return done(0, this.#save(argv[2]!));
    }
    if (argv[1] === "--version") return done(0, this.version);
    this.writes.push(input);
    this.generation += input.split("COMMIT").length - 1;
    const wrong = this.#restore(input);
    return wrong === undefined ? done(0) : done(1, "", `iptables-restore: line failed: ${wrong}\n`);
  };

  #save(table: string): string {
    const chains = [...this.tables.get(table)!];
    const heads = chains.map(([chain]) => `:${chain} - [0:0]`);
    const rules = chains.flatMap(([chain, rules]) => rules.map((rule) => `-A ${chain} ${rule}`));
    return [`*${table}`, ...heads, ...rules, "COMMIT\n"].join("\n");
  }

  /** @returns the line that failed; the table is then as before */
  #restore(text: string): string | undefined {
    let name = "";
    let next = new Map<string, string[]>();
    for (const line of text.split("\n")) {
      const [verb = "", chain = "", ...rest] = line.split(" ");
      const rule = rest.join(" ");
      const rules = next.get(chain);
      if (line.startsWith("*")) {
        name = line.slice(1);
        next = new Map([...this.tables.get(name)!].map(([key, old]) => [key, [...old]]));
      } else if (line === "COMMIT") this.tables.set(name, next);
      else if (line.startsWith(":")) next.set(verb.slice(1), []);
      else if (verb === "-A") rules?.push(rule);
      else if (verb === "-I") rules?.unshift(rule.replace(/^1 /, ""));
      else if (verb === "-X") next.delete(chain);
      else if (verb === "-D") {
        if (!rules?.includes(rule)) return line;
        rules.splice(rules.indexOf(rule), 1);
      }
    }
    return undefined;
  }

  text(): string {
    return ["nat", "filter"].map((table) => this.#save(table)).join("");
  }
}

class FakeHost extends Host {
  readonly reflected: number[] = [];
  readonly loopback = new Map([["docker0", false]]);
  isFiltered = false;

  constructor(
    private readonly iptables: FakeIptables,
    private readonly family: IpFamily,
  ) {
    super();
  }

  override readonly run: Host["run"] = (argv, options) => {
    expect(argv[0]).toStartWith(this.family === "IPv4" ? "iptables-" : "ip6tables-");
    return this.iptables.run(argv, options) as ReturnType<Host["run"]>;
  };

  override readonly ruleGeneration = async () => this.iptables.generation;

  readonly gone = new Set<string>();

  override readonly exists = (path: string) => !this.gone.has(path);

  override networks() {
    return [rangeOfAddress("172.17.0.1/16")!];
  }

  override bridges() {
    return [{ name: "docker0", range: rangeOfAddress("172.17.0.1/16")!, isFiltered: this.isFiltered }];
  }

  override routesLoopback(device: string) {
    return this.loopback.get(device) ?? false;
  }

  override setLoopbackRouting(device: string, isOn: boolean) {
    this.loopback.set(device, isOn);
  }

  readonly flows: UdpFlow[] = [];
  readonly reads: string[] = [];
  flowsFailure: string | undefined;

  override addresses() {
    return ["127.0.0.1", "10.0.0.5"];
  }

  override readonly removeUdpFlows: Host["removeUdpFlows"] = async (_, isStale) => {
    this.reads.push("read");
    if (this.flowsFailure !== undefined) throw new Error(this.flowsFailure);
    this.flows.splice(0, Infinity, ...this.flows.filter((flow) => !isStale(flow)));
  };

  override reflect(pid: number) {
    this.reflected.push(pid);
  }
}

function aKernel(iptables = new FakeIptables(), prefix = "KTS-1a2b3c", family: IpFamily = "IPv4") {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  const host = new FakeHost(iptables, family);
  const sandboxes = [2, 3].map((number) => ({
    id: `s${number}`,
    pid: number * 100,
    ips: [`172.17.0.${number}`],
    hostNetwork: false,
  }));
  const rules = new KernelRules({
    family,
    clock,
    logger,
    prefix,
    rootDir: `/var/lib/${prefix}`,
    nodePortAddresses: [],
    sandboxes: () => sandboxes as never,
    host,
  });
  const apply = async (...services: RuledService[]) => {
    rules.apply(services, "10.96.0.0/16");
    await rules.settled();
  };
  return { clock, logger, host, iptables, rules, apply, sandboxes };
}

const web = (endpoints = ["172.17.0.2"], published: number[] = []): RuledService => ({
  name: "default/web",
  clusterIp: "10.96.1.2",
  externalIps: [],
  ports: [
    {
      name: "",
      protocol: "TCP",
      port: 80,
      published: published.map((port) => ({ port, sources: undefined })),
      endpoints: endpoints.map((ip) => ({ ip, port: 8000 })),
    },
  ],
});

test("the rules of Services are written, and only what changes afterwards", async () => {
  const { iptables, apply } = aKernel();
  const before = iptables.text();
  await apply(web());
  expect(iptables.text()).toContain("-j DNAT --to-destination 172.17.0.2:8000");
  expect(iptables.tables.get("nat")!.get("PREROUTING")).toEqual(["-j KTS-1a2b3c-SERVICES"]);
  expect(iptables.tables.get("filter")!.get("FORWARD")).toEqual([
    "-m conntrack --ctstate NEW,DNAT -j KTS-1a2b3c-FORWARD",
    "-j DOCKER-USER",
  ]);
  await apply(web());
  expect(iptables.writes).toHaveLength(1);
  await apply(web(["172.17.0.2", "172.17.0.3"]));
  expect(iptables.writes[1]!.split("\n").length).toBeLessThan(10);
  await apply();
  expect(iptables.text()).toBe(before);
});

test("each family has its addresses in rules of its own, and one that takes none is told", async () => {
  const [four, six] = [aKernel(), aKernel(undefined, undefined, "IPv6")];
  const rules = new DualStackRules([four.rules, six.rules]);
  const inSix = { ...web(["fd00::2"], [80]), clusterIp: "fd00:96::2" };
  const apply = async (...services: RuledService[]) => {
    rules.apply(services, "fd00:96::/112,10.96.0.0/16");
    await Promise.all([four.rules.settled(), six.rules.settled()]);
  };
  await apply(web(["172.17.0.2"], [80]), inSix);
  expect(four.iptables.text()).toContain("-d 10.96.0.0/16 -j KTS-1a2b3c-ADDRESSES");
  expect(four.iptables.text()).not.toContain("fd00");
  expect(six.iptables.text()).toContain("-d fd00:96::/112 -j KTS-1a2b3c-ADDRESSES");
  expect(six.iptables.text()).toContain("--to-destination [fd00::2]:8000");
  expect(six.iptables.text()).not.toContain("127.0.0.0/8");
  expect([six.host.loopback.get("docker0"), rules.problem]).toEqual([false, undefined]);
  six.iptables.failure = "can't initialize ip6tables table `nat'";
  await apply(web(), inSix, { ...inSix, name: "default/new", clusterIp: "fd00:96::3" });
  expect(rules.problem).toContain("can't initialize ip6tables");
});

test("a new process takes over what an earlier one left, also of Services that have gone", async () => {
  const iptables = new FakeIptables();
  await aKernel(iptables).apply(web(), { ...web(), name: "default/old", clusterIp: "10.96.1.9" });
  const { rules, apply } = aKernel(iptables);
  await rules.prepare();
  expect([rules.problem, rules.hasRules]).toEqual([undefined, true]);
  await apply(web());
  expect(iptables.text()).not.toContain("10.96.1.9");
  expect(iptables.tables.get("nat")!.get("PREROUTING")).toEqual(["-j KTS-1a2b3c-SERVICES"]);
  const fresh = new FakeIptables();
  await aKernel(fresh).apply(web());
  expect(iptables.text()).toBe(fresh.text());
});

test("rules that another program removed are back within five seconds; otherwise nothing is written", async () => {
  const { iptables, apply, clock, logger } = aKernel();
  await apply(web());
  const whole = iptables.text();
  await clock.advance(60_000);
  expect(iptables.writes).toHaveLength(1);
  iptables.tables.set("nat", new Map(["PREROUTING", "OUTPUT", "POSTROUTING"].map((chain) => [chain, []])));
  await clock.advance(5_000);
  expect(iptables.text()).toBe(whole);
  const told = "info Rules of Services were removed or put behind others: they are written again";
  expect(logger.lines).toEqual([told]);
  const nat = iptables.tables.get("nat")!;
  nat.set([...nat.keys()].find((chain) => chain.includes("-SEP-"))!, []);
  await clock.advance(5_000);
  expect(iptables.text()).toBe(whole);
  iptables.tables.get("filter")!.get("FORWARD")!.unshift("-i br-1 ! -o br-1 -j ACCEPT");
  await clock.advance(5_000);
  expect(iptables.tables.get("filter")!.get("FORWARD")).toEqual([
    "-m conntrack --ctstate NEW,DNAT -j KTS-1a2b3c-FORWARD",
    "-i br-1 ! -o br-1 -j ACCEPT",
    "-j DOCKER-USER",
  ]);
});

test("a read that takes long is made less often", async () => {
  const { iptables, apply, clock } = aKernel();
  iptables.onSave = () => clock.sleep(60);
  const applied = apply(web());
  await clock.advance(200);
  await applied;
  const reads = iptables.saves;
  await clock.advance(11_000);
  expect(iptables.saves).toBe(reads);
  await clock.advance(5_000);
  expect(iptables.saves).toBe(reads + 2);
});

describe("where the kernel counts the changes to its rules", () => {
  test("they are read after a change alone", async () => {
    const { iptables, apply, clock, rules } = aKernel();
    await rules.prepare();
    await apply(web());
    await clock.advance(5_000);
    const reads = iptables.saves;
    await clock.advance(60_000);
    expect(iptables.saves).toBe(reads);
    // Our own change is no reason.
    await apply(web(["172.17.0.3"]));
    await clock.advance(60_000);
    expect(iptables.saves).toBe(reads);
    const whole = iptables.text();
    iptables.tables.get("nat")!.set("PREROUTING", []);
    iptables.generation++;
    await clock.advance(5_000);
    expect(iptables.text()).toBe(whole);
    // Another program's rule.
    await clock.advance(5_000);
    iptables.generation++;
    const before = iptables.saves;
    await clock.advance(60_000);
    expect(iptables.saves).toBe(before + 2);
    // One that comes together with ours.
    iptables.generation++;
    await apply(web());
    await clock.advance(60_000);
    expect(iptables.saves).toBe(before + 4);
  });

  test("the older iptables, whose rules are not among those, are read each time", async () => {
    const { iptables, apply, clock, rules } = aKernel();
    iptables.version = "iptables-restore v1.8.9 (legacy)\n";
    await rules.prepare();
    await apply(web());
    const reads = iptables.saves;
    await clock.advance(10_000);
    expect(iptables.saves).toBe(reads + 4);
  });
});

test("a port that another kubelet-ts has is not published, until that one gives it up", async () => {
  const iptables = new FakeIptables();
  // Its name is the later one, but it was first.
  const [one, two] = [aKernel(iptables, "KTS-ffffff"), aKernel(iptables)];
  await two.rules.prepare();
  await one.apply(web(undefined, [30080]));
  await two.apply(web(undefined, [30080]));
  expect(two.rules.holderOf("TCP", 30080)).toBe("a Service of another kubelet-ts on this machine (rules KTS-ffffff)");
  expect([one.rules.holderOf("TCP", 30080), two.rules.holderOf("UDP", 30080)]).toEqual([undefined, undefined]);
  expect(iptables.tables.get("nat")!.get("KTS-1a2b3c-PUBLISHED")).toEqual([]);
  await one.apply(web());
  await two.clock.advance(5_000);
  expect(two.rules.holderOf("TCP", 30080)).toBeUndefined();
  expect(iptables.tables.get("nat")!.get("KTS-1a2b3c-PUBLISHED")).toHaveLength(2);
});

test("the range of a kubelet-ts whose root directory is gone is free", async () => {
  const iptables = new FakeIptables();
  const [one, two] = [aKernel(iptables, "KTS-ffffff"), aKernel(iptables)];
  await one.apply(web());
  await two.rules.prepare();
  const rangesOf = (andRanges = true) => two.rules.networks(andRanges).map(({ text }) => text);
  expect(rangesOf()).toContain("10.96.0.0/16");
  expect(rangesOf(false)).toEqual(["172.17.0.0/16"]);
  two.host.gone.add("/var/lib/KTS-ffffff");
  expect(rangesOf()).toEqual(["172.17.0.0/16"]);
});

test("a kernel that refuses for a moment at the start takes rules", async () => {
  const { iptables, clock, rules } = aKernel();
  iptables.failure = "Resource temporarily unavailable";
  const ready = rules.prepare();
  await clock.advance(100);
  iptables.failure = undefined;
  await clock.advance(400);
  await ready;
  expect(rules.problem).toBeUndefined();
});

test.each([
  { when: "iptables fails, and there were rules", hadRules: true, hasAddresses: true },
  { when: "iptables fails, and there were none", hadRules: false, hasAddresses: false },
  { when: "iptables is not installed any more", isMissing: true, hadRules: true, hasAddresses: false },
])("Services have addresses after a start: $when: $hasAddresses", async ({ isMissing, hadRules, hasAddresses }) => {
  const { iptables, clock, rules, apply } = aKernel();
  iptables.failure = "Another app is currently holding the xtables lock.";
  iptables.isMissing = isMissing === true;
  const ready = new DualStackRules([rules]).prepare(hadRules);
  await clock.advance(1_000);
  expect(await ready).toBe(hasAddresses);
  if (!hasAddresses) return;
  await apply(web());
  iptables.failure = undefined;
  await clock.advance(5_000);
  expect(iptables.text()).toContain("172.17.0.2:8000");
});

test("the lock of iptables, held for the whole start, is waited for, and told once", async () => {
  const { iptables, clock, rules, apply, logger } = aKernel();
  iptables.failure = "Another app is currently holding the xtables lock.";
  iptables.onFailure = () => clock.sleep(5_000);
  const ready = new DualStackRules([rules]).prepare(false);
  await clock.advance(20_000);
  expect(await ready).toBe(true);
  await clock.advance(30_000);
  expect(logger.lines).toEqual([expect.stringContaining("warn Services have no addresses")]);
  iptables.failure = undefined;
  await clock.advance(20_000);
  expect(rules.problem).toBeUndefined();
  expect(logger.lines).toHaveLength(2);
  await apply(web());
  expect(iptables.text()).toContain("172.17.0.2:8000");
});

test("a kernel that refuses is reported once, and tried again", async () => {
  const { iptables, apply, clock, logger, rules } = aKernel();
  let changes = 0;
  iptables.failure = "Permission denied (you must be root)";
  rules.onChange(() => changes++);
  await apply(web());
  expect(rules.problem).toBe("iptables-restore: Permission denied (you must be root)".replace("restore", "save"));
  expect(changes).toBe(1);
  await clock.advance(20_000);
  expect(logger.lines).toEqual([
    "warn Services have no addresses, their names lead to pods: iptables-save: Permission denied (you must be root)",
  ]);
  iptables.failure = undefined;
  await clock.advance(5_000);
  expect(rules.problem).toBeUndefined();
  expect(iptables.text()).toContain("172.17.0.2:8000");
});

test("two kubelet-ts share a machine, and each removes only its own rules", async () => {
  const iptables = new FakeIptables();
  const one = aKernel(iptables);
  await one.apply(web());
  const alone = iptables.text();
  const two = aKernel(iptables, "KTS-ffffff");
  await two.rules.prepare();
  expect(two.rules.networks(true).map(({ text }) => text)).toContain("10.96.0.0/16");
  await two.apply(web(["172.17.0.3"]));
  expect(iptables.tables.get("nat")!.get("OUTPUT")).toHaveLength(2);
  await two.rules.remove();
  expect(iptables.text()).toBe(alone);
});

test("a published port is reached through the loopback's addresses while there is one", async () => {
  const { apply, host, iptables } = aKernel();
  await apply(web(undefined, [30080]));
  expect(host.loopback.get("docker0")).toBe(true);
  expect(iptables.text()).toContain("-d 127.0.0.0/8 -i docker0");
  await apply(web());
  expect(host.loopback.get("docker0")).toBe(false);
  expect(iptables.text()).not.toContain("-i docker0");
});

test("a setting of the loopback that another program made stays", async () => {
  const { apply, host } = aKernel();
  host.loopback.set("docker0", true);
  await apply(web(undefined, [30080]));
  await apply();
  expect(host.loopback.get("docker0")).toBe(true);
});

test("where bridged packets pass the rules, the ports of endpoints reflect them, each set once", async () => {
  const { apply, host, sandboxes, clock } = aKernel();
  await apply(web());
  expect(host.reflected).toEqual([]);
  host.isFiltered = true;
  await apply(web(["172.17.0.2"], [30080]));
  await apply(web(["172.17.0.2", "172.17.0.3"]));
  expect(host.reflected).toEqual([200, 300]);
  sandboxes[1] = { ...sandboxes[1]!, id: "again", pid: 400 };
  await clock.advance(5_000);
  expect(host.reflected).toEqual([200, 300, 400]);
});

describe("clients of UDP that keep their port", () => {
  const dns = (ips: string[], published: number[] = []): RuledService => {
    const [port] = web(ips, published).ports;
    return { ...web(), ports: [{ ...port!, protocol: "UDP", port: 53 }] };
  };
  const flow = (to: string, server: string): UdpFlow => ({ to, server });
  const [toFirst, toSecond] = [flow("10.96.1.2:53", "172.17.0.2:8000"), flow("10.96.1.2:53", "172.17.0.3:8000")];
  const foreign = [flow("8.8.8.8:53", "8.8.8.8:53"), flow("10.0.0.5:5353", "172.17.0.9:5353")];

  test("lose the entry that leads to an endpoint that has gone, and no other", async () => {
    const { host, apply } = aKernel();
    const unpublished = flow("10.0.0.5:53", "10.0.0.5:53");
    host.flows.push(toFirst, toSecond, unpublished, ...foreign);
    await apply(dns(["172.17.0.2", "172.17.0.3"]));
    expect(host.flows).toEqual([toFirst, toSecond, unpublished, ...foreign]);
    await apply(dns(["172.17.0.3"]));
    expect(host.flows).toEqual([toSecond, unpublished, ...foreign]);
    await apply(dns(["172.17.0.3"], [53]));
    expect(host.flows).toEqual([toSecond, ...foreign]);
    await apply();
    expect(host.flows).toEqual(foreign);
  });

  test("cost a look at the table only where targets of UDP have changed", async () => {
    const { host, clock, apply } = aKernel();
    await apply(web());
    await apply(web(["172.17.0.3"]));
    expect(host.reads).toEqual([]);
    await apply(dns(["172.17.0.2"]));
    await apply(dns(["172.17.0.2"]), web());
    await clock.advance(60_000);
    expect(host.reads).toHaveLength(1);
  });

  test("a table that cannot be read is reported once, and tried again", async () => {
    const { host, clock, logger, apply } = aKernel();
    host.flowsFailure = "no bun:ffi";
    host.flows.push(flow("10.96.1.2:53", "172.17.0.7:8000"));
    await apply(dns(["172.17.0.2"]));
    await clock.advance(30_000);
    expect(logger.lines).toEqual([
      "warn Clients of UDP Services that keep their port may stay with a pod that has gone: no bun:ffi",
    ]);
    host.flowsFailure = undefined;
    await clock.advance(5_000);
    expect(host.flows).toEqual([]);
  });
});

test("after the end of the process nothing is written", async () => {
  const { apply, iptables, rules, clock } = aKernel();
  await apply(web());
  rules.stop();
  await apply();
  await clock.advance(60_000);
  expect(iptables.writes).toHaveLength(1);
});
