import type { Service, ServicePort } from "../base/api/service.ts";
import { familyOf, type IpFamily, isInRange } from "../base/text/ip-range.ts";
import {
  chooseNodePort,
  familiesOf,
  firstFreeIp,
  hasClusterIp,
  type PortHolder,
  parseRanges,
  portOf,
  type ServiceAddresses,
  serviceName,
  toPortKey,
  wantedIps,
} from "./service-addresses.ts";

/** A field of a Service that cannot be met, as the API server words it. */
interface AssignmentProblem {
  /** e.g. `spec.ports[0].nodePort` */
  field: string;
  value: unknown;
  message: string;
}

export interface ServiceAssignment {
  spec: Service["spec"];
  problems: readonly AssignmentProblem[];
}

/** Numbers that are taken, and their range. */
interface TakenNumbers {
  range: string;
  clusterIps: ReadonlySet<string>;
  /** `TCP/30080` */
  nodePorts: ReadonlySet<string>;
}

/** Numbers of other Services, from their texts or given to them. Pure. */
export function numbersOf(
  others: readonly Service[],
  { range, clusterIps, nodePorts }: ServiceAddresses,
): TakenNumbers {
  const ips = others
    .filter(hasClusterIp)
    .flatMap((other) => clusterIps[serviceName(other)]?.split(",") ?? wantedIps(other));
  const ports = others.flatMap((other) =>
    (other.spec.ports ?? []).flatMap((port) => {
      const number = port.nodePort || nodePorts[portOf(serviceName(other), port)];
      return number ? [toPortKey(port.protocol, number)] : [];
    }),
  );
  return { range, clusterIps: new Set(ips), nodePorts: new Set(ports) };
}

/**
 * A Service of a client with the address and the node ports that it lacks. Pure. Source: core's service REST storage, which
 * allocates within the write; here a node port may be outside of the range of those that are chosen.
 * @param holderOf who else has a port of the machine; one that a client names is not looked up: its holder may go
 */
export function assignService(
  service: Service,
  taken: TakenNumbers,
  holderOf: PortHolder,
  seed: string,
): ServiceAssignment {
  if (service.spec.type === "ExternalName") return { spec: service.spec, problems: [] };
  const { families, problems: unmet } = familiesOf(service, parseRanges(taken.range));
  const base = { ...service.spec, ...familyFields(service, families) };
  if (!hasClusterIp(service)) return { spec: base, problems: [] };
  const problems: AssignmentProblem[] = [...unmet];
  const clusterIPs = assignClusterIps(service, taken, families, seed, problems);
  const ports = assignNodePorts(service, taken, holderOf, problems);
  const spec = {
    ...base,
    ...(clusterIPs.length > 0 && { clusterIP: clusterIPs[0], clusterIPs }),
    ...(ports && { ports }),
  };
  return { spec, problems };
}

/** A Service of IPv4 alone need not say it. Pure. */
export const familyFields = (
  { spec: { ipFamilies } }: Service,
  families: readonly IpFamily[],
): Partial<Service["spec"]> =>
  ipFamilies === undefined && families.join() === "IPv4" ? {} : { ipFamilies: [...families] };

function assignClusterIps(
  service: Service,
  { range: text, clusterIps }: TakenNumbers,
  families: readonly IpFamily[],
  seed: string,
  problems: AssignmentProblem[],
): string[] {
  const ranges = parseRanges(text);
  const wishes = wantedIps(service);
  if (ranges.length === 0) return wishes;
  const refuse = (value: string[], message: string) => problems.push({ field: "spec.clusterIPs", value, message });
  return families.flatMap((family) => {
    const range = ranges.find((it) => it.family === family)!;
    const wanted = wishes.find((ip) => familyOf(ip) === family);
    if (wanted === undefined) {
      const ip = firstFreeIp(seed, serviceName(service), range, clusterIps);
      if (ip === undefined) refuse([], "failed to allocate a serviceIP: range is full");
      return ip ?? [];
    }
    const failed = `failed to allocate IP ${wanted}`;
    if (!isInRange(wanted, range)) {
      const why = `the provided IP (${wanted}) is not in the valid range. The range of valid IPs is ${range.text}`;
      refuse([wanted], `${failed}: ${why}`);
    } else if (clusterIps.has(wanted)) refuse([wanted], `${failed}: provided IP is already allocated`);
    return wanted;
  });
}

function assignNodePorts(
  service: Service,
  { nodePorts }: TakenNumbers,
  holderOf: PortHolder,
  problems: AssignmentProblem[],
): ServicePort[] | undefined {
  const { type, ports } = service.spec;
  const named = new Set(nodePorts);
  for (const [index, { protocol, nodePort = 0 }] of (ports ?? []).entries()) {
    if (nodePort === 0) continue;
    const key = toPortKey(protocol, nodePort);
    if (nodePorts.has(key)) {
      const field = `spec.ports[${index}].nodePort`;
      problems.push({ field, value: nodePort, message: "provided port is already allocated" });
    }
    named.add(key);
  }
  if (type !== "NodePort") return ports;
  return ports?.map((port) => {
    if (port.nodePort) return port;
    const isFree = (number: number) =>
      !named.has(toPortKey(port.protocol, number)) && holderOf(port.protocol, number, false) === undefined;
    const nodePort = chooseNodePort(service, port, undefined, isFree);
    named.add(toPortKey(port.protocol, nodePort));
    return { ...port, nodePort };
  });
}
