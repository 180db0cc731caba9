import type { HostAlias } from "../base/api/pod.ts";

const FIXED_LINES = [
  "127.0.0.1\tlocalhost",
  "::1\tlocalhost ip6-localhost ip6-loopback",
  "fe00::0\tip6-localnet",
  "fe00::0\tip6-mcastprefix",
  "fe00::1\tip6-allnodes",
  "fe00::2\tip6-allrouters",
];

/** Names of one pod, from `computePodHostname`. */
export interface HostsFileNames {
  hostname: string;
  /** "" when the pod has no subdomain. */
  domain: string;
}

/** /etc/hosts of a pod with its own network, byte for byte as the kubelet writes it. */
export function formatManagedHosts(
  podIps: readonly string[],
  { hostname, domain }: HostsFileNames,
  aliases: readonly HostAlias[] = [],
  services: readonly HostAlias[] = [],
): string {
  const names = domain ? `${hostname}.${domain}\t${hostname}` : hostname;
  const lines = ["# Kubernetes-managed hosts file.", ...FIXED_LINES, ...podIps.map((ip) => `${ip}\t${names}`)];
  return `${lines.join("\n")}\n${formatAliases(aliases)}${formatServices(services)}`;
}

/** /etc/hosts of a pod with host networking: the node's own, and the aliases. */
export function formatHostNetworkHosts(
  nodeHosts: string,
  aliases: readonly HostAlias[] = [],
  services: readonly HostAlias[] = [],
): string {
  return `# Kubernetes-managed hosts file (host network).\n${nodeHosts}${formatAliases(aliases)}${formatServices(services)}`;
}

function formatAliases(aliases: readonly HostAlias[]): string {
  if (aliases.length === 0) return "";
  const lines = aliases.map(({ ip = "", hostnames = [] }) => `${ip}\t${hostnames.join("\t")}\n`);
  return `\n# Entries added by HostAliases.\n${lines.join("")}`;
}

/** Names that a cluster's DNS would answer. */
function formatServices(services: readonly HostAlias[]): string {
  if (services.length === 0) return "";
  const lines = services.map(({ ip = "", hostnames = [] }) => `${ip}\t${hostnames.join("\t")}\n`);
  return `\n# Names of Services.\n${lines.join("")}`;
}
