import type { ContainerPort, Pod } from "../base/api/pod.ts";

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
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  const ports = [...spec.containers, ...sidecars].flatMap(({ ports = [] }) => ports);
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
