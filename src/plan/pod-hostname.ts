import type { HostAlias, Pod } from "../base/api/pod.ts";

interface PodHostname {
  /** Short name, at most 63 characters: the last column of the pod's line in /etc/hosts. */
  hostname: string;
  /** `<subdomain>.<namespace>.svc.<cluster domain>`; "" without a subdomain. */
  domain: string;
  /** Output of `hostname` inside the pod: the short name, or the FQDN with `setHostnameAsFQDN`. */
  kernelHostname: string;
}

/** The kernel's limit for a name as seen by uname(2), without the closing NUL. */
const KERNEL_HOSTNAME_LIMIT = 64;
const SHORT_HOSTNAME_LIMIT = 63;

/** The names of a pod with its own network. Source: `GeneratePodHostNameAndDomain`, `GetNodenameForKernel`. */
export function computePodHostname(pod: Pod, clusterDomain: string): PodHostname | { problem: string } {
  const { hostname: wanted, subdomain, setHostnameAsFQDN, hostnameOverride } = pod.spec;
  const name = pod.metadata.name ?? "";
  if (hostnameOverride) return { hostname: hostnameOverride, domain: "", kernelHostname: hostnameOverride };
  const hostname = truncateHostname(wanted || name);
  if (hostname === "") return { problem: `hostname for pod "${name}" was invalid: "${wanted || name}"` };
  const domain = subdomain ? `${subdomain}.${pod.metadata.namespace ?? "default"}.svc.${clusterDomain}` : "";
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
