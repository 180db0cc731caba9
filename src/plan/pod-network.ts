import { IP_ANNOTATION, NETWORK_ANNOTATION, networkNamesOf, requiredFormat } from "../base/api/annotations.ts";
import type { ContainerPort, Pod } from "../base/api/pod.ts";
import { FIRST_NODE_PORT, NODE_PORTS, type Service, type ServicePort } from "../base/api/service.ts";
import { hex32 } from "../base/text/json.ts";
import { isSidecar } from "./restart-policy.ts";

/** Predefined networks of every engine; they have no DNS. */
const BUILT_IN_NETWORKS = new Set(["default", "bridge", "none", "host"]);

/** The user-defined networks that a pod asks for; the engine answers the names of their pods. */
export const computeUserNetworks = ({ spec, metadata }: Pod): string[] =>
  spec.hostNetwork ? [] : networkNamesOf(metadata).filter((network) => !BUILT_IN_NETWORKS.has(network));

/** Whether the engine makes the network of a pod also where plugins make those of the others. */
export const asksForEngineNetwork = ({ spec, metadata }: Pod): boolean =>
  spec.hostNetwork === true || Boolean(metadata.annotations?.[NETWORK_ANNOTATION]);

/** The first error in the two annotations: which one, and the reason. */
export function findNetworkMistake(pod: Pod): { annotation: string; why: string } | undefined {
  const { spec, metadata } = pod;
  const network = metadata.annotations?.[NETWORK_ANNOTATION];
  const ip = metadata.annotations?.[IP_ANNOTATION];
  const mistake = (annotation: string, why: string) => ({ annotation, why });
  if (network && spec.hostNetwork) {
    return mistake(
      NETWORK_ANNOTATION,
      `${network}: a pod with hostNetwork uses the network of the host; remove one of the two`,
    );
  }
  if (network === "host") {
    return mistake(NETWORK_ANNOTATION, "host: set spec.hostNetwork for the network of the host");
  }
  for (const [annotation, value] of [
    [NETWORK_ANNOTATION, network],
    [IP_ANNOTATION, ip],
  ] as const) {
    const format = value && requiredFormat(annotation, value);
    if (format) return mistake(annotation, `${value}: must be ${format}`);
  }
  const networks = networkNamesOf(metadata);
  const builtIn = networks.find((name) => BUILT_IN_NETWORKS.has(name));
  if (builtIn !== undefined && networks.length > 1) {
    const why = `${network}: ${builtIn} cannot be one of several networks; name networks of your own (docker network create)`;
    return mistake(NETWORK_ANNOTATION, why);
  }
  if (!ip || computeUserNetworks(pod).length > 0) return undefined;
  const why = `${ip}: Docker assigns fixed addresses only in user-defined networks (docker network create --subnet)`;
  return mistake(IP_ANNOTATION, `${why}; name one with ${NETWORK_ANNOTATION}`);
}

/** `in network "lan" with address 10.1.2.3 and "back"`, or "" for a pod that asks for neither. */
export function describeNetwork(pod: Pod): string {
  const [network, ...others] = computeUserNetworks(pod);
  if (network === undefined) return "";
  const ip = pod.metadata.annotations?.[IP_ANNOTATION];
  const more = others.map((name) => ` and ${JSON.stringify(name)}`).join("");
  return `in network ${JSON.stringify(network)}${ip ? ` with address ${ip}` : ""}${more}`;
}

/** A port of the node that a pod takes. */
export interface HostPort {
  /** "" for all addresses. */
  hostIP: string;
  hostPort: number;
  protocol: ContainerPort["protocol"];
  containerPort: number;
}

/** Ports of the node that a pod takes, each once: of containers and sidecars, in the order of the manifest. */
export function computeHostPorts({ spec }: Pod): HostPort[] {
  const ports = [...spec.containers, ...(spec.initContainers ?? []).filter(isSidecar)].flatMap(
    ({ ports = [] }) => ports,
  );
  const taken = ports.flatMap(({ hostIP = "", hostPort = 0, protocol, containerPort }) =>
    hostPort > 0 ? [{ hostIP, hostPort, protocol, containerPort }] : [],
  );
  return [...new Map(taken.map((port) => [JSON.stringify(port), port])).values()];
}

const isEveryAddress = (address: string) => address === "" || address === "0.0.0.0" || address === "::";

/** Whether two claims cannot both be met: same number and protocol on an address they share. */
export const isSameClaim = (a: HostPort, b: HostPort): boolean =>
  a.hostPort === b.hostPort &&
  a.protocol === b.protocol &&
  (a.hostIP === b.hostIP || isEveryAddress(a.hostIP) || isEveryAddress(b.hostIP));

/** Whether two pods cannot run at the same time: they want the same port of the node. */
export const conflictOverPorts = (a: Pod, b: Pod): boolean =>
  computeHostPorts(a).some((mine) => computeHostPorts(b).some((other) => isSameClaim(mine, other)));

/** Port of the node under which a port of a Service is published; undefined when it is not. */
export function nodePortOf({ metadata, spec }: Service, { port, nodePort }: ServicePort): number | undefined {
  if (spec.type === "LoadBalancer") return port;
  if (spec.type !== "NodePort") return undefined;
  if (nodePort !== undefined) return nodePort;
  const digits = hex32(`${metadata.namespace ?? "default"}/${metadata.name} ${port}`).slice(0, 8);
  return FIRST_NODE_PORT + (Number.parseInt(digits, 16) % NODE_PORTS);
}
