import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { readTextIfReadable, SYSTEM_FILE_BYTES } from "../base/files/whole-file.ts";
import { LOCK_WAIT_SECONDS, probeRules, restoreRules, runIptables } from "../base/host/iptables.ts";
import { removeUdpFlows, type UdpFlow } from "../base/host/netfilter.ts";
import { parseIpv6Routes, parseRoutes, type Route } from "../base/host/proc.ts";
import { readRuleGeneration } from "../base/host/rule-generation.ts";
import { runProgram } from "../base/host/run-program.ts";
import { ChangeLogger } from "../base/logging/change-logger.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { isSameList } from "../base/model/memoized.ts";
import type { SandboxSnapshot } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import { familyOf, type IpFamily, type IpRange, isInRange, rangeOfAddress } from "../base/text/ip-range.ts";
import { parseRanges } from "../plan/service-addresses.ts";
import {
  computeServiceRules,
  findPublisher,
  isInKernel,
  missingJumps,
  parseSavedRules,
  type RuledPort,
  type RuledService,
  type RuleFacts,
  type RuleTables,
  type SavedRules,
  TABLES,
  toRemovalText,
  toRestoreText,
  udpTargets,
} from "../plan/service-rules.ts";

interface KernelRulesDeps extends Pick<RuleFacts, "prefix" | "rootDir" | "nodePortAddresses"> {
  family: IpFamily;
  clock: Clock;
  logger: Logger;
  /** The sandboxes of all pods. */
  sandboxes: () => Iterable<SandboxSnapshot>;
  host?: Host;
}

/** Time between two checks that the rules are still there. */
const CHECK_MS = 5_000;
/** Reading all rules takes at most this part of the time, but is not put off for longer than this. */
const READ_SHARE = 1 / 100;
const LONGEST_PAUSE_MS = 20_000;
/** Pauses between attempts to find out whether the kernel takes rules. */
const PREPARE_PAUSES_MS = [100, 400];

/** The setting by which traffic within a bridge passes the rules of iptables. */
const BRIDGED = { IPv4: "nf_call_iptables", IPv6: "nf_call_ip6tables" } as const;

/** Names of chains begin like this: two kubelet-ts on one machine have different ones. @param rootHash of the root directory */
export const chainPrefix = (rootHash: string): string => `KTS-${rootHash.slice(0, 6)}`;

/** The rules of Services in the kernel, those of one family, by iptables. They stay when this process ends. */
export class KernelRules {
  readonly #deps: Required<KernelRulesDeps>;
  readonly #log: ChangeLogger;
  #wanted: { services: readonly RuledService[]; range: string } = { services: [], range: "" };
  /** Content of the kernel, as far as known, and what it was computed from; undefined: it must be read. */
  #kernel:
    | { saved: SavedRules; tables?: RuleTables | undefined; services?: readonly RuledService[]; facts?: RuleFacts }
    | undefined;
  /** Whether the kernel counts the changes to its rules: iptables stands on nftables. */
  #hasGenerations = false;
  /** The kernel's count of changes while {@link #kernel} is true, our own writes included; undefined: it must be read. */
  #generation: number | undefined;
  /** The rules that were read last, and the hash of their text: of most texts nothing has changed. */
  #parsed: { hash: number | bigint; saved: SavedRules } | undefined;
  /** Time of the monotonic clock before which a check does not read the rules. */
  #nextReadMs = 0;
  #writing: Promise<void> | undefined;
  #isChanged = false;
  #cancelCheck: (() => void) | undefined;
  /** Why there are no rules; undefined while they are as wanted. */
  problem: string | undefined;
  #isStopped = false;
  #onChange = () => {};
  /** Ports of the machine that Services had at the last write: `TCP/80`. */
  #published: ReadonlySet<string> = new Set();
  /** As the kernel's table of connections is known to follow them. */
  #udpTargets: ReadonlyMap<string, readonly string[]> = new Map();
  /** Sandboxes that reach themselves through their bridge. */
  readonly #reflected = new Set<string>();
  readonly #loopbackBridges = new Set<string>();

  constructor(deps: KernelRulesDeps) {
    this.#deps = { host: new Host(), ...deps };
    this.#log = new ChangeLogger(deps.logger);
  }

  get family(): IpFamily {
    return this.#deps.family;
  }

  /** Rules of an earlier process are there. */
  get hasRules(): boolean {
    return (this.#kernel?.saved.jumps.length ?? 0) > 0;
  }

  /** Calls back when {@link problem} has changed, and after each check. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /**
   * Tries whether the kernel takes rules, and reads what is there. A firewall that starts as well may be in the way.
   * @returns "locked": another program has the lock of iptables; it is tried again until that is free
   */
  async prepare(): Promise<"ready" | "refused" | "locked" | "missing"> {
    const { clock, family, host, prefix } = this.#deps;
    let isLocked = false;
    for (const pauseMs of [...PREPARE_PAUSES_MS, undefined]) {
      const startMs = clock.monotonicMs();
      try {
        const version = await runIptables(family, "restore", ["--version"], host);
        this.#hasGenerations = version.includes("nf_tables");
        await probeRules(family, `${prefix}-PROBE`, host.run);
        await this.#read();
        this.problem = undefined;
        return "ready";
      } catch (error) {
        this.problem = messageOf(error);
        // The program is not installed.
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return "missing";
        // A refusal comes at once.
        isLocked = clock.monotonicMs() - startMs >= LOCK_WAIT_SECONDS * 1_000;
        if (pauseMs !== undefined) await clock.sleep(pauseMs);
      }
    }
    if (!isLocked) return "refused";
    this.#reportProblem();
    this.#planCheck();
    return "locked";
  }

  #reportProblem(): void {
    this.#log.log("rules", "warn", `Services have no addresses, their names lead to pods: ${this.problem}`);
  }

  /** Networks that the machine has an address in or a route to. @param andRanges also those of others that still are there */
  networks(andRanges: boolean): IpRange[] {
    const { host, family } = this.#deps;
    const { otherRanges = new Map<string, string>(), rootDirs } = (andRanges && this.#kernel?.saved) || {};
    const others = [...otherRanges].flatMap(([prefix, text]) => {
      const rootDir = rootDirs?.get(prefix);
      return rootDir === undefined || host.exists(rootDir) ? (rangeOfAddress(text) ?? []) : [];
    });
    return [...host.networks(family), ...others];
  }

  /** The other kubelet-ts that has a port of the machine, also one that this node has. */
  holderOf(protocol: string, port: number): string | undefined {
    const saved = this.#kernel?.saved;
    const holder = saved && findPublisher(this.#deps.prefix, saved, protocol, port);
    return holder && `a Service of another kubelet-ts on this machine (rules ${holder})`;
  }

  /** Brings the kernel in line with these Services; those before them are forgotten. */
  apply(services: readonly RuledService[], range: string): void {
    this.#wanted = { services, range };
    this.#isChanged = true;
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  /** Resolves when everything that was applied is in the kernel, or could not be written. */
  async settled(): Promise<void> {
    await this.#writing;
  }

  /** The rules stay. */
  stop(): void {
    this.#isStopped = true;
    this.#cancelCheck?.();
  }

  /** Removes all our rules, and nothing else. @throws Error */
  async remove(): Promise<void> {
    const saved = await this.#read();
    const text = toRemovalText(saved);
    if (text !== "") await restoreRules(this.#deps.family, text, this.#deps.host.run);
    for (const bridge of saved.loopbackBridges) this.#deps.host.setLoopbackRouting(bridge, false);
    this.#kernel = undefined;
  }

  async #writeAll(): Promise<void> {
    while (this.#isChanged && !this.#isStopped) {
      this.#isChanged = false;
      const before = this.problem;
      try {
        // The rules we know of may be gone: the second attempt reads them.
        await this.#write().catch(async () => {
          this.#kernel = undefined;
          await this.#write();
        });
        this.problem = undefined;
        this.#log.resolve("rules", "The kernel has the rules of Services again");
        await this.#endUdpFlows();
      } catch (error) {
        this.#kernel = undefined;
        this.problem = messageOf(error);
        this.#reportProblem();
      }
      this.#planCheck();
      if (this.problem !== before) this.#onChange();
    }
  }

  async #write(): Promise<void> {
    const { prefix, rootDir, nodePortAddresses, host, family } = this.#deps;
    const { range } = this.#wanted;
    if (this.#wanted.services.length === 0) {
      if (this.problem !== undefined) await probeRules(family, `${prefix}-PROBE`, host.run);
      const { jumps } = this.#kernel?.saved ?? (await this.#read());
      if (jumps.length > 0 || this.#kernel?.tables) await this.remove();
      this.#loopbackBridges.clear();
      return;
    }
    const before = this.#kernel;
    const known = before?.tables;
    const ports = publishedPorts(this.#wanted.services);
    // Another kubelet-ts may have taken a port since the kernel was read.
    const isOpening = [...ports].some((port) => !this.#published.has(port));
    const saved = (known && !isOpening && before?.saved) || (await this.#read());
    this.#published = ports;
    const isHeld = (protocol: string, port: number) => this.holderOf(protocol, port) !== undefined;
    const services = ports.size === 0 ? this.#wanted.services : withoutPorts(this.#wanted.services, isHeld);
    const bridges = host.bridges(family);
    const isPublished = publishedPorts(services).size > 0;
    const closed = isPublished && family === "IPv4" ? bridges.filter(({ name }) => !host.routesLoopback(name)) : [];
    const opened = closed.filter(({ range }) => [...endpointIps(services)].some((ip) => isInRange(ip, range)));
    for (const { name } of opened) this.#loopbackBridges.add(name);
    const facts = {
      prefix,
      rootDir,
      range,
      nodePortAddresses,
      hasDockerUser: saved.hasDockerUser,
      loopbackBridges: isPublished ? [...this.#loopbackBridges] : [],
      unfilteredBridges: bridges.filter(({ isFiltered }) => !isFiltered).map((bridge) => bridge.range),
    };
    const hasSameFacts = Bun.deepEquals(facts, before?.facts);
    const isSame = known !== undefined && hasSameFacts && isSameList(services, before?.services ?? []);
    const tables = isSame ? known : computeServiceRules(services, facts);
    const chainsIn = (table: (typeof TABLES)[number]) =>
      known?.[table] ?? [new Map([...saved.own[table].keys()].map((chain) => [chain, undefined]))];
    const kernel = {
      chains: { nat: chainsIn("nat"), filter: chainsIn("filter") },
      missingJumps: known ? [] : missingJumps(prefix, saved),
      jumps: saved.jumps,
    };
    const text = isSame ? "" : toRestoreText(tables, kernel);
    const generation = this.#generation;
    this.#generation = undefined;
    if (text !== "") await restoreRules(family, text, host.run);
    // Each table is one change. With those of another program there are more, which the next check sees.
    if (generation !== undefined) this.#generation = generation + text.split("\nCOMMIT\n").length - 1;
    this.#kernel = { saved, tables, services, facts };
    for (const { name } of opened) host.setLoopbackRouting(name, true);
    if (!isPublished) {
      for (const name of this.#loopbackBridges) host.setLoopbackRouting(name, false);
      this.#loopbackBridges.clear();
    }
    // Sandboxes behind a Service that is the same object were looked at before.
    const reached = new Set(hasSameFacts && !isSame ? before?.services : []);
    if (bridges.some((bridge) => bridge.isFiltered)) this.#reflect(services.filter((service) => !reached.has(service)));
  }

  /** A client of UDP that keeps its port would stay with the endpoint that it had, or with none. */
  async #endUdpFlows(): Promise<void> {
    const { host, nodePortAddresses, family } = this.#deps;
    const before = this.#udpTargets;
    const services = this.#wanted.services.filter(({ ports }) => ports.some(({ protocol }) => protocol === "UDP"));
    if (services.length + before.size === 0) return;
    const next = udpTargets(services, () => host.addresses(family, nodePortAddresses));
    if (Bun.deepEquals(before, next)) return;
    try {
      await host.removeUdpFlows(family, ({ to, server }) => {
        const servers = next.get(to);
        return servers === undefined ? before.has(to) && server !== to : !servers.includes(server);
      });
      this.#udpTargets = next;
      this.#log.resolve("flows", "Clients of UDP Services get another pod again when theirs has gone");
    } catch (error) {
      const text = `Clients of UDP Services that keep their port may stay with a pod that has gone: ${messageOf(error)}`;
      this.#log.log("flows", "warn", text);
    }
  }

  /**
   * Where bridged packets pass the rules, one that is sent back to its pod does not leave the bridge, whose port must let it
   * out again. Source: the kubelet's `hairpin-veth`.
   */
  #reflect(services: readonly RuledService[]): void {
    const all = [...this.#deps.sandboxes()];
    const others = all.filter(({ id, pid, hostNetwork }) => !hostNetwork && pid !== 0 && !this.#reflected.has(id));
    const ips = endpointIps(others.length === 0 ? [] : services);
    for (const { id, pid, ips: own } of others) {
      if (!own.some((ip) => ips.has(ip))) continue;
      this.#deps.host.reflect(pid);
      this.#reflected.add(id);
    }
  }

  async #read(): Promise<SavedRules> {
    this.#generation = undefined;
    const saved = await this.#save();
    for (const bridge of saved.loopbackBridges) this.#loopbackBridges.add(bridge);
    this.#kernel = { saved };
    return saved;
  }

  #planCheck(): void {
    this.#cancelCheck?.();
    this.#cancelCheck = undefined;
    if (this.#isStopped || (this.#wanted.services.length === 0 && this.problem === undefined)) return;
    this.#cancelCheck = this.#deps.clock.schedule(CHECK_MS, () => void this.#check());
  }

  /** Writes again what another program has removed, as a firewall that is reloaded does. */
  async #check(): Promise<void> {
    const { clock, prefix, logger, host } = this.#deps;
    const tables = this.#kernel?.tables;
    const generation = this.#hasGenerations ? await host.ruleGeneration() : undefined;
    const isUntouched = generation !== undefined && generation === this.#generation;
    const isDue = !isUntouched && clock.monotonicMs() >= this.#nextReadMs;
    const saved = tables && isDue && (await this.#save().catch(() => undefined));
    if (this.#isStopped) return;
    if (saved && this.#kernel?.tables === tables) {
      const isThere = isInKernel(prefix, tables, saved);
      if (!isThere) logger.info("Rules of Services were removed or put behind others: they are written again");
      this.#kernel = { ...this.#kernel, saved, tables: isThere ? tables : undefined };
      this.#generation = isThere ? generation : undefined;
    }
    // Facts of the machine may have changed, too.
    this.apply(this.#wanted.services, this.#wanted.range);
    this.#onChange();
  }

  async #save(): Promise<SavedRules> {
    const { clock, family, host } = this.#deps;
    const startMs = clock.monotonicMs();
    const texts = [];
    for (const table of TABLES) texts.push(await runIptables(family, "save", ["-t", table], host));
    const endMs = clock.monotonicMs();
    this.#nextReadMs = endMs + Math.min((endMs - startMs) / READ_SHARE, LONGEST_PAUSE_MS);
    const text = texts.join("");
    const hash = Bun.hash(text);
    if (this.#parsed?.hash !== hash) this.#parsed = { hash, saved: parseSavedRules(text, this.#deps.prefix) };
    return this.#parsed.saved;
  }
}

/** The rules of all families that Services have. Source: kube-proxy's `metaProxier`. */
export class DualStackRules {
  readonly #all: readonly KernelRules[];

  constructor(all: readonly KernelRules[]) {
    this.#all = all;
  }

  /** As {@link KernelRules.problem}, of the first family that has one. */
  get problem(): string | undefined {
    return this.#all.map(({ problem }) => problem).find((problem) => problem !== undefined);
  }

  get hasRules(): boolean {
    return this.#all.some(({ hasRules }) => hasRules);
  }

  /**
   * @param hadRules an earlier process left rules: a kernel that takes none now is asked again, as while a process runs
   * @returns whether Services have addresses
   */
  async prepare(hadRules: boolean): Promise<boolean> {
    const found = new Set<string>();
    for (const rules of this.#all) found.add(await rules.prepare());
    return !found.has("missing") && (hadRules || !found.has("refused"));
  }

  networks(andRanges: boolean): IpRange[] {
    return this.#all.flatMap((rules) => rules.networks(andRanges));
  }

  holderOf(protocol: string, port: number): string | undefined {
    return this.#all.map((rules) => rules.holderOf(protocol, port)).find((holder) => holder !== undefined);
  }

  /** @param range one, or one of each family */
  apply(services: readonly RuledService[], range: string): void {
    const ranges = parseRanges(range);
    for (const rules of this.#all) {
      const own = services.filter(({ clusterIp }) => familyOf(clusterIp) === rules.family);
      rules.apply(own, ranges.find(({ family }) => family === rules.family)?.text ?? "");
    }
  }

  async settled(): Promise<void> {
    await Promise.all(this.#all.map((rules) => rules.settled()));
  }

  onChange(listener: () => void): void {
    for (const rules of this.#all) rules.onChange(listener);
  }

  stop(): void {
    for (const rules of this.#all) rules.stop();
  }
}

const endpointIps = (services: readonly RuledService[]): ReadonlySet<string> => {
  const ips = new Set<string>();
  for (const { ports } of services) for (const { endpoints } of ports) for (const { ip } of endpoints) ips.add(ip);
  return ips;
};

function publishedPorts(services: readonly RuledService[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const { ports } of services)
    for (const { protocol, published } of ports) for (const { port } of published) found.add(`${protocol}/${port}`);
  return found;
}

/** Services without the ports of the machine that are held. */
const withoutPorts = (
  services: readonly RuledService[],
  isHeld: (protocol: string, port: number) => boolean,
): RuledService[] =>
  services.map((service) => {
    const { ports } = service;
    if (!ports.some(({ protocol, published }) => published.some(({ port }) => isHeld(protocol, port)))) return service;
    const open = (each: RuledPort) => each.published.filter(({ port }) => !isHeld(each.protocol, port));
    return { ...service, ports: ports.map((each) => ({ ...each, published: open(each) })) };
  });

interface Bridge {
  name: string;
  range: IpRange;
  /** Its own traffic passes the rules of iptables (br_netfilter). */
  isFiltered: boolean;
}

/** Networks, settings and programs of this machine. */
export class Host {
  readonly run = runProgram;
  readonly exists: (path: string) => boolean = existsSync;
  readonly ruleGeneration = readRuleGeneration;
  readonly removeUdpFlows: (family: IpFamily, isStale: (flow: UdpFlow) => boolean) => Promise<unknown> = removeUdpFlows;

  networks(family: IpFamily): IpRange[] {
    const own = addressesOf(family).flatMap(({ cidr }) => (cidr ? (rangeOfAddress(cidr) ?? []) : []));
    const routes = readRoutes(family).filter(({ subnet }) => !subnet.endsWith("/0"));
    return [...own, ...routes.flatMap(({ subnet }) => rangeOfAddress(subnet) ?? [])];
  }

  /** Addresses of the machine. @param ranges that they are in; none for all */
  addresses(family: IpFamily, ranges: readonly string[]): string[] {
    const wanted = ranges.flatMap((text) => rangeOfAddress(text) ?? []);
    return addressesOf(family).flatMap(({ address }) =>
      ranges.length === 0 || wanted.some((range) => isInRange(address, range)) ? [address] : [],
    );
  }

  /** Bridges are found by their routes: to list the devices of a machine with many pods takes milliseconds. */
  bridges(family: IpFamily): Bridge[] {
    const bridged = BRIDGED[family];
    const setting = `bridge-${bridged.replaceAll("_", "-")}`;
    const isFilteredHere = read(`/proc/sys/net/bridge/${setting}`).trim() === "1";
    const routes = readRoutes(family).filter(({ isDirect, subnet }) => isDirect && !subnet.startsWith("fe80:"));
    return routes.flatMap(({ device: name, subnet }) => {
      const own = read(`/sys/class/net/${name}/bridge/${bridged}`).trim();
      const range = rangeOfAddress(subnet);
      return own === "" || !range ? [] : [{ name, range, isFiltered: isFilteredHere || own === "1" }];
    });
  }

  routesLoopback(device: string): boolean {
    return read(`/proc/sys/net/ipv4/conf/${device}/route_localnet`).trim() === "1";
  }

  /** Whether packets with the loopback's addresses may pass a device. */
  setLoopbackRouting(device: string, isOn: boolean): void {
    write(`/proc/sys/net/ipv4/conf/${device}/route_localnet`, isOn ? "1" : "0");
  }

  /** Lets the port of a bridge send packets back to where they come from. @param pid of a process behind the port */
  reflect(pid: number): void {
    const peer = read(`/proc/${pid}/root/sys/class/net/eth0/iflink`).trim();
    if (!/^\d+$/.test(peer)) return;
    const name = readdirSync("/sys/class/net").find((it) => read(`/sys/class/net/${it}/ifindex`).trim() === peer);
    if (name !== undefined) write(`/sys/class/net/${name}/brport/hairpin_mode`, "1");
  }
}

const addressesOf = (family: IpFamily) =>
  Object.values(networkInterfaces()).flatMap((all = []) => all.filter((one) => one.family === family));

const readRoutes = (family: IpFamily): Route[] =>
  family === "IPv4" ? parseRoutes(read("/proc/net/route")) : parseIpv6Routes(read("/proc/net/ipv6_route"));

const read = (path: string): string => readTextIfReadable(path, SYSTEM_FILE_BYTES) ?? "";

function write(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch {
    // The device has gone, or the kernel does not let us: only what needs it does not work.
  }
}
