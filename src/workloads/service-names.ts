import { matchesSelector } from "../api/match-labels.ts";
import type { HostAlias, Pod } from "../api/pod.ts";
import type { Service } from "../api/service.ts";

const namespaceOf = ({ metadata }: { metadata: { namespace?: string | undefined } }) => metadata.namespace ?? "default";

const isReady = ({ status }: Pod) =>
  status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;

/** Addresses of the pods behind a Service, in the order of the pods. */
interface Endpoints {
  service: Service;
  pods: { pod: Pod; ips: string[] }[];
}

/** The pods behind each Service: those that are Ready, or all of them with publishNotReadyAddresses. */
export function computeEndpoints(services: readonly Service[], pods: readonly Pod[]): Endpoints[] {
  return services.map((service) => {
    const { selector, publishNotReadyAddresses } = service.spec;
    const behind = pods.filter(
      (pod) =>
        selector !== undefined &&
        namespaceOf(pod) === namespaceOf(service) &&
        pod.metadata.deletionTimestamp === undefined &&
        matchesSelector({ matchLabels: selector }, pod.metadata.labels) &&
        (publishNotReadyAddresses || isReady(pod)),
    );
    return { service, pods: behind.map((pod) => ({ pod, ips: ipsOf(pod) })).filter(({ ips }) => ips.length > 0) };
  });
}

const ipsOf = ({ status }: Pod): string[] => (status?.podIPs ?? []).flatMap(({ ip }) => (ip ? [ip] : []));

/**
 * Lines for the hosts file of pods in one namespace: the names by which cluster DNS answers for Services, and for pods
 * with a host name behind a Service that is their subdomain.
 */
export function computeServiceNames(
  endpoints: readonly Endpoints[],
  namespace: string,
  clusterDomain: string,
): HostAlias[] {
  const byIp = new Map<string, Set<string>>();
  const add = (ip: string, names: readonly string[]) => {
    const known = byIp.get(ip) ?? new Set();
    for (const name of names) known.add(name);
    byIp.set(ip, known);
  };
  for (const { service, pods } of endpoints) {
    const { name = "" } = service.metadata;
    const names = namesOf(name, namespaceOf(service), namespace, clusterDomain);
    for (const { pod, ips } of pods) {
      const { hostname, subdomain } = pod.spec;
      const own = hostname !== undefined && subdomain === name ? names.map((full) => `${hostname}.${full}`) : [];
      for (const ip of ips) add(ip, [...names, ...own]);
    }
  }
  return [...byIp].map(([ip, names]) => ({ ip, hostnames: [...names] }));
}

function namesOf(name: string, namespace: string, from: string, clusterDomain: string): string[] {
  const qualified = `${name}.${namespace}`;
  const domain = clusterDomain === "" ? "cluster.local" : clusterDomain;
  const names = [qualified, `${qualified}.svc`, `${qualified}.svc.${domain}`];
  return namespace === from ? [name, ...names] : names;
}

/** Whether cluster names are for this pod: its DNS policy is one of those that ask the cluster first. */
export const seesServices = ({ spec }: Pod): boolean =>
  spec.dnsPolicy === "ClusterFirst" || spec.dnsPolicy === "ClusterFirstWithHostNet";
