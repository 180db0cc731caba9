import { matchesSelector } from "../base/api/match-labels.ts";
import type { Container, ContainerPort, PodSpec } from "../base/api/pod.ts";
import type { Service, ServicePort } from "../base/api/service.ts";
import { nodePortOf } from "../plan/node-port.ts";

/** Services of a namespace that publish ports of pods with these labels. */
export function publishersOf(
  services: readonly Service[],
  namespace: string,
  labels: Readonly<Record<string, string>> | undefined,
): Service[] {
  return services.filter(
    ({ metadata, spec }) =>
      (metadata.namespace ?? "default") === namespace &&
      (spec.type === "NodePort" || spec.type === "LoadBalancer") &&
      spec.selector !== undefined &&
      matchesSelector({ matchLabels: spec.selector }, labels),
  );
}

/** A pod spec that publishes the ports of these Services on the node, like hostPort; the same when it does already. */
export function publishPorts(spec: PodSpec, services: readonly Service[]): PodSpec {
  let containers = spec.containers;
  for (const service of services) {
    for (const port of service.spec.ports ?? []) {
      const hostPort = nodePortOf(service, port);
      if (hostPort !== undefined) containers = publishPort(containers, port, hostPort);
    }
  }
  return containers === spec.containers ? spec : { ...spec, containers };
}

function publishPort(
  containers: Container[],
  { port, targetPort = port, protocol }: ServicePort,
  hostPort: number,
): Container[] {
  const isTarget = (candidate: ContainerPort) =>
    candidate.protocol === protocol &&
    (typeof targetPort === "number" ? candidate.containerPort === targetPort : candidate.name === targetPort);
  const owner = containers.findIndex(({ ports }) => ports?.some(isTarget));
  if (owner === -1 && typeof targetPort === "string") return containers;
  return containers.map((container, index) => {
    if (index !== Math.max(0, owner)) return container;
    const ports = container.ports ?? [];
    const target = ports.find(isTarget);
    if (target?.hostPort === hostPort) return container;
    const published = {
      ...(target ?? { containerPort: targetPort as number, protocol: protocol as ContainerPort["protocol"] }),
      hostPort,
    };
    // A host port of its own stays: the container port is published twice.
    if (target?.hostPort) return { ...container, ports: [...ports, withoutName(published)] };
    return { ...container, ports: [...ports.filter((other) => other !== target), published] };
  });
}

/** Names of ports are unique. */
function withoutName({ name: _name, ...port }: ContainerPort): ContainerPort {
  return port;
}
