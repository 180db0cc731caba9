import type { Pod } from "../base/api/pod.ts";
import type { Service, ServicePort } from "../base/api/service.ts";
import { namespaceOf } from "../base/model/pod.ts";
import { hostNameIn, ipsOf, isFinished, type ServiceBackend, targetPortOf } from "./service-endpoints.ts";

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
