import type { Service, ServicePort } from "../base/api/service.ts";
import { isInRange, parseIpv4Range } from "../base/text/ipv4-range.ts";
import {
  chooseNodePort,
  firstFreeIp,
  hasClusterIp,
  type PortHolder,
  portOf,
  type ServiceAddresses,
  serviceName,
  toPortKey,
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
  const ips = others.flatMap((other) => {
    const ip = clusterIps[serviceName(other)] ?? other.spec.clusterIP;
    return ip === undefined || !hasClusterIp(other) ? [] : [ip];
  });
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
  if (!hasClusterIp(service)) return { spec: service.spec, problems: [] };
  const problems: AssignmentProblem[] = [];
  const clusterIP = assignClusterIp(service, taken, seed, problems);
  const ports = assignNodePorts(service, taken, holderOf, problems);
  const spec = {
    ...service.spec,
    ...(clusterIP !== undefined && { clusterIP, clusterIPs: [clusterIP] }),
    ...(ports && { ports }),
  };
  return { spec, problems };
}

function assignClusterIp(
  service: Service,
  { range: text, clusterIps }: TakenNumbers,
  seed: string,
  problems: AssignmentProblem[],
): string | undefined {
  const range = parseIpv4Range(text);
  const { clusterIP: wanted = "" } = service.spec;
  if (!range) return wanted || undefined;
  const refuse = (value: string[], message: string) => problems.push({ field: "spec.clusterIPs", value, message });
  if (wanted === "") {
    const ip = firstFreeIp(seed, serviceName(service), range, clusterIps);
    if (ip === undefined) refuse([], "failed to allocate a serviceIP: range is full");
    return ip;
  }
  const failed = `failed to allocate IP ${wanted}`;
  if (!isInRange(wanted, range)) {
    const why = `the provided IP (${wanted}) is not in the valid range. The range of valid IPs is ${text}`;
    refuse([wanted], `${failed}: ${why}`);
  } else if (clusterIps.has(wanted)) refuse([wanted], `${failed}: provided IP is already allocated`);
  return wanted;
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
