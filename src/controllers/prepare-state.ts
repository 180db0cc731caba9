import type { EndpointSlice, Endpoints } from "../base/api/endpoints.ts";
import { fillJobDefaults } from "../base/api/job.ts";
import { matchesSelector } from "../base/api/meta.ts";
import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { Container, ContainerPort, Pod, PodSpec } from "../base/api/pod.ts";
import { withRequests } from "../base/api/pod-requests.ts";
import type { Service, ServicePort } from "../base/api/service.ts";
import type { PersistentVolumeClaim } from "../base/api/workload.ts";
import { type DesiredPod, type DesiredState, type DesiredWorkload, isWorkload } from "../base/model/desired-state.ts";
import { podFullName } from "../base/model/pod.ts";
import { canonicalJson, hex32 } from "../base/text/json.ts";
import { describeIgnoredLabels, matchesOnlyNode } from "../plan/node-affinity.ts";
import { nodePortOf } from "../plan/pod-network.ts";
import { writtenEndpoints } from "../plan/service-endpoints.ts";

/** A workload as its controller runs it. */
export type PreparedWorkload = DesiredWorkload & {
  /** Its spec in the API: without the requests and ports that were added. */
  submittedSpec?: unknown;
};

/** The objects of a state, by their use. */
export interface PreparedState {
  workloads: readonly PreparedWorkload[];
  /** Pods of the manifests, with the ports that Services publish. */
  pods: readonly DesiredPod[];
  services: readonly Service[];
  /** Those that clients and manifests wrote. */
  endpoints: readonly (Endpoints | EndpointSlice)[];
  claims: readonly PersistentVolumeClaim[];
  volumes: ReadonlyMap<string, PersistentVolume>;
  /** Lines for the log. */
  warnings: readonly string[];
}

/** The node whose labels templates ask for. */
interface OnlyNode {
  name: string;
  labels: Readonly<Record<string, string>>;
}

/**
 * Sorts the objects. Pure.
 * @param node absent: nothing is said about labels
 * @param isPublishedByPods pods publish the ports of Services of type NodePort and LoadBalancer: nothing else does
 */
export function prepareState(
  { pods, objects = [] }: DesiredState,
  node?: OnlyNode,
  isPublishedByPods = true,
): PreparedState {
  const services = objects.flatMap((desired) => (desired.kind === "Service" ? [desired.object] : []));
  const claims = objects.flatMap((desired) => (desired.kind === "PersistentVolumeClaim" ? [desired.object] : []));
  const volumes = objects.flatMap((desired) => (desired.kind === "PersistentVolume" ? [desired.object] : []));
  const publishers = isPublishedByPods ? services : [];
  const warnings = node ? objects.filter(isWorkload).flatMap((workload) => describeUnusedLabels(workload, node)) : [];
  return {
    workloads: objects.filter(isWorkload).map((workload) => ({
      ...publishWorkload(fillTemplate(workload), publishers, warnings),
      submittedSpec: workload.object.spec,
    })),
    pods: pods.map((desired) => publishPod(desired, publishers)),
    services,
    endpoints: writtenEndpoints(objects),
    claims,
    volumes: new Map(volumes.map((volume) => [volume.metadata.name ?? "", volume])),
    warnings,
  };
}

/** The workload with what its Jobs and pods take over from other fields: its own text keeps what was written. */
function fillTemplate(desired: DesiredWorkload): DesiredWorkload {
  if (desired.kind === "CronJob") {
    const { jobTemplate } = desired.object.spec;
    const spec = { ...jobTemplate.spec, template: withRequests(jobTemplate.spec.template) };
    fillJobDefaults(spec);
    return {
      ...desired,
      object: { ...desired.object, spec: { ...desired.object.spec, jobTemplate: { ...jobTemplate, spec } } },
    };
  }
  const { object } = desired;
  return {
    ...desired,
    object: { ...object, spec: { ...object.spec, template: withRequests(object.spec.template) } },
  } as DesiredWorkload;
}

/** Labels that the pods of a workload ask for and that are not compared. */
function describeUnusedLabels({ kind, object, source }: DesiredWorkload, { name, labels }: OnlyNode): string[] {
  if (kind === "DaemonSet" || source === "http") return [];
  const { template } = kind === "CronJob" ? object.spec.jobTemplate.spec : object.spec;
  const { ignored } = matchesOnlyNode(template as Pod, name, labels);
  return ignored.length === 0 ? [] : [`${kind} "${podFullName(object.metadata)}": ${describeIgnoredLabels(ignored)}`];
}

function publishPod(desired: DesiredPod, services: readonly Service[]): DesiredPod {
  const { metadata } = desired.pod;
  const publishers = publishersOf(services, metadata.namespace ?? "default", metadata.labels);
  const spec = publishPorts(desired.pod.spec, publishers);
  if (spec === desired.pod.spec) return desired;
  const revision = hex32(`${desired.revision}\n${canonicalJson(spec)}`);
  return { ...desired, pod: { ...desired.pod, spec }, revision };
}

/** One pod of the node can hold a port: workloads with several are left alone. */
function publishWorkload(desired: DesiredWorkload, services: readonly Service[], warnings: string[]): DesiredWorkload {
  if (desired.kind === "Job" || desired.kind === "CronJob") return desired;
  const { metadata, spec } = desired.object;
  const { template } = spec;
  const publishers = publishersOf(services, metadata.namespace ?? "default", template.metadata.labels);
  if (publishers.length === 0) return desired;
  const replicas = "replicas" in spec ? spec.replicas : 1;
  if (replicas > 1) {
    for (const service of publishers) {
      warnings.push(
        `Service "${podFullName(service.metadata)}" is not published on the node: it selects the ${replicas} pods of ${desired.kind} "${podFullName(metadata)}", and one pod can hold a port; set replicas: 1`,
      );
    }
    return desired;
  }
  const podSpec = publishPorts(template.spec, publishers);
  if (podSpec === template.spec) return desired;
  const object = { ...desired.object, spec: { ...spec, template: { ...template, spec: podSpec } } };
  const revision = hex32(`${desired.revision}\n${canonicalJson(podSpec)}`);
  return { ...desired, object, revision } as DesiredWorkload;
}

/** Services of a namespace that publish ports of pods with these labels. */
function publishersOf(
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
function publishPorts(spec: PodSpec, services: readonly Service[]): PodSpec {
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
    const published: ContainerPort = {
      ...(target ?? { containerPort: targetPort as number, protocol: protocol as ContainerPort["protocol"] }),
      hostPort,
    };
    // A host port of its own stays: the container port is published twice, and names of ports are unique.
    const { name: _name, ...unnamed } = published;
    if (target?.hostPort) return { ...container, ports: [...ports, unnamed] };
    return { ...container, ports: [...ports.filter((other) => other !== target), published] };
  });
}
