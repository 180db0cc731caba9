import { FIRST_NODE_PORT, NODE_PORTS, type Service, type ServicePort } from "../base/api/service.ts";
import { memoized } from "../base/model/memoized.ts";
import { podFullName } from "../base/model/pod.ts";
import {
  canonicalIp,
  familyOf,
  type IpFamily,
  type IpRange,
  isInRange,
  isOverlapping,
  numberToIp,
  parseIpRange,
} from "../base/text/ip-range.ts";
import { hex32 } from "../base/text/json.ts";
import { nodePortOf } from "./pod-network.ts";

/** Those of kubeadm are 10.96.0.0/12. */
const FIRST_OF_KUBEADM = 96;
const RANGES_OF_KUBEADM = 16;

/**
 * Ranges of cluster IPs, best first: that of kubeadm, so that addresses in manifests of clusters fit, its neighbors, that of
 * k3s, one that no network has (RFC 2544).
 */
const RANGES = Array.from({ length: RANGES_OF_KUBEADM }, (_, index) => `10.${FIRST_OF_KUBEADM + index}.0.0/16`)
  .concat("10.43.0.0/16", "172.29.0.0/16", "198.18.0.0/16")
  .map((text) => parseIpRange(text)!);

/** The first range that overlaps none of these networks. Pure. */
export const chooseRange = (networks: readonly IpRange[]): string | undefined =>
  RANGES.find((range) => !networks.some((network) => isOverlapping(range, network)))?.text;

/** Addresses and ports that Services were given and keep, also the content of their file. Names are `namespace/name`. */
export interface ServiceAddresses {
  /** As {@link parseRanges} reads it; "" while no Service needed an address. */
  range: string;
  /** Cluster IPs by Service, one of each of its families, with commas: versions with one family read them. */
  clusterIps: Readonly<Record<string, string>>;
  /** Services by the port of the machine that they have: `TCP/80`. */
  ports: Readonly<Record<string, string>>;
  /** Chosen node ports, by Service and port: `default/web TCP/80`. */
  nodePorts: Readonly<Record<string, number>>;
}

/** The reason for which a Service has not all that it asks for. */
export interface ServiceProblem {
  reason: "ClusterIPNotAllocated" | "PortNotAllocated";
  message: string;
}

export interface ServiceAllocation {
  addresses: ServiceAddresses;
  /** Problems by the name of the Service. */
  problems: ReadonlyMap<string, ServiceProblem>;
}

/**
 * Names the holder of a port of the machine, e.g. `nginx (pid 812)`; undefined for a free one.
 * @param isOwn the Service that asks has it already
 */
export type PortHolder = (protocol: string, port: number, isOwn: boolean) => string | undefined;

export const serviceName = memoized(({ metadata }: Pick<Service, "metadata">): string => podFullName(metadata));

/** Labels, of any value, of Services that another proxy serves. Source: kube-proxy's `ServiceConfig`. */
const LABELS_OF_OTHER_PROXIES = ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"];

/** Whether a Service has an address, and nothing here leads from it to pods. */
export const isOfOtherProxy = ({ metadata: { labels = {} } }: Service): boolean =>
  LABELS_OF_OTHER_PROXIES.some((name) => Object.hasOwn(labels, name));

/** Whether a Service has an address of its own. */
export const hasClusterIp = ({ spec }: Service): boolean => spec.type !== "ExternalName" && spec.clusterIP !== "None";

/** The ranges of `--service-cluster-ip-range`: one, or one of each family, of which the first is the default. Pure. */
export const parseRanges = (text: string): IpRange[] => text.split(",").flatMap((one) => parseIpRange(one) ?? []);

/** Families of addresses of Services, by the same flag; none: they have no addresses. Pure. */
export const familiesOfRanges = (text: string): IpFamily[] =>
  text === "" ? ["IPv4"] : parseRanges(text).map(({ family }) => family);

interface ServiceFamilies {
  /** The first is that of `clusterIP`. */
  families: readonly IpFamily[];
  /** Reasons for which a wish is not met, as the API server words them. */
  problems: readonly { field: string; value: unknown; message: string }[];
}

/** Addresses that a Service asks for. A headless one asks for none. */
export const wantedIps = ({ spec: { clusterIP = "", clusterIPs } }: Service): string[] => {
  const all = clusterIPs?.length && (clusterIP === "" || clusterIP === clusterIPs[0]) ? clusterIPs : [clusterIP];
  return all.flatMap((ip) => canonicalIp(ip) ?? []);
};

/**
 * The families of a Service: those that it names, by families or addresses; with PreferDualStack and RequireDualStack both.
 * Pure. Source: core's service allocator, `initIPFamilyFields`.
 */
export function familiesOf(service: Service, ranges: readonly IpRange[]): ServiceFamilies {
  const { ipFamilyPolicy = "SingleStack", ipFamilies = [] } = service.spec;
  const configured = ranges.map(({ family }) => family);
  const named = new Set([...wantedIps(service).map((ip) => familyOf(ip)!), ...(ipFamilies as IpFamily[])]);
  const problems: { field: string; value: unknown; message: string }[] = [];
  if (configured.length === 0) return { families: ["IPv4"], problems };
  const isDual = ipFamilyPolicy === "PreferDualStack" || ipFamilyPolicy === "RequireDualStack";
  if (!isDual && named.size > 1) {
    const message = "must be RequireDualStack or PreferDualStack when multiple 'ipFamilies' are specified";
    problems.push({ field: "spec.ipFamilyPolicy", value: ipFamilyPolicy ?? "SingleStack", message });
  } else if (ipFamilyPolicy === "RequireDualStack" && configured.length < 2) {
    const message = "this cluster is not configured for dual-stack services";
    problems.push({ field: "spec.ipFamilyPolicy", value: ipFamilyPolicy, message });
  }
  for (const [index, family] of [...named].entries()) {
    if (configured.includes(family)) continue;
    problems.push({ field: `spec.ipFamilies[${index}]`, value: family, message: "not configured on this cluster" });
  }
  const usable = [...named].filter((family) => configured.includes(family));
  const [first = configured[0]!] = usable;
  return { families: isDual ? [first, ...configured.filter((it) => it !== first)] : [first], problems };
}

/**
 * Gives Services their addresses and ports: what they have they keep, what is asked for by number goes before what is chosen.
 * Pure.
 * @param holderOf who else has a port of the machine
 * @param seed another one for each kubelet-ts of a machine: their Services have other addresses even in one range
 */
export function allocateServices(
  services: readonly Service[],
  known: ServiceAddresses,
  holderOf: PortHolder,
  seed = "",
  nodePortRange = "",
): ServiceAllocation {
  const problems = new Map<string, ServiceProblem>();
  const owners = services.filter(hasClusterIp);
  const clusterIps = allocateClusterIps(owners, known, problems, seed);
  const published = publishServices(owners, known, holderOf, problems, nodePortRange);
  return { addresses: { range: known.range, clusterIps, ...published }, problems };
}

/** Addresses that a Service asks for in these ranges. */
const wishesOf = memoized((service: Service, text: string) => {
  const ranges = parseRanges(text);
  const ips = wantedIps(service);
  const { families, problems: unmet } = familiesOf(service, ranges);
  const wishes = families.map((family) => ({
    range: ranges.find((it) => it.family === family)!,
    // An address of no range is a wish that is reported.
    wanted: ips.find((ip) => familyOf(ip) === family),
  }));
  return { wishes, unmet };
});

/** An address that a Service needs. */
interface AddressRequest {
  name: string;
  range: IpRange;
  /** It has it already. */
  kept: string | undefined;
  /** Its manifest names it. */
  wanted: string | undefined;
  found?: string;
}

function allocateClusterIps(
  services: readonly Service[],
  { range: text, clusterIps: known }: ServiceAddresses,
  problems: Map<string, ServiceProblem>,
  seed: string,
): Record<string, string> {
  if (parseRanges(text).length === 0) return {};
  const report = (name: string, message: string) => problems.set(name, { reason: "ClusterIPNotAllocated", message });
  const requests = services.flatMap((service): AddressRequest[] => {
    const name = serviceName(service);
    const { wishes, unmet } = wishesOf(service, text);
    for (const { field, value, message } of unmet) report(name, `${field} ${value}: ${message}`);
    return wishes.map(({ range, wanted }) => {
      const kept = known[name]
        ?.split(",")
        .find((ip) => isInRange(ip, range) && (wanted === undefined || wanted === ip));
      return { name, range, kept, wanted };
    });
  });
  const holders = new Map<string, string>();
  const take = (request: AddressRequest, ip: string) => {
    request.found = ip;
    holders.set(ip, request.name);
  };
  for (const request of requests) if (request.kept !== undefined) take(request, request.kept);
  for (const request of requests) {
    const { name, range, wanted, found } = request;
    if (found !== undefined || wanted === undefined) continue;
    const holder = holders.get(wanted);
    const why = holder
      ? `is that of Service "${holder}"`
      : `is not in ${range.text} (--service-cluster-ip-range), which Services of this machine have`;
    if (!holder && isInRange(wanted, range)) take(request, wanted);
    else report(name, `clusterIP ${wanted} ${why}: it has another one`);
  }
  for (const request of requests) {
    if (request.found !== undefined) continue;
    const ip = firstFreeIp(seed, request.name, request.range, holders);
    if (ip !== undefined) take(request, ip);
    else report(request.name, `${request.range.text} has no free address`);
  }
  const found: Record<string, string> = {};
  for (const { name, found: ip } of requests)
    if (ip !== undefined) found[name] = name in found ? `${found[name]},${ip}` : ip;
  return found;
}

/** Lower addresses are left to manifests that name theirs. Source: upstream's `ServiceIPStaticSubrange`. */
const RESERVED = 256;
/** A range of IPv6 has more addresses than one machine has Services. */
const MAX_CHOSEN = 2 ** 24;

/** An address that follows from the name: a Service that is deleted and made again has the same. undefined: all are taken. */
export function firstFreeIp(
  seed: string,
  name: string,
  { first, size, family }: IpRange,
  taken: { has(ip: string): boolean },
): string | undefined {
  const low = size > 2 * RESERVED ? RESERVED : 1;
  const count = Math.min(Number(size) - low - 1, MAX_CHOSEN);
  const start = Number.parseInt(hex32(`${seed} ${name}`).slice(0, 8), 16);
  for (let step = 0; step < count; step++) {
    const ip = numberToIp(first + BigInt(low + ((start + step) % count)), family);
    if (!taken.has(ip)) return ip;
  }
  return undefined;
}

export const toPortKey = (protocol: string, port: number): string => `${protocol}/${port}`;

/** The key of a chosen node port. */
export const portOf = (name: string, { protocol, port }: Pick<ServicePort, "protocol" | "port">): string =>
  `${name} ${toPortKey(protocol, port)}`;

/** The ports of the machine that something has, each with what has it; undefined when all are free. Pure. */
export function describeHeld(
  keys: readonly string[],
  holderOf: (protocol: string, port: number) => string | undefined,
): string | undefined {
  const held = keys.flatMap((key) => {
    const [protocol = "", port] = key.split("/");
    const holder = holderOf(protocol, Number(port));
    return holder === undefined ? [] : `port ${key} of the machine is held by ${holder}`;
  });
  return held.length > 0 ? held.join(", ") : undefined;
}

/** All ports of a Service are published, or none. */
function publishServices(
  services: readonly Service[],
  known: ServiceAddresses,
  holderOf: PortHolder,
  problems: Map<string, ServiceProblem>,
  nodePortRange: string,
): Pick<ServiceAddresses, "ports" | "nodePorts"> {
  const ports: Record<string, string> = {};
  const nodePorts: Record<string, number> = {};
  const publishers = services.filter(({ spec }) => spec.type === "NodePort" || spec.type === "LoadBalancer");
  // The holder of a port keeps it.
  const holders = new Set(Object.values(known.ports));
  const order = [...publishers].sort(
    (a, b) => Number(holders.has(serviceName(b))) - Number(holders.has(serviceName(a))),
  );
  for (const service of order) {
    const name = serviceName(service);
    const findHolder = (protocol: string, port: number): string | undefined => {
      const key = toPortKey(protocol, port);
      if (ports[key] !== undefined) return ports[key] === name ? undefined : `Service "${ports[key]}"`;
      return holderOf(protocol, port, known.ports[key] === name);
    };
    const wanted: string[] = [];
    const chosen: Record<string, number> = {};
    for (const each of service.spec.ports ?? []) {
      const { protocol, port, nodePort = 0 } = each;
      if (service.spec.type === "LoadBalancer") wanted.push(toPortKey(protocol, port));
      if (nodePort !== 0) wanted.push(toPortKey(protocol, nodePort));
      else if (service.spec.type === "NodePort") {
        const own = portOf(name, each);
        const isFree = (candidate: number) => findHolder(protocol, candidate) === undefined;
        const free = chooseNodePort(service, each, known.nodePorts[own], isFree, nodePortRange);
        chosen[own] = free;
        wanted.push(toPortKey(protocol, free));
      }
    }
    const held = describeHeld(wanted, findHolder);
    if (held !== undefined) {
      problems.set(name, { reason: "PortNotAllocated", message: `it is not published: ${held}` });
      continue;
    }
    for (const key of wanted) ports[key] = name;
    Object.assign(nodePorts, chosen);
  }
  return { ports, nodePorts };
}

/** The first and the last port of `--service-node-port-range`; of upstream's for "". */
function nodePortsIn(range: string): [first: number, last: number] {
  const [first, last] = (range || `${FIRST_NODE_PORT}-${FIRST_NODE_PORT + NODE_PORTS - 1}`).split("-").map(Number);
  return [first!, last!];
}

/** A free node port: the one that the Service had, or one that follows from its name, or the next. */
function chooseNodePort(
  service: Service,
  port: ServicePort,
  known: number | undefined,
  isFree: (port: number) => boolean,
  range: string,
): number {
  const [first, last] = nodePortsIn(range);
  const wanted = known ?? nodePortOf(service, port) ?? first;
  for (let step = 0; step <= last - first; step++) {
    const number = first + ((Math.abs(wanted - first) + step) % (last - first + 1));
    if (isFree(number)) return number;
  }
  return wanted;
}

/** Ports of the machine's addresses that lead to a port of a Service; none for one that is not published. Pure. */
export function publishedPortsOf(
  service: Service,
  wanted: ServicePort,
  { ports, nodePorts }: ServiceAddresses,
): number[] {
  const name = serviceName(service);
  const { port, protocol, nodePort } = wanted;
  const own = [
    ...(service.spec.type === "LoadBalancer" ? [port] : []),
    nodePort || nodePorts[portOf(name, wanted)] || 0,
  ];
  return own.filter((number) => number !== 0 && ports[toPortKey(protocol, number)] === name);
}

/** The networks that ranges overlap. */
export const overlapsOf = (ranges: readonly IpRange[], networks: readonly IpRange[]): IpRange[] =>
  networks.filter((network) => ranges.some((range) => isOverlapping(range, network)));

/** A field of a Service that cannot be met, as the API server words it. */
interface AssignmentProblem {
  /** e.g. `spec.ports[0].nodePort` */
  field: string;
  value: unknown;
  message: string;
}

export interface ServiceAssignment {
  spec: Service["spec"];
  problems: readonly AssignmentProblem[];
}

/** Numbers that are taken, and their range. */
interface TakenNumbers {
  range: string;
  clusterIps: ReadonlySet<string>;
  /** `TCP/30080` */
  nodePorts: ReadonlySet<string>;
  /** The range of node ports; "" where a client may name any. */
  nodePortRange: string;
}

/** Numbers of other Services, from their texts or given to them. Pure. */
export function numbersOf(
  others: readonly Service[],
  { range, clusterIps, nodePorts }: ServiceAddresses,
  nodePortRange = "",
): TakenNumbers {
  const ips = others
    .filter(hasClusterIp)
    .flatMap((other) => clusterIps[serviceName(other)]?.split(",") ?? wantedIps(other));
  const ports = others.flatMap((other) =>
    (other.spec.ports ?? []).flatMap((port) => {
      const number = port.nodePort || nodePorts[portOf(serviceName(other), port)];
      return number ? [toPortKey(port.protocol, number)] : [];
    }),
  );
  return { range, clusterIps: new Set(ips), nodePorts: new Set(ports), nodePortRange };
}

/**
 * A Service of a client with the address and the node ports that it lacks. Pure. Source: core's service REST storage, which
 * allocates within the write; without a range that was set a node port may be any.
 * @param holderOf who else has a port of the machine; one that a client names is not looked up: its holder may go
 */
export function assignService(
  service: Service,
  taken: TakenNumbers,
  holderOf: PortHolder,
  seed: string,
): ServiceAssignment {
  if (service.spec.type === "ExternalName") return { spec: service.spec, problems: [] };
  const { families, problems: unmet } = familiesOf(service, parseRanges(taken.range));
  const base = { ...service.spec, ...familyFields(service, families) };
  if (!hasClusterIp(service)) return { spec: base, problems: [] };
  const problems: AssignmentProblem[] = [...unmet];
  const clusterIPs = assignClusterIps(service, taken, families, seed, problems);
  const ports = assignNodePorts(service, taken, holderOf, problems);
  const spec = {
    ...base,
    ...(clusterIPs.length > 0 && { clusterIP: clusterIPs[0], clusterIPs }),
    ...(ports && { ports }),
  };
  return { spec, problems };
}

/** A Service of IPv4 alone need not say it. Pure. */
export const familyFields = (
  { spec: { ipFamilies } }: Service,
  families: readonly IpFamily[],
): Partial<Service["spec"]> =>
  ipFamilies === undefined && families.join() === "IPv4" ? {} : { ipFamilies: [...families] };

function assignClusterIps(
  service: Service,
  { range: text, clusterIps }: TakenNumbers,
  families: readonly IpFamily[],
  seed: string,
  problems: AssignmentProblem[],
): string[] {
  const ranges = parseRanges(text);
  const wishes = wantedIps(service);
  if (ranges.length === 0) return wishes;
  const refuse = (value: string[], message: string) => problems.push({ field: "spec.clusterIPs", value, message });
  return families.flatMap((family) => {
    const range = ranges.find((it) => it.family === family)!;
    const wanted = wishes.find((ip) => familyOf(ip) === family);
    if (wanted === undefined) {
      const ip = firstFreeIp(seed, serviceName(service), range, clusterIps);
      if (ip === undefined) refuse([], "failed to allocate a serviceIP: range is full");
      return ip ?? [];
    }
    const failed = `failed to allocate IP ${wanted}`;
    if (!isInRange(wanted, range)) {
      const why = `the provided IP (${wanted}) is not in the valid range. The range of valid IPs is ${range.text}`;
      refuse([wanted], `${failed}: ${why}`);
    } else if (clusterIps.has(wanted)) refuse([wanted], `${failed}: provided IP is already allocated`);
    return wanted;
  });
}

function assignNodePorts(
  service: Service,
  { nodePorts, nodePortRange }: TakenNumbers,
  holderOf: PortHolder,
  problems: AssignmentProblem[],
): ServicePort[] | undefined {
  const { type, ports } = service.spec;
  const named = new Set(nodePorts);
  for (const [index, { protocol, nodePort = 0 }] of (ports ?? []).entries()) {
    if (nodePort === 0) continue;
    const key = toPortKey(protocol, nodePort);
    const refuse = (message: string) =>
      problems.push({
        field: `spec.ports[${index}].nodePort`,
        value: nodePort,
        message: `provided port is ${message}`,
      });
    const [first, last] = nodePortsIn(nodePortRange);
    if (nodePorts.has(key)) refuse("already allocated");
    else if (nodePortRange !== "" && (nodePort < first || nodePort > last))
      refuse(`not in the valid range. The range of valid ports is ${nodePortRange}`);
    named.add(key);
  }
  if (type !== "NodePort") return ports;
  return ports?.map((port) => {
    if (port.nodePort) return port;
    const isFree = (number: number) =>
      !named.has(toPortKey(port.protocol, number)) && holderOf(port.protocol, number, false) === undefined;
    const nodePort = chooseNodePort(service, port, undefined, isFree, nodePortRange);
    named.add(toPortKey(port.protocol, nodePort));
    return { ...port, nodePort };
  });
}
