import type { Pod } from "../base/api/pod.ts";

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

/**
 * The names of a pod. They hold for pods with their own network; with host networking the node's name is seen.
 * Source: upstream's `GeneratePodHostNameAndDomain` and `GetNodenameForKernel`.
 * @param clusterDomain `--cluster-domain`, or "".
 */
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
