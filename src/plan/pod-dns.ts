import type { Pod } from "../api/pod.ts";

/** A resolv.conf by its parts. */
export interface ResolvConf {
  nameservers: string[];
  searches: string[];
  /** e.g. `ndots:5`, `single-request`. */
  options: string[];
}

/** What the resolver of glibc reads, and Kubernetes allows: the first three. */
const MAX_NAMESERVERS = 3;

/** Reads a resolv.conf. As in the resolver, the last `search` line counts; a `domain` line counts as one. */
export function parseResolvConf(text: string): ResolvConf {
  const parsed: ResolvConf = { nameservers: [], searches: [], options: [] };
  for (const line of text.split("\n")) {
    const [keyword, ...words] = line
      .replace(/[#;].*$/, "")
      .trim()
      .split(/\s+/);
    if (keyword === "nameserver" && words[0]) parsed.nameservers.push(words[0]);
    // A trailing dot is no part of the name; a lone one stays.
    if (keyword === "search" || keyword === "domain")
      parsed.searches = words.map((word) => word.replace(/(?<=.)\.$/, ""));
    if (keyword === "options") parsed.options.push(...words);
  }
  return parsed;
}

export const toResolvConfText = ({ nameservers, searches, options }: ResolvConf) =>
  [
    ...nameservers.map((address) => `nameserver ${address}\n`),
    ...(searches.length ? [`search ${searches.join(" ")}\n`] : []),
    ...(options.length ? [`options ${options.join(" ")}\n`] : []),
  ].join("");

export interface PodDnsInput {
  pod: Pod;
  /** The node's own resolv.conf (`--resolv-conf`); empty lists when that is "". */
  node: ResolvConf;
  /** `--cluster-dns`. */
  clusterDns: readonly string[];
  /** `--cluster-domain`, "" for none. */
  clusterDomain: string;
}

export interface PodDns {
  resolvConf: ResolvConf;
  /** ClusterFirst was asked for, but no cluster DNS is set: Default is used. Event MissingClusterDNS. */
  missingClusterDns: boolean;
}

const unique = (values: readonly string[]) => [...new Set(values)];

const optionName = (option: string) => option.split(":", 1)[0];

/** resolv.conf of a pod by dnsPolicy and dnsConfig. Source: kubelet's dns Configurer. */
export function computePodDns(input: PodDnsInput): PodDns {
  const { pod, clusterDns } = input;
  const policy = effectivePolicy(pod);
  const missingClusterDns = policy === "ClusterFirst" && clusterDns.length === 0;
  const base = computeBase(input, missingClusterDns ? "Default" : policy);

  const { nameservers = [], searches = [], options = [] } = pod.spec.dnsConfig ?? {};
  const own = options.map(({ name, value }) => (value ? `${name}:${value}` : (name ?? "")));
  const replaced = new Set(own.map(optionName));
  return {
    resolvConf: {
      nameservers: unique([...base.nameservers, ...nameservers]).slice(0, MAX_NAMESERVERS),
      searches: unique([...base.searches, ...searches]),
      options: [...base.options.filter((option) => !replaced.has(optionName(option))), ...own],
    },
    missingClusterDns,
  };
}

/** ClusterFirst means the node's DNS for a pod in the node's network, unless it says WithHostNet. */
function effectivePolicy({ spec }: Pod): "ClusterFirst" | "Default" | "None" {
  if (spec.dnsPolicy === "ClusterFirstWithHostNet") return "ClusterFirst";
  if (spec.dnsPolicy === "ClusterFirst" && spec.hostNetwork) return "Default";
  return spec.dnsPolicy;
}

function computeBase(input: PodDnsInput, policy: "ClusterFirst" | "Default" | "None"): ResolvConf {
  switch (policy) {
    case "None":
      return { nameservers: [], searches: [], options: [] };
    case "Default":
      return input.node;
    case "ClusterFirst": {
      const domain = input.clusterDomain;
      const namespace = input.pod.metadata.namespace ?? "default";
      const cluster = domain ? [`${namespace}.svc.${domain}`, `svc.${domain}`, domain] : [];
      return {
        nameservers: [...input.clusterDns],
        searches: [...cluster, ...input.node.searches],
        options: ["ndots:5"],
      };
    }
    default:
      return policy satisfies never;
  }
}
