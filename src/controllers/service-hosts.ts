import type { HostAlias, Pod } from "../base/api/pod.ts";
import type { Service } from "../base/api/service.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { isSameList, MadeOfEach, memoized } from "../base/model/memoized.ts";
import { namespaceOf, type PodUID } from "../base/model/pod.ts";
import { messageOf } from "../base/text/error-message.ts";
import { computeDnsRecords, type DnsRecords, domainOf, type ServiceTarget } from "../plan/pod-dns.ts";
import { type ServiceAddresses, serviceName } from "../plan/service-addresses.ts";
import { hostNameIn, ipsOf, ServicePods } from "../plan/service-endpoints.ts";

/** Writes the hosts files of running pods again, with the lines of {@link ServiceHosts.aliasesFor}. */
type RewriteHosts = (pods: readonly Pod[]) => void;

/**
 * Names of Services in the hosts files of pods. The files stay when this process ends, and change in place: neither a
 * new Service nor a pod with a new address restarts anything.
 */
export class ServiceHosts {
  readonly #clusterDomain: string;
  readonly #externalNames: ExternalNames;
  readonly #made = new MadeOfEach<Service, ServiceTarget>(serviceName);
  #targets: readonly ServiceTarget[] | undefined;
  #pods: readonly Pod[] = [];
  #namesIn: (namespace: string) => readonly HostAlias[] = () => [];
  readonly #written = new Map<PodUID, string>();
  #rewrite: RewriteHosts = () => {};

  /** @param clusterDomain `--cluster-domain`; "" means cluster.local */
  constructor(clusterDomain: string, externalNames: ExternalNames) {
    this.#clusterDomain = domainOf(clusterDomain);
    this.#externalNames = externalNames;
  }

  /** Calls back with the running pods whose hosts files lack a line, or have one too many. */
  onStale(rewrite: RewriteHosts): void {
    this.#rewrite = rewrite;
  }

  /** Calls back when {@link update} would find other addresses. */
  onChange(listener: () => void): void {
    this.#externalNames.onChange = listener;
  }

  stop(): void {
    this.#externalNames.stop();
  }

  /** For a DNS server; undefined while they are not known. */
  dnsRecords(): DnsRecords | undefined {
    return this.#targets && computeDnsRecords(this.#targets, this.#pods, this.#clusterDomain);
  }

  /** The lines a pod's hosts file has now. Called when it is written. */
  aliasesFor(pod: Pod): readonly HostAlias[] {
    const aliases = this.#linesFor(pod);
    this.#written.set(pod.metadata.uid ?? "", textOf(aliases));
    return aliases;
  }

  /**
   * Brings the hosts files of all running pods in line.
   * @param pods all pods with their statuses, as the engine was seen
   * @param clusterIps of the Services that have one, which their names then lead to
   * @param behind the Services
   */
  update(
    services: readonly Service[],
    pods: readonly Pod[],
    clusterIps: ServiceAddresses["clusterIps"] = {},
    behind = new ServicePods(pods),
  ): void {
    const external = this.#externalNames;
    const aliases = services.filter(({ spec }) => spec.type === "ExternalName");
    const leads = new Map(aliases.map((it) => [it, resolveExternal(it, services, this.#clusterDomain)]));
    external.setNames(new Set([...leads.values()].flatMap((to) => (typeof to === "string" && to !== "" ? to : []))));
    if (services.length === 0 && this.#written.size === 0) return;
    // Pods that have the names already keep them.
    if (external.isPending) return;
    const inputsOf = (service: Service) => {
      const to = leads.get(service) ?? service;
      if (typeof to === "string") return [service, to, external.addressesOf(to)];
      return [service, clusterIps[serviceName(to)], behind.behind(to)];
    };
    // An alias is resolved each time.
    const context = [clusterIps, behind, aliases.length > 0 && leads];
    const targets = this.#made.update(services, context, inputsOf, (service): ServiceTarget => {
      const alias = leads.has(service) ? externalNameOf(service) : undefined;
      const to = leads.get(service) ?? service;
      if (typeof to === "string") return { service, backends: [], fixed: external.addressesOf(to), alias: to && alias };
      const fixed = clusterIps[serviceName(to)]?.split(",") ?? [];
      const backends = behind.behind(to);
      // Behind an address only what has a name of its own has a record.
      const named = fixed.length === 0 ? backends : backends.filter((it) => hostNameIn(service, it) !== undefined);
      return { service, backends: named, fixed, alias };
    });
    this.#pods = pods;
    const before = this.#targets;
    this.#targets = targets;
    if (before?.length !== targets.length || !targets.every((target, index) => hasSameNames(target, before[index]!))) {
      const byNamespace = new Map<string, readonly HostAlias[]>();
      this.#namesIn = (namespace) =>
        byNamespace.getOrInsertComputed(namespace, () => computeServiceNames(targets, namespace, this.#clusterDomain));
    }
    const uids = new Set(pods.map(({ metadata }) => metadata.uid ?? ""));
    for (const uid of this.#written.keys()) if (!uids.has(uid)) this.#written.delete(uid);
    const running = pods.filter((pod) => pod.status?.phase === "Running" && ipsOf(pod).length > 0);
    const isStale = (pod: Pod) => this.#written.get(pod.metadata.uid ?? "") !== textOf(this.#linesFor(pod));
    const stale = running.filter(isStale);
    if (stale.length > 0) this.#rewrite(stale);
  }

  #linesFor(pod: Pod): readonly HostAlias[] {
    return seesServices(pod) ? this.#namesIn(pod.metadata.namespace ?? "default") : [];
  }
}

/** Whether two targets have the same lines: another port of a Service changes none. */
const hasSameNames = (a: ServiceTarget, b: ServiceTarget): boolean =>
  a === b ||
  (serviceName(a.service) === serviceName(b.service) &&
    isSameList(a.fixed, b.fixed) &&
    isSameList(a.backends, b.backends));

/** All pods of a namespace have the same lines. */
const textOf = memoized((aliases: readonly HostAlias[]) => JSON.stringify(aliases));

/** Services of type ExternalName lead to the Services of these names, or to names outside. */
const MAX_ALIASES = 8;

/** The Service or the name outside that a Service leads to: itself, unless it has an external name. */
function resolveExternal(service: Service, services: readonly Service[], clusterDomain: string): Service | string {
  let current = service;
  for (let aliases = 0; aliases < MAX_ALIASES; aliases++) {
    if (current.spec.type !== "ExternalName") return current;
    const name = externalNameOf(current);
    const next = services.find((one) => `${one.metadata.name}.${namespaceOf(one)}.svc.${clusterDomain}` === name);
    if (!next) return name;
    current = next;
  }
  // They lead to each other.
  return "";
}

const externalNameOf = ({ spec }: Service) => (spec.externalName ?? "").toLowerCase().replace(/\.$/, "");

/**
 * Lines for the hosts file of pods in one namespace: the names by which cluster DNS answers for Services, and for pods
 * with a host name behind a Service that is their subdomain.
 */
function computeServiceNames(targets: readonly ServiceTarget[], namespace: string, clusterDomain: string): HostAlias[] {
  const byIp = new Map<string, Set<string>>();
  const add = (ip: string, names: readonly string[]) => {
    const known = byIp.getOrInsertComputed(ip, () => new Set());
    for (const name of names) known.add(name);
  };
  for (const { service, backends, fixed } of targets) {
    const { name = "" } = service.metadata;
    const names = namesOf(name, namespaceOf(service), namespace, clusterDomain);
    for (const ip of fixed) add(ip, names);
    for (const backend of backends) {
      const hostname = hostNameIn(service, backend);
      const own = hostname === undefined ? [] : names.map((full) => `${hostname}.${full}`);
      for (const ip of ipsOf(backend)) add(ip, fixed.length > 0 ? own : [...names, ...own]);
    }
  }
  return [...byIp].flatMap(([ip, names]) => toLines(ip, names));
}

/** The C library musl reads 511 bytes of a line, and what follows as a line of its own. Source: musl `name_from_hosts`. */
const MAX_LINE_BYTES = 500;

/** Lines of a hosts file that every resolver reads whole. */
function toLines(ip: string, names: Iterable<string>): HostAlias[] {
  const lines: { ip: string; hostnames: string[] }[] = [];
  let room = 0;
  for (const name of names) {
    room -= name.length + 1;
    if (room < 0) {
      lines.push({ ip, hostnames: [] });
      room = MAX_LINE_BYTES - ip.length - name.length - 1;
    }
    lines.at(-1)!.hostnames.push(name);
  }
  return lines;
}

function namesOf(name: string, namespace: string, from: string, clusterDomain: string): string[] {
  const qualified = `${name}.${namespace}`;
  const names = [qualified, `${qualified}.svc`, `${qualified}.svc.${clusterDomain}`];
  return namespace === from ? [name, ...names] : names;
}

/** Whether cluster names are for this pod: its DNS policy is one of those that ask the cluster first. */
const seesServices = ({ spec }: Pod): boolean =>
  spec.dnsPolicy === "ClusterFirst" || spec.dnsPolicy === "ClusterFirstWithHostNet";

interface ExternalNamesDeps {
  clock: Clock;
  logger: Logger;
  /** Addresses of a name for this machine. Throws when there are none. */
  lookUp(name: string): Promise<string[]>;
}

const REFRESH_MS = 60_000;
/** A machine that boots without a network has one soon. */
const RETRY_MS = 10_000;
/** A name server that does not respond delays the names of other Services by at most this time. */
const PATIENCE_MS = 5_000;
const MAX_NAMES = 200;
const MAX_ADDRESSES = 16;

interface Known {
  addresses: readonly string[];
  /** The last attempt failed; the addresses are those of the one before. */
  failure?: string;
}

/**
 * Addresses of the names that Services of type ExternalName lead to, looked up every minute. A look-up that fails changes
 * nothing. Without names there is no timer.
 */
export class ExternalNames {
  readonly #deps: ExternalNamesDeps;
  readonly #known = new Map<string, Known>();
  #names: ReadonlySet<string> = new Set();
  /** Called when an address has changed, or a name has had its first response. */
  onChange = () => {};
  #cancelTimer: (() => void) | undefined;
  readonly #inProgress = new Set<string>();

  constructor(deps: ExternalNamesDeps) {
    this.#deps = deps;
  }

  /** The names that are looked up from now on; those beyond 200 are left out. */
  setNames(wanted: ReadonlySet<string>): void {
    const names = new Set([...wanted].sort().slice(0, MAX_NAMES));
    if (names.size === this.#names.size && [...names].every((name) => this.#names.has(name))) return;
    this.#names = names;
    for (const name of this.#known.keys()) if (!names.has(name)) this.#known.delete(name);
    this.#lookUpAll();
  }

  /** Whether a name has had no response yet. */
  get isPending(): boolean {
    return [...this.#names].some((name) => !this.#known.has(name));
  }

  addressesOf(name: string): readonly string[] {
    return this.#known.get(name)?.addresses ?? [];
  }

  stop(): void {
    this.setNames(new Set());
  }

  #lookUpAll(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#names.size === 0) return;
    for (const name of this.#names) void this.#lookUp(name);
    this.#cancelTimer = this.#deps.clock.schedule(PATIENCE_MS, () => this.#giveUp());
  }

  async #lookUp(name: string): Promise<void> {
    if (this.#inProgress.has(name)) return;
    this.#inProgress.add(name);
    let found: Known;
    try {
      found = { addresses: [...new Set(await this.#deps.lookUp(name))].sort().slice(0, MAX_ADDRESSES) };
    } catch (error) {
      found = { addresses: this.addressesOf(name), failure: messageOf(error) };
    }
    this.#inProgress.delete(name);
    if (this.#names.has(name)) this.#learn(name, found);
  }

  #learn(name: string, found: Known): void {
    const before = this.#known.get(name);
    this.#known.set(name, found);
    if (found.failure !== undefined && before?.failure === undefined) {
      const kept = found.addresses.length > 0 ? ", its last addresses stay" : "";
      this.#deps.logger.warn(
        `Cannot look up "${name}", which a Service of type ExternalName leads to${kept}: ${found.failure}`,
      );
    }
    if (before && String(before.addresses) === String(found.addresses)) return;
    if (!this.isPending) this.onChange();
  }

  /** Names without a response count as looked up; late responses still count. */
  #giveUp(): void {
    const failure = `no response within ${PATIENCE_MS / 1000} s`;
    for (const name of this.#names) {
      if (!this.#known.has(name)) this.#learn(name, { addresses: [], failure });
    }
    const hasFailed = [...this.#known.values()].some((known) => known.failure !== undefined);
    const periodMs = hasFailed ? RETRY_MS : REFRESH_MS;
    this.#cancelTimer = this.#deps.clock.schedule(periodMs - PATIENCE_MS, () => this.#lookUpAll());
  }
}
