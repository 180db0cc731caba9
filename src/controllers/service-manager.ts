import type { EndpointSlice, Endpoints } from "../base/api/endpoints.ts";
import type { HostAlias, Pod, PodStatus } from "../base/api/pod.ts";
import type { Service } from "../base/api/service.ts";
import { ChangeLogger } from "../base/logging/change-logger.ts";
import type { WorkloadObject } from "../base/model/desired-state.ts";
import { isSameList, MadeOfEach } from "../base/model/memoized.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { canonicalIp, familyOf, type IpFamily, type IpRange, rangeOfAddress } from "../base/text/ip-range.ts";
import type { DnsRecords } from "../plan/pod-dns.ts";
import { computeHostPorts, nodePortOf } from "../plan/pod-network.ts";
import {
  allocateServices,
  assignService,
  chooseRange,
  describeHeld,
  familiesOf,
  familyFields,
  hasClusterIp,
  isOfOtherProxy,
  numbersOf,
  overlapsOf,
  type PortHolder,
  parseRanges,
  portOf,
  publishedPortsOf,
  type ServiceAddresses,
  type ServiceAllocation,
  type ServiceAssignment,
  type ServiceProblem,
  serviceName,
  toPortKey,
  wantedIps,
} from "../plan/service-addresses.ts";
import { endpointsOf, isFinished, type ServiceBackend, ServicePods } from "../plan/service-endpoints.ts";
import { computeServiceEnvironment } from "../plan/service-environment.ts";
import type { RuledService } from "../plan/service-rules.ts";
import type { ControllerContext } from "./controller.ts";
import { DNS_SERVICE } from "./dns-server.ts";
import { toEndpointObjects } from "./endpoint-objects.ts";
import type { ServiceHosts } from "./service-hosts.ts";
import { objectUid } from "./workload-records.ts";

/** Sends the connections of Services to pods: rules in the kernel, or a recorder in tests. */
export interface ServiceProxy {
  /** Why connections do not reach pods; undefined when they do. */
  readonly problem: string | undefined;
  /** It has something left from an earlier process. */
  readonly hasRules: boolean;
  /** Networks that cluster IPs must not overlap. @param andRanges also ranges of others of its kind */
  networks(andRanges: boolean): IpRange[];
  /** Another of its kind on this machine that has a port, for good or before ours. */
  holderOf(protocol: string, port: number): string | undefined;
  /** Makes these Services, and no other ones, lead to their endpoints. */
  apply(services: readonly RuledService[], range: string): void;
  /** Resolves when what was applied is done, or cannot be. */
  settled(): Promise<void>;
  /** Calls back when `problem` has changed, and every few seconds while there are Services. */
  onChange(listener: () => void): void;
  stop(): void;
}

interface ServiceManagerDeps {
  context: ControllerContext;
  hosts: ServiceHosts;
  /** Absent: names lead to the pods themselves, and nothing has an address. */
  proxy?: ServiceProxy | undefined;
  /** A DNS server runs on this node. */
  hasDns?: boolean;
  file: Persisted<ServiceAddresses>;
  /** `--service-cluster-ip-range`: one, or one of each family; "" for the first free one of a list. */
  range: string;
  /** `--service-node-port-range`; absent or "": that of upstream, and clients may name any other port. */
  nodePortRange?: string;
  /** The program that has a port of the machine; undefined for a free one. */
  portHolder: (protocol: string, port: number) => string | undefined;
}

const NONE: ServiceAddresses = { range: "", clusterIps: {}, ports: {}, nodePorts: {} };
/** Networks of the machine are listed this often: with many pods it takes milliseconds. */
const LIST_NETWORKS_MS = 60_000;
/** Addresses are used without rules after this time. */
const MAX_OPENING_MS = 5_000;
/** A pod that ends, and is still led to, ends after this time. */
const MAX_LEAVING_MS = 1_000;
const LEAVING_PAUSE_MS = 10;
const NO_PODS = new ServicePods([]);
/** Source: core/v1 `DefaultClientIPServiceAffinitySeconds`. */
const AFFINITY_SECONDS = 10_800;

/** Addresses, rules and names of Services. */
export class ServiceManager {
  readonly #deps: ServiceManagerDeps;
  readonly #context: ControllerContext;
  readonly #log: ChangeLogger;
  #addresses: ServiceAddresses;
  /** Those of the addresses. */
  #ranges: readonly IpRange[];
  #problems: ReadonlyMap<string, ServiceProblem> = new Map();
  /** The last that the proxy got. */
  #applied: { services: readonly RuledService[]; range: string } = { services: [], range: "" };
  /** Ends when the proxy has done that; undefined: it has. */
  #applying: Promise<void> | undefined;
  /** Ends when addresses may be used: before the first rules a connection to one would leave the machine. */
  #opening: Promise<void> | undefined;
  #onChange = () => {};
  readonly #ruled = new MadeOfEach<Service, RuledService[]>(serviceName);
  readonly #asked = new MadeOfEach<Service, string>(serviceName);
  readonly #endpoints = new MadeOfEach<Service, WorkloadObject[]>(serviceName);
  #services: readonly Service[] = [];
  /** Requests of the Services at the last allocation; undefined: holders of ports and networks may have changed since. */
  #allocatedFor: readonly string[] | undefined;
  #pods: readonly Pod[] = [];
  #written: readonly (Endpoints | EndpointSlice)[] = [];
  /** These pods and written endpoints. */
  #behind = new ServicePods([]);
  /** The range that was compared with the networks, and when they are listed again, by the monotonic clock. */
  #seenRange: string | undefined;
  #listNetworksMs = 0;
  /** That of the proxy at the last update. */
  #shownProblem: string | undefined;

  constructor(deps: ServiceManagerDeps) {
    this.#deps = deps;
    this.#context = deps.context;
    this.#log = new ChangeLogger(deps.context.logger);
    this.#addresses = (deps.proxy && deps.file.read()) ?? NONE;
    this.#ranges = parseRanges(deps.range || this.#addresses.range);
  }

  /** Services have addresses: their ports need not be published by pods. */
  get hasAddresses(): boolean {
    return this.#deps.proxy !== undefined;
  }

  /** There is something to do even without an object: something was left by an earlier process, or there is a DNS server. */
  get hasRules(): boolean {
    return this.hasDns || (this.#deps.proxy?.hasRules ?? false);
  }

  /** Calls back when {@link update} would do something else. */
  onChange(listener: () => void): void {
    const { hosts, proxy } = this.#deps;
    this.#onChange = listener;
    hosts.onChange(listener);
    proxy?.onChange(() => {
      if (this.#addresses.range !== "") this.#reportRange(this.#services, proxy);
      // A port that is held may be free by now, or a free one held.
      const { ports } = this.#addresses;
      const lost = describeHeld(Object.keys(ports), (protocol, port) => proxy.holderOf(protocol, port));
      if (lost !== undefined || this.#problems.size > 0 || proxy.problem !== this.#shownProblem) listener();
    });
  }

  /**
   * The Service that has a port of the machine; undefined for none.
   * @param andPrograms or the program that listens on it
   */
  holderOfPort(protocol: string, port: number, andPrograms: boolean): string | undefined {
    const service = this.#addresses.ports[toPortKey(protocol, port)];
    if (service !== undefined) return `Service "${service}"`;
    return andPrograms ? this.#deps.portHolder(protocol, port) : undefined;
  }

  stop(): void {
    this.#deps.hosts.stop();
    this.#deps.proxy?.stop();
  }

  /** Resolves when no connection to an address leaves the machine: it is refused, at least. */
  async opened(): Promise<void> {
    await this.#opening;
  }

  /** Whether rules by which connections reach a pod with this status are about to be written. */
  isAwaited({ podIPs = [] }: PodStatus): boolean {
    return this.#applying !== undefined && this.#leadsTo(podIPs.map(({ ip = "" }) => ip));
  }

  #leadsTo(ips: readonly string[]): boolean {
    const { services } = this.#applied;
    return services.some(({ ports }) => ports.some(({ endpoints }) => endpoints.some(({ ip }) => ips.includes(ip))));
  }

  /** Resolves when no rule leads to these addresses of a pod that is about to end, and at the latest after a second. */
  async left(ips: readonly string[]): Promise<void> {
    const { clock } = this.#context;
    if (!this.#leadsTo(ips)) return;
    const endMs = clock.monotonicMs() + MAX_LEAVING_MS;
    while ((this.#leadsTo(ips) || this.#applying) && clock.monotonicMs() < endMs) await clock.sleep(LEAVING_PAUSE_MS);
  }

  /** Lines of the hosts file of a pod. Called when it is written. */
  aliasesFor(pod: Pod): readonly HostAlias[] {
    return this.#deps.hosts.aliasesFor(pod);
  }

  /** For a DNS server; undefined while they are not known. */
  dnsRecords(): DnsRecords | undefined {
    return this.#deps.hosts.dnsRecords();
  }

  get hasDns(): boolean {
    return this.#deps.hasDns === true;
  }

  /** The address of the DNS server; undefined where there is none. */
  get dnsAddress(): string | undefined {
    return this.hasDns ? this.#addresses.clusterIps[serviceName(DNS_SERVICE)]?.split(",")[0] : undefined;
  }

  /** Variables of the Services that a pod sees. A pod does not start again for another Service. */
  environmentOf({ metadata, spec }: Pod): ReadonlyMap<string, string> {
    const services = this.#services.map(({ metadata: { name = "", namespace = "default" }, spec: { ports = [] } }) => {
      return { name, namespace, clusterIP: this.#addresses.clusterIps[`${namespace}/${name}`]?.split(",")[0], ports };
    });
    return computeServiceEnvironment(services, metadata.namespace ?? "default", spec.enableServiceLinks ?? true);
  }

  /** The Endpoints and EndpointSlices of all Services. */
  derivedObjects(): WorkloadObject[] {
    const { name: nodeName, startedAt } = this.#context.node;
    const pods = this.#behind;
    return this.#endpoints
      .update(
        this.#services,
        [pods, this.#ranges],
        (service) => [service, pods.endpointsOf(service), pods.selectedBy(service), this.#ranges],
        (service) => toEndpointObjects(service, pods, { nodeName, startedAt, families: this.#familiesOf(service) }),
      )
      .flat();
  }

  /** Gives Services their addresses before pods that may need them start. */
  setServices(submitted: readonly Service[]): void {
    const services = this.#withOwn(submitted);
    this.#services = services;
    const { proxy } = this.#deps;
    if (!proxy) return;
    if (services.some(isPublished)) {
      // Pods tell later which ports of the machine are held.
      this.#allocatedFor = undefined;
      const { clusterIps } = this.#allocateFrom(services, proxy, () => undefined).addresses;
      this.#keep({ ...this.#addresses, range: this.#rangeFor(services, proxy), clusterIps });
    } else this.#allocate(services, [], proxy);
    // Rules of an earlier process lead to pods that are not observed yet.
    if (this.#applied.services.length === 0 && !proxy.hasRules) this.#apply(this.#toRuled(services, NO_PODS), proxy);
  }

  #apply(services: readonly RuledService[], proxy: ServiceProxy): void {
    const { clock, logger } = this.#context;
    const { range } = this.#addresses;
    const before = this.#applied;
    if (range === before.range && isSameList(services, before.services)) return;
    this.#applied = { services, range };
    proxy.apply(services, range);
    const applying = proxy.settled().then(() => {
      if (this.#applying === applying) this.#applying = undefined;
    });
    this.#applying = applying;
    if (before.services.length > 0 || proxy.hasRules || proxy.problem !== undefined) return;
    this.#opening = Promise.race([applying, clock.sleep(MAX_OPENING_MS)]).then(() => {
      if (this.#applying) {
        const text = `the kernel does not have the rules of Services after ${MAX_OPENING_MS / 1000} s`;
        logger.warn(`Pods start although ${text}: what they send to addresses of Services may leave the machine`);
      }
      this.#opening = undefined;
      this.#onChange();
    });
  }

  /**
   * Brings addresses, rules and hosts files in line.
   * @param pods all pods with their statuses, as the engine was seen
   * @param endpoints that clients and manifests wrote
   */
  update(
    submitted: readonly Service[],
    pods: readonly Pod[],
    endpoints: readonly (Endpoints | EndpointSlice)[] = [],
  ): void {
    const { proxy, hosts } = this.#deps;
    const services = this.#withOwn(submitted);
    this.#services = services;
    if (pods !== this.#pods || !isSameList(endpoints, this.#written))
      this.#behind = new ServicePods(pods, endpoints, this.#behind);
    this.#pods = pods;
    this.#written = endpoints;
    if (!proxy) return hosts.update(services, pods, {}, this.#behind);
    this.#allocate(services, pods, proxy);
    this.#apply(this.#toRuled(services, this.#behind), proxy);
    this.#shownProblem = proxy.problem;
    if (this.#opening) return;
    const clusterIps = proxy.problem === undefined ? this.#addresses.clusterIps : {};
    hosts.update(services, pods, clusterIps, this.#behind);
  }

  /** With that of the DNS server, unless a manifest has one of this name. */
  #withOwn(services: readonly Service[]): readonly Service[] {
    const name = serviceName(DNS_SERVICE);
    // Pods that started while there was a server ask it first: they are to be refused at once.
    const isAsked = this.hasDns || this.#addresses.clusterIps[name] !== undefined;
    return isAsked && !services.some((it) => serviceName(it) === name) ? [...services, DNS_SERVICE] : services;
  }

  /** All on which {@link specOf} and {@link statusOf} depend besides the Service. */
  get inputs(): readonly unknown[] {
    return [this.#addresses, this.#problems];
  }

  /** Fields of a Service that it was given; undefined where it was given none. */
  specOf(service: Service): object | undefined {
    const { clusterIps, nodePorts } = this.#addresses;
    const name = serviceName(service);
    const clusterIPs = clusterIps[name]?.split(",");
    const families = familyFields(service, this.#familiesOf(service));
    if (service.spec.type === "ExternalName") return undefined;
    if (!hasClusterIp(service)) return families.ipFamilies && families;
    if (this.hasAddresses && clusterIPs === undefined) return undefined;
    const isNodePort = service.spec.type === "NodePort";
    const ports = service.spec.ports?.map((port) => {
      const chosen = this.hasAddresses ? nodePorts[portOf(name, port)] : isNodePort && nodePortOf(service, port);
      const nodePort = port.nodePort || chosen;
      return { ...port, ...(nodePort && { nodePort }) };
    });
    return { ...(clusterIPs && { clusterIP: clusterIPs[0], clusterIPs, ...families }), ...(ports && { ports }) };
  }

  #familiesOf(service: Service): readonly IpFamily[] {
    return familiesOf(service, this.#ranges).families;
  }

  /**
   * The spec of a Service that a client writes, with the address and the node ports that it lacks. They are not kept: the
   * written object is what takes them.
   * @param others all other Services of the node
   */
  assign(service: Service, others: () => readonly Service[]): ServiceAssignment {
    const { proxy } = this.#deps;
    if (!proxy) return { spec: { ...service.spec, ...this.specOf(service) }, problems: [] };
    const known = { ...this.#addresses, range: this.#rangeFor([service], proxy) };
    const holderOf = this.#holderIn(this.#pods, proxy);
    const isKept = wantedIps(service).join() === known.clusterIps[serviceName(service)] && !isPublished(service);
    // No other Service has its address, and it asks for no port.
    const taken = numbersOf(isKept ? [] : this.#withOwn(others()), known, this.#deps.nodePortRange);
    return assignService(service, taken, holderOf, this.#context.node.rootHash);
  }

  /** @returns undefined where Services have no addresses */
  statusOf(service: Service): object | undefined {
    if (!this.hasAddresses) return undefined;
    const name = serviceName(service);
    const problem = this.#problems.get(name);
    const isPublished = service.spec.type === "LoadBalancer" && Object.values(this.#addresses.ports).includes(name);
    const condition = problem && { type: problem.reason, status: "True", ...problem, lastTransitionTime: null };
    return {
      ...(condition && { conditions: [condition] }),
      loadBalancer: isPublished ? { ingress: [{ ip: this.#context.node.ip, ipMode: "VIP" }] } : {},
    };
  }

  #allocate(services: readonly Service[], pods: readonly Pod[], proxy: ServiceProxy): void {
    const asked = this.#asked.update(services, [], (service) => [service], askedBy);
    if (this.#allocatedFor && isSameList(asked, this.#allocatedFor)) return;
    const { addresses, problems } = this.#allocateFrom(services, proxy, this.#holderIn(pods, proxy));
    this.#problems = problems;
    this.#reportProblems(services);
    this.#keep(addresses);
    this.#reportRange(services, proxy);
    this.#allocatedFor = services.some(isPublished) || addresses.range === "" ? undefined : asked;
  }

  #holderIn(pods: readonly Pod[], proxy: ServiceProxy): PortHolder {
    const { portHolder } = this.#deps;
    return (protocol, port, isOwn) =>
      proxy.holderOf(protocol, port) ??
      hostPortHolder(pods, protocol, port) ??
      (isOwn ? undefined : portHolder(protocol, port));
  }

  #allocateFrom(services: readonly Service[], proxy: ServiceProxy, holderOf: PortHolder): ServiceAllocation {
    const known = { ...this.#addresses, range: this.#rangeFor(services, proxy) };
    return allocateServices(services, known, holderOf, this.#context.node.rootHash, this.#deps.nodePortRange);
  }

  #rangeFor(services: readonly Service[], proxy: ServiceProxy): string {
    const known = this.#deps.range || this.#addresses.range;
    // As long as the rules cannot be read, networks of others are not known.
    if (known !== "" || proxy.problem !== undefined || !services.some(hasClusterIp)) return known;
    // Kept before a client is given an address of it: another one may be free at the next start.
    const range = chooseRange(proxy.networks(true)) ?? "";
    this.#keep({ ...this.#addresses, range });
    return range;
  }

  #keep(addresses: ServiceAddresses): void {
    if (JSON.stringify(addresses) === JSON.stringify(this.#addresses)) return;
    if (addresses.range !== this.#addresses.range) this.#ranges = parseRanges(addresses.range);
    this.#addresses = addresses;
    this.#deps.file.write(addresses);
  }

  #reportRange(services: readonly Service[], proxy: ServiceProxy): void {
    const { range } = this.#addresses;
    const nowMs = this.#context.clock.monotonicMs();
    const isSeen = range === this.#seenRange && nowMs < this.#listNetworksMs;
    if (isSeen || proxy.problem !== undefined || !services.some(hasClusterIp)) return;
    this.#seenRange = range;
    this.#listNetworksMs = nowMs + LIST_NETWORKS_MS;
    if (range === "") {
      const text = "Services have no addresses: this machine has networks in all ranges that kubelet-ts knows";
      return this.#log.log("range", "warn", `${text}; name a free one with --service-cluster-ip-range`);
    }
    const [overlap] = overlapsOf(this.#ranges, proxy.networks(false));
    if (!overlap) return;
    const text = `Cluster IPs are of ${range}, and this machine now has the network ${overlap.text}`;
    const fix = "its addresses that Services have are not reached: set another --service-cluster-ip-range and restart";
    this.#log.log("range", "warn", `${text}: ${fix}`);
  }

  #reportProblems(services: readonly Service[]): void {
    const { recorder, node } = this.#context;
    for (const service of services) {
      const { name = "", namespace = "default" } = service.metadata;
      const { uid = objectUid(node.name, "Service", namespace, name) } = service.metadata;
      const key = `service ${namespace}/${name}`;
      const problem = this.#problems.get(serviceName(service));
      if (!problem) this.#log.resolve(key, `Service "${namespace}/${name}" has all that it asks for`);
      else if (this.#log.note(key, problem.message)) {
        recorder.record({ kind: "Service", apiVersion: "v1", name, namespace, uid }, { type: "Warning", ...problem });
      }
    }
  }

  #toRuled(services: readonly Service[], pods: ServicePods): readonly RuledService[] {
    const addresses = this.#addresses;
    return this.#ruled
      .update(
        services,
        [addresses, pods],
        (service) => [service, addresses, pods.behind(service)],
        (service) => {
          const ips = isOfOtherProxy(service) ? [] : addresses.clusterIps[serviceName(service)]?.split(",");
          return (ips ?? []).map((ip) => toRuled(service, ip, addresses, pods.behind(service)));
        },
      )
      .flat();
  }
}

function toRuled(
  service: Service,
  clusterIp: string,
  addresses: ServiceAddresses,
  behind: readonly ServiceBackend[],
): RuledService {
  const { sessionAffinity, sessionAffinityConfig, externalIPs = [], ports = [] } = service.spec;
  const family = familyOf(clusterIp)!;
  const { timeoutSeconds = AFFINITY_SECONDS } = sessionAffinityConfig?.clientIP ?? {};
  return {
    name: serviceName(service),
    clusterIp,
    externalIps: externalIPs.flatMap((ip) => (familyOf(ip) === family ? canonicalIp(ip)! : [])),
    ...(sessionAffinity === "ClientIP" && { affinitySeconds: timeoutSeconds ?? AFFINITY_SECONDS }),
    ports: ports.map((port) => ({
      name: port.name ?? "",
      protocol: port.protocol,
      port: port.port,
      published: publishedPortsOf(service, port, addresses).map((number) => ({
        port: number,
        sources: clientRanges(service, family),
      })),
      endpoints: endpointsOf(port, behind, family),
    })),
  };
}

/** The fields on which its addresses depend. */
function askedBy(service: Service): string {
  const { type, clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy } = service.spec;
  return JSON.stringify([serviceName(service), type, clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy]);
}

const isPublished = ({ spec: { type } }: Service) => type === "NodePort" || type === "LoadBalancer";

/** Ranges that a Service names for its clients; undefined: it names none. The text goes into a rule: only ranges pass. */
function clientRanges(
  { spec: { type, loadBalancerSourceRanges = [] } }: Service,
  family: IpFamily,
): string[] | undefined {
  if (type !== "LoadBalancer" || loadBalancerSourceRanges.length === 0) return undefined;
  const ranges = loadBalancerSourceRanges.flatMap((text) => rangeOfAddress(text.trim()) ?? []);
  return ranges.filter((range) => range.family === family).map(({ text }) => text);
}

/** The pod that has a port of the machine by its `hostPort`. */
function hostPortHolder(pods: readonly Pod[], protocol: string, port: number): string | undefined {
  const holder = pods.find(
    (pod) => !isFinished(pod) && computeHostPorts(pod).some((it) => it.hostPort === port && it.protocol === protocol),
  );
  return holder && `the hostPort of pod "${holder.metadata.namespace}/${holder.metadata.name}"`;
}
