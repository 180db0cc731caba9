import type { Pod } from "../api/pod.ts";
import type { PortBinding } from "../docker/container-create-body.ts";
import { computeHostPorts } from "../plan/host-ports.ts";

/** Docker's `PortBindings` and `ExposedPorts` of the sandbox; a port without hostPort has no effect. */
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
