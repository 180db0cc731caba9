import type { Pod } from "../api/pod.ts";

/** A port of the node that a pod takes. */
export interface HostPortClaim {
  /** "" for all addresses. */
  hostIP: string;
  hostPort: number;
  protocol: string;
}

/** Ports of the node that a pod takes while it runs: of containers and sidecars, in the order of the manifest. */
export function computeHostPortClaims({ spec }: Pod): HostPortClaim[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
  return [...spec.containers, ...sidecars]
    .flatMap(({ ports = [] }) => ports)
    .flatMap(({ hostIP = "", hostPort = 0, protocol }) => (hostPort > 0 ? [{ hostIP, hostPort, protocol }] : []));
}

const isEveryAddress = (address: string) => address === "" || address === "0.0.0.0" || address === "::";

/** Whether two claims cannot both be met: same number and protocol on an address they share. */
export const isSameClaim = (a: HostPortClaim, b: HostPortClaim): boolean =>
  a.hostPort === b.hostPort &&
  a.protocol === b.protocol &&
  (a.hostIP === b.hostIP || isEveryAddress(a.hostIP) || isEveryAddress(b.hostIP));

/** Whether two pods cannot run at the same time: they want the same port of the node. */
export const conflictOverPorts = (a: Pod, b: Pod): boolean =>
  computeHostPortClaims(a).some((mine) => computeHostPortClaims(b).some((other) => isSameClaim(mine, other)));
