import type { ContainerPort, Pod } from "../api/pod.ts";
import type { PortBinding } from "../docker/container-create-body.ts";

/** A port of the node that a pod takes. */
export interface HostPort {
  /** "" for all addresses. */
  hostIP: string;
  hostPort: number;
  protocol: "TCP" | "UDP" | "SCTP";
  containerPort: number;
}

const toHostPort = ({ hostIP = "", hostPort = 0, protocol, containerPort }: ContainerPort): HostPort => ({
  hostIP,
  hostPort,
  protocol,
  containerPort,
});

/** Ports of the node that a pod takes, each once: of containers and sidecars, in the order of the manifest. */
export function computeHostPorts({ spec }: Pod): HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const ports = [...spec.containers, ...sidecars].flatMap(({ ports = [] }) => ports).map(toHostPort);
  const taken = new Map(ports.filter(({ hostPort }) => hostPort > 0).map((port) => [JSON.stringify(port), port]));
  return [...taken.values()];
}

/** Docker's `PortBindings` and `ExposedPorts` of the sandbox; a port without hostPort leaves no trace (S136). */
export function computePortBindings(pod: Pod): {
  PortBindings: Record<string, PortBinding[]>;
  ExposedPorts: Record<string, Record<string, never>>;
} {
  const bindings: Record<string, PortBinding[]> = {};
  for (const { hostIP, hostPort, protocol, containerPort } of computeHostPorts(pod)) {
    const key = `${containerPort}/${protocol.toLowerCase()}`;
    bindings[key] ??= [];
    bindings[key].push({ HostIp: hostIP, HostPort: String(hostPort) });
  }
  return { PortBindings: bindings, ExposedPorts: Object.fromEntries(Object.keys(bindings).map((key) => [key, {}])) };
}
