import type { HostAlias, Pod } from "../base/api/pod.ts";
import type { Service, ServicePort } from "../base/api/service.ts";
import { namespaceOf } from "../base/model/pod.ts";
import type { PodEvent } from "../base/model/pod-event.ts";
import { hostNameIn, ipsOf, isFinished, type ServiceBackend, targetPortOf } from "./service-endpoints.ts";

/** Names of one pod in its /etc/hosts. */
export interface HostsFileNames {
  /** Short name, at most 63 characters: the last column of the pod's line. */
  hostname: string;
  /** `<subdomain>.<namespace>.svc.<cluster domain>`; "" without a subdomain. */
  domain: string;
}

interface PodHostname extends HostsFileNames {
  /** Output of `hostname` inside the pod: the short name, or the FQDN with `setHostnameAsFQDN`. */
  kernelHostname: string;
}

/** The kernel's limit for a name as seen by uname(2), without the closing NUL. */
const KERNEL_HOSTNAME_LIMIT = 64;
const SHORT_HOSTNAME_LIMIT = 63;

/** The domain of Services. @param clusterDomain `--cluster-domain`; "" means cluster.local */
export const domainOf = (clusterDomain: string): string => clusterDomain || "cluster.local";

/** The names of a pod with its own network. Source: `GeneratePodHostNameAndDomain`, `GetNodenameForKernel`. */
export function computePodHostname(pod: Pod, clusterDomain: string): PodHostname | { problem: string } {
  const { hostname: wanted, subdomain, setHostnameAsFQDN, hostnameOverride } = pod.spec;
  const name = pod.metadata.name ?? "";
  if (hostnameOverride) return { hostname: hostnameOverride, domain: "", kernelHostname: hostnameOverride };
  const hostname = truncateHostname(wanted || name);
  if (hostname === "") return { problem: `hostname for pod "${name}" was invalid: "${wanted || name}"` };
  const domain = subdomain ? `${subdomain}.${pod.metadata.namespace ?? "default"}.svc.${domainOf(clusterDomain)}` : "";
  if (!domain || !setHostnameAsFQDN) return { hostname, domain, kernelHostname: hostname };
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > KERNEL_HOSTNAME_LIMIT) {
    return {
      problem: `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long (${KERNEL_HOSTNAME_LIMIT} characters is the max, ${fqdn.length} characters requested)`,
    };
  }
  return { hostname, domain, kernelHostname: fqdn };
}

/** A name that was cut may not end in `-` or `.`. */
function truncateHostname(name: string): string {
  return name.length <= SHORT_HOSTNAME_LIMIT ? name : name.slice(0, SHORT_HOSTNAME_LIMIT).replace(/[-.]+$/, "");
}

const FIXED_LINES = [
  "127.0.0.1\tlocalhost",
  "::1\tlocalhost ip6-localhost ip6-loopback",
  "fe00::0\tip6-localnet",
  "fe00::0\tip6-mcastprefix",
  "fe00::1\tip6-allnodes",
  "fe00::2\tip6-allrouters",
];

/** /etc/hosts of a pod with its own network, byte for byte as the kubelet writes it. */
export function formatManagedHosts(
  podIps: readonly string[],
  { hostname, domain }: HostsFileNames,
  aliases: readonly HostAlias[] = [],
  services: readonly HostAlias[] = [],
): string {
  const names = domain ? `${hostname}.${domain}\t${hostname}` : hostname;
  const lines = ["# Kubernetes-managed hosts file.", ...FIXED_LINES, ...podIps.map((ip) => `${ip}\t${names}`)];
  return `${lines.join("\n")}\n${formatAdded(aliases, services)}`;
}

/** /etc/hosts of a pod with host networking: the node's own, and the aliases. */
export function formatHostNetworkHosts(
  nodeHosts: string,
  aliases: readonly HostAlias[] = [],
  services: readonly HostAlias[] = [],
): string {
  return `# Kubernetes-managed hosts file (host network).\n${nodeHosts}${formatAdded(aliases, services)}`;
}

/** @param services names that a cluster's DNS would answer */
function formatAdded(aliases: readonly HostAlias[], services: readonly HostAlias[]): string {
  const block = (title: string, entries: readonly HostAlias[]) => {
    const lines = entries.map(({ ip = "", hostnames = [] }) => `${ip}\t${hostnames.join("\t")}\n`);
    return lines.length === 0 ? "" : `\n# ${title}.\n${lines.join("")}`;
  };
  return block("Entries added by HostAliases", aliases) + block("Names of Services", services);
}

/** Contents of a resolv.conf. */
export interface DnsConfig {
  nameservers: string[];
  searches: string[];
  /** e.g. `ndots:5`, `edns0`. */
  options: string[];
}

export interface DnsFacts {
  /** `--cluster-dns`; empty when there is none. */
  clusterDns: readonly string[];
  /** Address of this node's DNS server for Services, which counts without `--cluster-dns`. Absent: it has none. */
  ownDns?: string | undefined;
  /** `--cluster-domain`; "" when there is none. */
  clusterDomain: string;
  /** Text of the file `--resolv-conf` names; undefined when the flag is "" (pods then ask themselves only). */
  hostResolvConf: string | undefined;
  /** Decides between `127.0.0.1` and `::1` where there is no resolv.conf. */
  nodeIp: string;
}

/** glibc's own limits: more is ignored by the resolver. Source: core/v1 validation and the kubelet's `dns` package. */
const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_LINE_LENGTH = 2048;

/**
 * With host networking `ClusterFirst` means `Default`, and without a DNS server of Services, with a warning only for
 * `ClusterFirstWithHostNet` (`ManifestEvents` warns where a manifest writes out the default). Source: `GetPodDNS`.
 */
export function computeDnsConfig(pod: Pod, facts: DnsFacts): { dns: DnsConfig; warnings: PodEvent[] } {
  const warnings: PodEvent[] = [];
  let dns = baseConfig(pod, facts, warnings);
  const extra = pod.spec.dnsConfig;
  if (extra) {
    dns = {
      nameservers: unique([...dns.nameservers, ...(extra.nameservers ?? [])]),
      searches: unique([...dns.searches, ...(extra.searches ?? [])]),
      options: mergeOptions(dns.options, extra.options ?? []),
    };
  }
  return { dns: fitLimits(dns, warnings), warnings };
}

function baseConfig(pod: Pod, facts: DnsFacts, warnings: PodEvent[]): DnsConfig {
  const policy = pod.spec.dnsPolicy;
  if (policy === "None") return { nameservers: [], searches: [], options: [] };
  const host =
    facts.hostResolvConf === undefined
      ? { nameservers: [facts.nodeIp.includes(":") ? "::1" : "127.0.0.1"], searches: ["."], options: [] }
      : parseResolvConf(facts.hostResolvConf);
  const wantsCluster = policy === "ClusterFirstWithHostNet" || (policy === "ClusterFirst" && !pod.spec.hostNetwork);
  if (!wantsCluster) return host;
  if (facts.clusterDns.length === 0 && facts.ownDns === undefined) {
    if (policy === "ClusterFirstWithHostNet") warnings.push(missingClusterDns(pod.metadata));
    return host;
  }
  const namespace = pod.metadata.namespace ?? "default";
  const isOwn = facts.clusterDns.length === 0;
  const domain = isOwn ? domainOf(facts.clusterDomain) : facts.clusterDomain;
  // Names outside are found even while the own server is not there.
  const own = [facts.ownDns ?? "", ...host.nameservers].slice(0, MAX_NAMESERVERS);
  const hostSearches = facts.hostResolvConf === undefined ? [] : host.searches;
  const clusterSearches = domain ? [`${namespace}.svc.${domain}`, `svc.${domain}`, domain] : [];
  return {
    nameservers: isOwn ? own : [...facts.clusterDns],
    searches: domain ? unique([...clusterSearches, ...hostSearches]) : hostSearches,
    options: ["ndots:5"],
  };
}

/** For pods whose manifest asks for the DNS of a cluster where there is none. */
export function missingClusterDns({ name, namespace = "default", uid }: Pod["metadata"]): PodEvent {
  return {
    type: "Warning",
    reason: "MissingClusterDNS",
    message: `pod: "${name}_${namespace}(${uid})". kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`,
  };
}

/** Reads a resolv.conf; of several `search` lines the last counts. Source: upstream's `parseResolvConf`. */
export function parseResolvConf(text: string): DnsConfig {
  const dns: DnsConfig = { nameservers: [], searches: [], options: [] };
  for (const line of text.split("\n")) {
    const [keyword = "", ...words] = line.trim().split(/\s+/);
    if (keyword === "nameserver" && words[0]) dns.nameservers.push(words[0]);
    else if (keyword === "search") dns.searches = words.map((word) => (word === "." ? word : word.replace(/\.$/, "")));
    else if (keyword === "options") dns.options = mergeOptions(dns.options, words.map(toOption));
  }
  return dns;
}

/** The text of a resolv.conf; "" when it is empty, and then the engine's file is left unchanged. */
export function formatResolvConf({ nameservers, searches, options }: DnsConfig): string {
  const lines = nameservers.map((nameserver) => `nameserver ${nameserver}`);
  if (searches.length > 0) lines.push(`search ${searches.join(" ")}`);
  if (options.length > 0) lines.push(`options ${options.join(" ")}`);
  return lines.map((line) => `${line}\n`).join("");
}

interface DnsOption {
  name?: string | undefined;
  value?: string | undefined;
}

function toOption(text: string): DnsOption {
  const colon = text.indexOf(":");
  return colon < 0 ? { name: text } : { name: text.slice(0, colon), value: text.slice(colon + 1) };
}

/** A later option of the same name takes the place of the earlier one. */
function mergeOptions(options: readonly string[], more: readonly DnsOption[]): string[] {
  const merged = new Map<string, string>();
  for (const { name = "", value = "" } of [...options.map(toOption), ...more]) merged.set(name, value);
  return [...merged].map(([name, value]) => (value === "" ? name : `${name}:${value}`));
}

function fitLimits(dns: DnsConfig, warnings: PodEvent[]): DnsConfig {
  let searches = dns.searches.slice(0, MAX_SEARCHES);
  while (searches.join(" ").length > MAX_SEARCH_LINE_LENGTH) searches = searches.slice(0, -1);
  if (searches.length < dns.searches.length) {
    warnings.push(overLimit("Search Line limits were exceeded, some search paths", "search", searches));
  }
  const nameservers = dns.nameservers.slice(0, MAX_NAMESERVERS);
  if (nameservers.length < dns.nameservers.length) {
    warnings.push(overLimit("Nameserver limits were exceeded, some nameservers", "nameserver", nameservers));
  }
  return { nameservers, searches, options: dns.options };
}

const overLimit = (what: string, line: string, applied: readonly string[]): PodEvent => ({
  type: "Warning",
  reason: "DNSConfigForming",
  message: `${what} have been omitted, the applied ${line} line is: ${applied.join(" ")}`,
});

const unique = (values: readonly string[]) => [...new Set(values)];

/** Where the name of a Service leads: to its cluster IP or the addresses of its external name, or else to what is behind it. */
export interface ServiceTarget {
  service: Service;
  /** Those that clients are sent to. */
  backends: readonly ServiceBackend[];
  fixed: readonly string[];
  /** The name that an ExternalName leads to; "" when it leads back to itself. */
  alias?: string | undefined;
}

/** Two files of dnsmasq. */
export interface DnsRecords {
  /** Lines of a hosts file, with full names: A, AAAA and PTR records. */
  hosts: string;
  /** Lines of a configuration: SRV and CNAME records. */
  config: string;
}

/** More is left out: an object of Kubernetes has at most 1 MiB. */
const MAX_TEXT_BYTES = 450 * 1024;

/**
 * The records of a cluster's DNS. Pure. Source: the specification "Kubernetes DNS-Based Service Discovery".
 * @param pods all of them, with their statuses
 * @param clusterDomain never ""
 */
export function computeDnsRecords(
  targets: readonly ServiceTarget[],
  pods: readonly Pod[],
  clusterDomain: string,
): DnsRecords {
  const hosts = new Set<string>();
  const config = new Set<string>();
  for (const { service, backends, fixed, alias } of targets) {
    const { name = "" } = service.metadata;
    const domain = `${name}.${namespaceOf(service)}.svc.${clusterDomain}`;
    if (!isDnsText(domain)) continue;
    if (alias !== undefined) {
      if (!isDnsText(alias)) continue;
      config.add(`cname=${domain},${alias}`);
      // dnsmasq adds addresses to the answer that it has itself.
      if (!alias.endsWith(`.svc.${clusterDomain}`)) for (const ip of fixed) hosts.add(`${ip} ${alias}`);
      continue;
    }
    const ports = (service.spec.ports ?? []).filter((port) => port.name && isDnsText(port.name));
    const serve = (port: ServicePort, target: string, number: number) =>
      config.add(`srv-host=_${port.name}._${port.protocol.toLowerCase()}.${domain},${target},${number}`);
    for (const ip of fixed) hosts.add(`${ip} ${domain}`);
    if (fixed.length > 0) for (const port of ports) serve(port, domain, port.port);
    for (const backend of backends) {
      const ips = ipsOf(backend);
      const hostname = hostNameIn(service, backend);
      const ownName = hostname !== undefined && isDnsText(hostname) ? hostname : undefined;
      if (fixed.length > 0 && ownName === undefined) continue;
      const own = `${ownName ?? toLabel(ips[0] ?? "")}.${domain}`;
      for (const ip of ips) hosts.add(`${ip} ${own}`);
      if (fixed.length > 0) continue;
      for (const ip of ips) hosts.add(`${ip} ${domain}`);
      for (const port of ports) {
        const number = targetPortOf(port, backend);
        if (number !== undefined) serve(port, own, number);
      }
    }
  }
  const ofPods = pods.flatMap((pod) =>
    isFinished(pod) ? [] : ipsOf(pod).map((ip) => `${ip} ${toLabel(ip)}.${namespaceOf(pod)}.pod.${clusterDomain}`),
  );
  // PTR records have the first of several names.
  return { hosts: toText(hosts, new Set(ofPods)), config: toText(config) };
}

const toLabel = (ip: string): string => ip.replace(/[.:]/g, "-");

/** Nothing of a manifest may write another line, or another field of one. */
const isDnsText = (text: string) => /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/i.test(text) && text.length <= 253;

/** Sorted, so that the text changes with the records only. */
function toText(...groups: ReadonlySet<string>[]): string {
  let text = "";
  for (const line of groups.flatMap((lines) => [...lines].sort())) {
    if (text.length + line.length >= MAX_TEXT_BYTES) break;
    text += `${line}\n`;
  }
  return text;
}
