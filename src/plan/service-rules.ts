import { isSameList, memoized } from "../base/model/memoized.ts";
import { familyOf, type IpFamily, type IpRange, isInRange, parseIpRange } from "../base/text/ip-range.ts";
import { hex32 } from "../base/text/json.ts";
import type { ServiceEndpoint } from "./service-endpoints.ts";

/** A port of a Service, and where its connections go. */
export interface RuledPort {
  /** "" for the only one. */
  name: string;
  protocol: string;
  port: number;
  /** Ports of the machine's own addresses that lead to it. */
  published: readonly PublishedPort[];
  endpoints: readonly ServiceEndpoint[];
}

interface PublishedPort {
  port: number;
  /** Ranges of the clients that may use it, besides the machine itself; undefined: all. */
  sources: readonly string[] | undefined;
}

/** An address of a Service. One with addresses of both families is two of these, and each has endpoints of its own family. */
export interface RuledService {
  /** `namespace/name` */
  name: string;
  clusterIp: string;
  externalIps: readonly string[];
  /** How long a client keeps its pod; undefined without session affinity. */
  affinitySeconds?: number | undefined;
  ports: readonly RuledPort[];
}

/** Facts that the rules depend on besides the Services. */
export interface RuleFacts {
  /** Start of the names of our chains: `KTS-1a2b3c`. */
  prefix: string;
  /** It is written into the rules: they are of no use once it is gone. */
  rootDir: string;
  /** Range of all cluster IPs: the rules are those of its family. */
  range: string;
  /** Bridges whose own traffic passes no rules: an answer inside of one would not find its way back. */
  unfilteredBridges: readonly IpRange[];
  /** Addresses of the machine on which ports are published; empty for all. */
  nodePortAddresses: readonly string[];
  /** Bridges on which we let packets of the loopback's addresses out, for published ports. */
  loopbackBridges: readonly string[];
  /** The chain in which the administrator keeps rules for forwarded traffic is there. */
  hasDockerUser: boolean;
}

/** Rules by chain, in the form of iptables-save without `-A CHAIN`. */
type Chains = ReadonlyMap<string, readonly string[]>;
/** In parts: those of a Service that has not changed are the same object. */
export interface RuleTables {
  nat: readonly Chains[];
  filter: readonly Chains[];
}
export const TABLES = ["nat", "filter"] as const;
type TableName = (typeof TABLES)[number];

/** The bit by which kube-proxy marks packets to masquerade: every reader of it does the same. */
const MASQUERADE = "0x4000/0x4000";
/** Came to a published port or an external address: forwarded although Docker drops what it has not published itself. */
export const PUBLISHED = "0x1000/0x1000";

/** Lengths of an address in rules, and ranges of the loopback whose packets may leave its device, by family. */
const OF_FAMILY = {
  IPv4: { bits: 32, loopback: "127.0.0.0/8" },
  // No setting of the kernel lets packets with ::1 out of the loopback device.
  IPv6: { bits: 128, loopback: undefined },
} as const;

const alone = (ip: string): string => `${ip}/${OF_FAMILY[familyOf(ip) ?? "IPv4"].bits}`;

const familyOfRange = (range: string): IpFamily => (range.includes(":") ? "IPv6" : "IPv4");

/** 16 bits of a hash decide over 200 Services; the kernel takes names of 28 characters. */
const CHAIN_DIGITS = 12;

/** Names of the chains that do not depend on Services. */
const chainsOf = (prefix: string) => ({
  services: `${prefix}-SERVICES`,
  addresses: `${prefix}-ADDRESSES`,
  published: `${prefix}-PUBLISHED`,
  masquerade: `${prefix}-MASQ`,
  forward: `${prefix}-FORWARD`,
  output: `${prefix}-OUTPUT`,
  input: `${prefix}-INPUT`,
});

/** A rule in a chain of the kernel that leads to one of our chains. */
interface Jump {
  table: TableName;
  chain: string;
  rule: string;
  /** It is there, as iptables-save shows it, but in the wrong place. */
  late?: string;
}

/** Pure. Source: the jumps of kube-proxy. Answers to connections that were led elsewhere are seen, too. */
export function jumpsOf(prefix: string): Jump[] {
  const chains = chainsOf(prefix);
  const isNew = "-m conntrack --ctstate NEW";
  return [
    { table: "nat", chain: "PREROUTING", rule: `-j ${chains.services}` },
    { table: "nat", chain: "OUTPUT", rule: `-j ${chains.services}` },
    { table: "nat", chain: "POSTROUTING", rule: `-j ${chains.masquerade}` },
    { table: "filter", chain: "FORWARD", rule: `${isNew},DNAT -j ${chains.forward}` },
    { table: "filter", chain: "OUTPUT", rule: `${isNew} -j ${chains.output}` },
    { table: "filter", chain: "INPUT", rule: `-j ${chains.input}` },
  ];
}

/**
 * The rules of all Services. Pure. Source: kube-proxy's iptables mode, `proxier.syncProxyRules`: one chain for a port of a
 * Service, one for an endpoint, so that a change of a pod rewrites two of them.
 */
export function computeServiceRules(services: readonly RuledService[], facts: RuleFacts): RuleTables {
  const chains = chainsOf(facts.prefix);
  const bridges = facts.unfilteredBridges.map(({ text }) => text).join();
  const all = services.map((service) => rulesOfService(service, facts.prefix, bridges));
  const [addresses, external, published, refused] = [[], [], [], []] as [string[], string[], string[], string[]];
  for (const one of all) {
    addresses.push(...one.addresses);
    external.push(...one.external);
    published.push(...one.published);
    refused.push(...one.refused);
  }
  const nat = new Map<string, readonly string[]>();
  const family = familyOfRange(facts.range);
  const isLocal = "-m addrtype --dst-type LOCAL";
  const local =
    facts.nodePortAddresses.length === 0
      ? [`${isLocal} -j ${chains.published}`]
      : facts.nodePortAddresses
          .filter((range) => familyOfRange(range) === family)
          .map((range) => `-d ${range} ${isLocal} -j ${chains.published}`);
  nat.set(chains.services, [
    `-d ${facts.range} -j ${chains.addresses}`,
    ...external,
    ...(published.length > 0 ? local : []),
  ]);
  nat.set(chains.addresses, addresses);
  nat.set(chains.published, published);
  const { loopback } = OF_FAMILY[family];
  nat.set(chains.masquerade, [
    `-m mark --mark ${MASQUERADE}${rootComment(facts.rootDir)} -j MASQUERADE`,
    ...(loopback ? [`-s ${loopback} ! -o lo -m mark --mark ${PUBLISHED} -j MASQUERADE`] : []),
  ]);
  // A connection that was not sent to a pod by then has none: an answer at once instead of a timeout.
  const rejections = [`-p tcp ${rejectionOf("TCP")}`, rejectionOf("")];
  const reject = [...rejections.map((rule) => `-d ${facts.range} ${rule}`), ...refused];
  // Docker drops what goes from one of its networks to another, the answers as well.
  const passing = [`-m mark --mark ${PUBLISHED}`, "-m conntrack ! --ctstate NEW"];
  const targets = [...(facts.hasDockerUser ? ["DOCKER-USER"] : []), "ACCEPT"];
  const accept = passing.flatMap((match) => targets.map((target) => `${match} -j ${target}`));
  const filter = new Map([
    [chains.forward, [...reject, ...(published.length + external.length > 0 ? accept : [])]],
    [chains.output, reject],
    [chains.input, published.length > 0 ? facts.loopbackBridges.map(loopbackGuard) : []],
  ]);
  return { nat: [...all.map((one) => one.chains), nat], filter: [filter] };
}

/** The kernel takes comments of 255 bytes; a path that iptables-save would write in another form is left out. */
const rootComment = (rootDir: string): string =>
  /^[\w/.-]{1,200}$/.test(rootDir) ? ` -m comment --comment "root directory ${rootDir}"` : "";

/** Rules of one Service. */
interface ServiceRules {
  addresses: readonly string[];
  external: readonly string[];
  published: readonly string[];
  refused: readonly string[];
  /** Its own chains of the table nat. */
  chains: Chains;
}

/** @param bridges without rules, their ranges with commas */
const rulesOfService = memoized((service: RuledService, prefix: string, bridges: string): ServiceRules => {
  const unfilteredBridges = bridges.split(",").flatMap((text) => parseIpRange(text) ?? []);
  const nat = new Map<string, string[]>();
  const refused: string[] = [];
  const addresses: string[] = [];
  const external: string[] = [];
  const published: string[] = [];
  for (const port of service.ports) {
    const chain = portChain(prefix, service, port);
    const name = `${service.name}${port.name === "" ? "" : `:${port.name}`}`;
    const to = (address: string, comment: string) =>
      `-d ${alone(address)} -p ${port.protocol.toLowerCase()} -m comment --comment "${name}${comment}" -m ${port.protocol.toLowerCase()} --dport ${port.port}`;
    addresses.push(`${to(service.clusterIp, "")} -j ${chain}`);
    for (const ip of service.externalIps) {
      const match = to(ip, " external");
      external.push(`${match} -j MARK --set-xmark ${PUBLISHED}`, `${match} -j ${chain}`);
      if (port.endpoints.length === 0) refused.push(`${to(ip, " has no endpoints")} ${rejectionOf(port.protocol)}`);
    }
    published.push(...publishedRules(port, chain, name));
    addPortChains(nat, chain, service, port, { prefix, unfilteredBridges });
  }
  return { addresses, external, published, refused, chains: nat };
});

/**
 * A socket of a pod that connects is busy when the ICMP message arrives, and passes it over: its program would wait for a
 * second.
 */
const rejectionOf = (protocol: string): string => `-j REJECT${protocol === "TCP" ? " --reject-with tcp-reset" : ""}`;

/** Where such packets may go out, none but the answers to them may come in. Source: kube-proxy. */
const loopbackGuard = (bridge: string) =>
  `-d ${OF_FAMILY.IPv4.loopback} -i ${bridge} -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP`;

const portChain = (prefix: string, { name }: RuledService, port: RuledPort): string =>
  `${prefix}-SVC-${hex32(`${name} ${port.protocol} ${port.port}`).slice(0, CHAIN_DIGITS)}`;

function publishedRules({ protocol, published }: RuledPort, chain: string, name: string): string[] {
  return published.flatMap(({ port, sources }) => {
    const froms =
      sources === undefined ? [""] : ["-m addrtype --src-type LOCAL ", ...sources.map((range) => `-s ${range} `)];
    return froms.flatMap((from) => {
      const match = `${from}-p ${protocol.toLowerCase()} -m comment --comment "${name} published" -m ${protocol.toLowerCase()} --dport ${port}`;
      return [`${match} -j MARK --set-xmark ${PUBLISHED}`, `${match} -j ${chain}`];
    });
  });
}

/** The chain of a port, and one for each of its endpoints. */
function addPortChains(
  nat: Map<string, string[]>,
  chain: string,
  service: RuledService,
  { protocol, endpoints }: RuledPort,
  { prefix, unfilteredBridges }: Pick<RuleFacts, "prefix" | "unfilteredBridges">,
): void {
  const { affinitySeconds } = service;
  const tcp = `-p ${protocol.toLowerCase()}`;
  const all = endpoints.map(({ ip, port, isOutside }) => {
    const own = `${prefix}-SEP-${hex32(`${chain} ${ip}:${port}`).slice(0, CHAIN_DIGITS)}`;
    const bridge = unfilteredBridges.find((range) => isInRange(ip, range));
    const recent = affinitySeconds === undefined ? "" : `-m recent --name ${own} --set --rsource `;
    nat.set(own, [
      // A pod that reaches itself, or another one of a bridge on which the answer would not be translated back; and everybody
      // who reaches another machine, which would answer past this one.
      `${isOutside ? "" : `-s ${bridge?.text ?? alone(ip)} `}-j MARK --set-xmark ${MASQUERADE}`,
      `${tcp} ${recent}-j DNAT --to-destination ${ip.includes(":") ? `[${ip}]` : ip}:${port}`,
    ]);
    return own;
  });
  const known =
    affinitySeconds === undefined
      ? []
      : all.map((own) => `-m recent --name ${own} --rcheck --seconds ${affinitySeconds} --reap --rsource -j ${own}`);
  // Each of the rest gets an equal share of what is left.
  const shares = all.map((own, index) => {
    const left = all.length - index;
    return `${left === 1 ? "" : `-m statistic --mode random --probability ${(1 / left).toFixed(10)} `}-j ${own}`;
  });
  nat.set(chain, [...known, ...shares]);
}

/**
 * Where UDP to Services may go: addresses `ip:port`, each with the endpoints behind it. Pure.
 * @param nodeIps addresses of the machine on which ports are published
 */
export function udpTargets(
  services: readonly RuledService[],
  nodeIps: () => readonly string[],
): Map<string, readonly string[]> {
  const targets = new Map<string, readonly string[]>();
  for (const { clusterIp, externalIps, ports } of services) {
    for (const { protocol, port, published, endpoints } of ports) {
      if (protocol !== "UDP") continue;
      const servers = endpoints.map((endpoint) => `${endpoint.ip}:${endpoint.port}`);
      for (const ip of [clusterIp, ...externalIps]) targets.set(`${ip}:${port}`, servers);
      for (const { port: open } of published) for (const ip of nodeIps()) targets.set(`${ip}:${open}`, servers);
    }
  }
  return targets;
}

/** State of the kernel before a write. */
interface KernelState {
  /** Our chains that are there, with their rules; undefined where these are not known. */
  chains: Readonly<Record<TableName, readonly ReadonlyMap<string, readonly string[] | undefined>[]>>;
  missingJumps: readonly Jump[];
  /** Rules of others that lead to our chains: the kernel removes no chain to which one leads. */
  jumps: readonly SavedJump[];
}

/**
 * The text for `iptables-restore --noflush` that makes the kernel's chains equal to these: each table in one step. Pure.
 * @returns "" when nothing has changed
 */
export function toRestoreText(next: RuleTables, kernel: KernelState): string {
  return TABLES.map((table) => {
    const known = chainsOnlyIn(kernel.chains[table], next[table]);
    const wanted = chainsOnlyIn(next[table], kernel.chains[table]);
    const changed = [...wanted].filter(([chain, rules]) => {
      const before = known.get(chain);
      return before === undefined || !isSameList(before, rules);
    });
    const gone = [...known.keys()].filter((chain) => !wanted.has(chain));
    const jumps = kernel.missingJumps.filter((jump) => jump.table === table);
    if (changed.length + gone.length + jumps.length === 0) return "";
    const isUsed = (chain: string) =>
      kernel.jumps.some(
        (it) => it.table === table && [` -j ${chain}`, ` -g ${chain}`].some((end) => it.rule.endsWith(end)),
      );
    return [
      `*${table}`,
      ...[...changed.map(([chain]) => chain), ...gone].map((chain) => `:${chain} - [0:0]`),
      ...changed.flatMap(([chain, rules]) => rules.map((rule) => `-A ${chain} ${rule}`)),
      ...jumps.flatMap(({ late }) => late?.replace("-A", "-D") ?? []),
      ...jumps.map(({ chain, rule }) => `-I ${chain} 1 ${rule}`),
      ...gone.flatMap((chain) => (isUsed(chain) ? [] : `-X ${chain}`)),
      "COMMIT\n",
    ].join("\n");
  }).join("");
}

/** Chains of the parts that the other table does not have. */
function chainsOnlyIn<T>(parts: readonly ReadonlyMap<string, T>[], others: readonly object[]): Map<string, T> {
  const known = new Set(others);
  return new Map(parts.flatMap((part) => (known.has(part) ? [] : [...part])));
}

/** A rule of the kernel's chains that leads to our chain, as iptables-save shows it: `-A PREROUTING -j KTS-1a2b3c-SERVICES`. */
interface SavedJump {
  table: TableName;
  rule: string;
  /** A rule before it decides over packets that it should see. */
  isLate: boolean;
}

/** Output of `iptables-save` for the two tables, as far as it is needed. */
export interface SavedRules {
  /** Our chains, with the number of their rules. */
  own: Readonly<Record<TableName, ReadonlyMap<string, number>>>;
  jumps: readonly SavedJump[];
  hasDockerUser: boolean;
  /** As {@link RuleFacts.loopbackBridges}, when they were written. */
  loopbackBridges: readonly string[];
  /** Ranges of cluster IPs of other kubelet-ts on this machine, by the starts of their names. */
  otherRanges: ReadonlyMap<string, string>;
  /** Root directories of those that say it, by the starts of their names. */
  rootDirs: ReadonlyMap<string, string>;
  /** Starts of the names of chains, ours among them, that publish a port of the machine, by `TCP/80`. */
  publishers: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Rules of Docker that let packets pass, or drop those to ports that it has not published itself. */
const DOCKER_DECIDES = /^-A FORWARD .*-j (ACCEPT|DOCKER|DOCKER-FORWARD)$/;

/** Pure. @param prefix as {@link RuleFacts.prefix} */
export function parseSavedRules(text: string, prefix: string): SavedRules {
  const own = { nat: new Map<string, number>(), filter: new Map<string, number>() };
  const jumps: SavedJump[] = [];
  const publishers = new Map<string, Set<string>>();
  const otherRanges = new Map<string, string>();
  const rootDirs = new Map<string, string>();
  const loopbackBridges: string[] = [];
  let hasDockerUser = false;
  const leadsToOurs = new RegExp(` -[jg] ${prefix}-`);
  let table = "";
  let isLate = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("*")) table = line.slice(1).trim();
    if (table !== "nat" && table !== "filter") continue;
    const chain = /^:(\S+)/.exec(line)?.[1];
    if (chain?.startsWith(`${prefix}-`)) own[table].set(chain, 0);
    if (chain === "DOCKER-USER") hasDockerUser = true;
    if (!line.startsWith("-A ")) continue;
    const [, ruled = ""] = line.split(" ", 2);
    const count = own[table].get(ruled);
    if (count !== undefined) own[table].set(ruled, count + 1);
    if (DOCKER_DECIDES.test(line)) isLate = true;
    const port = /^-A (KTS-\w+)-PUBLISHED .*-p (\w+) .*--dport (\d+) -j MARK/.exec(line);
    if (port) {
      const key = `${port[2]!.toUpperCase()}/${port[3]}`;
      publishers.set(key, (publishers.get(key) ?? new Set()).add(port[1]!));
    }
    const range = /^-A (KTS-\w+)-SERVICES -d (\S+) -j \1-ADDRESSES/.exec(line);
    if (range && range[1] !== prefix) otherRanges.set(range[1]!, range[2]!);
    const root = /^-A (KTS-\w+)-MASQ .*--comment "root directory ([^"]+)"/.exec(line);
    if (root) rootDirs.set(root[1]!, root[2]!);
    const bridge = line.startsWith(`-A ${prefix}-INPUT `) && / -i (\S+) /.exec(line)?.[1];
    if (bridge) loopbackBridges.push(bridge);
    if (leadsToOurs.test(line) && !line.startsWith(`-A ${prefix}-`))
      jumps.push({ table, rule: line, isLate: isLate && line.startsWith("-A FORWARD ") });
  }
  return { own, jumps, hasDockerUser, loopbackBridges, otherRanges, rootDirs, publishers };
}

/** Those of our jumps that are not where they belong. Pure. */
export const missingJumps = (prefix: string, { jumps }: SavedRules): Jump[] =>
  jumpsOf(prefix).flatMap((jump) => {
    const { table, chain, rule } = jump;
    const target = rule.slice(rule.lastIndexOf(" ") + 1);
    const found = jumps.find(
      (it) => it.table === table && it.rule.startsWith(`-A ${chain} `) && it.rule.endsWith(` -j ${target}`),
    );
    if (found && !found.isLate) return [];
    return [{ ...jump, ...(found && { late: found.rule }) }];
  });

/** Whether the kernel has these chains with all of their rules, and the jumps to them. Pure. */
export const isInKernel = (prefix: string, tables: RuleTables, saved: SavedRules): boolean =>
  missingJumps(prefix, saved).length === 0 &&
  TABLES.every((table) =>
    tables[table].every((part) => [...part].every(([chain, { length }]) => saved.own[table].get(chain) === length)),
  );

/** The other kubelet-ts that has a port of the machine: of two that took it at once the one whose name is first. Pure. */
export function findPublisher(prefix: string, { publishers }: SavedRules, protocol: string, port: number) {
  const names = publishers.get(`${protocol}/${port}`) ?? new Set<string>();
  const [first] = [...names].filter((name) => name !== prefix).sort();
  return first === undefined || (names.has(prefix) && prefix < first) ? undefined : first;
}

/** The text that removes our chains and the jumps to them, and nothing else; "" where there are none. Pure. */
export function toRemovalText({ own, jumps }: SavedRules): string {
  return TABLES.map((table) => {
    const rules = jumps.filter((jump) => jump.table === table);
    const chains = [...own[table].keys()];
    if (chains.length + rules.length === 0) return "";
    return [
      `*${table}`,
      ...chains.map((chain) => `:${chain} - [0:0]`),
      ...rules.map(({ rule }) => rule.replace("-A", "-D")),
      ...chains.map((chain) => `-X ${chain}`),
      "COMMIT\n",
    ].join("\n");
  }).join("");
}
