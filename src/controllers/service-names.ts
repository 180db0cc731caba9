import { matchesSelector } from "../base/api/match-labels.ts";
import type { HostAlias, Pod } from "../base/api/pod.ts";
import type { Service } from "../base/api/service.ts";

const namespaceOf = ({ metadata }: { metadata: { namespace?: string | undefined } }) => metadata.namespace ?? "default";

const isReady = ({ status }: Pod) =>
  status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;

/** Addresses of the pods behind a Service, in the order of the pods, or those of its external name. */
interface Endpoints {
  service: Service;
  pods: { pod: Pod; ips: string[] }[];
  external: readonly string[];
}

/** Services of type ExternalName lead to the Services of these names, or to names outside. */
const MAX_ALIASES = 8;

/** The pods behind each Service: those that are Ready, or all of them with publishNotReadyAddresses. */
export function computeEndpoints(
  services: readonly Service[],
  pods: readonly Pod[],
  external: { clusterDomain: string; addressesOf: (name: string) => readonly string[] },
): Endpoints[] {
  return services.map((service) => {
    const target = resolveExternal(service, services, external.clusterDomain);
    if ("name" in target) return { service, pods: [], external: external.addressesOf(target.name) };
    const { selector, publishNotReadyAddresses } = target.service.spec;
    const behind = pods.filter(
      (pod) =>
        selector !== undefined &&
        namespaceOf(pod) === namespaceOf(target.service) &&
        pod.metadata.deletionTimestamp === undefined &&
        matchesSelector({ matchLabels: selector }, pod.metadata.labels) &&
        (publishNotReadyAddresses || isReady(pod)),
    );
    const reached = behind.map((pod) => ({ pod, ips: ipsOf(pod) })).filter(({ ips }) => ips.length > 0);
    return { service, pods: reached, external: [] };
  });
}

/** The Service or the name outside that a Service leads to: itself, unless it has an external name. */
function resolveExternal(
  service: Service,
  services: readonly Service[],
  clusterDomain: string,
): { service: Service } | { name: string } {
  let current = service;
  for (let aliases = 0; aliases < MAX_ALIASES; aliases++) {
    if (current.spec.type !== "ExternalName") return { service: current };
    const name = externalNameOf(current);
    const next = services.find(
      (one) => `${one.metadata.name}.${namespaceOf(one)}.svc.${domainOf(clusterDomain)}` === name,
    );
    if (!next) return { name };
    current = next;
  }
  // They lead to each other.
  return { name: "" };
}

const externalNameOf = ({ spec }: Service) => (spec.externalName ?? "").toLowerCase().replace(/\.$/, "");

/** Names outside that Services lead to. */
export const findExternalNames = (services: readonly Service[], clusterDomain: string): Set<string> =>
  new Set(
    services.flatMap((service) => {
      const target = resolveExternal(service, services, clusterDomain);
      return "name" in target && target.name !== "" ? [target.name] : [];
    }),
  );

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
  for (const { service, pods, external } of endpoints) {
    const { name = "" } = service.metadata;
    const names = namesOf(name, namespaceOf(service), namespace, clusterDomain);
    for (const ip of external) add(ip, names);
    for (const { pod, ips } of pods) {
      const { hostname, subdomain } = pod.spec;
      const own = hostname !== undefined && subdomain === name ? names.map((full) => `${hostname}.${full}`) : [];
      for (const ip of ips) add(ip, [...names, ...own]);
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

const domainOf = (clusterDomain: string) => (clusterDomain === "" ? "cluster.local" : clusterDomain);

function namesOf(name: string, namespace: string, from: string, clusterDomain: string): string[] {
  const qualified = `${name}.${namespace}`;
  const names = [qualified, `${qualified}.svc`, `${qualified}.svc.${domainOf(clusterDomain)}`];
  return namespace === from ? [name, ...names] : names;
}

/** Whether cluster names are for this pod: its DNS policy is one of those that ask the cluster first. */
export const seesServices = ({ spec }: Pod): boolean =>
  spec.dnsPolicy === "ClusterFirst" || spec.dnsPolicy === "ClusterFirstWithHostNet";
