import { hasCondition } from "../base/api/conditions.ts";
import type { Pod } from "../base/api/pod.ts";
import type { Service } from "../base/api/service.ts";
import type { WorkloadObject } from "../base/model/desired-object.ts";
import { namespaceOf } from "../base/model/identity.ts";
import { hex32 } from "../base/text/canonical-json.ts";
import type { IpFamily } from "../base/text/ip-range.ts";
import { ipOf, type ServicePods, targetPortOf } from "../plan/service-endpoints.ts";
import { objectUid } from "./workload-records.ts";

interface EndpointPort {
  name?: string;
  port: number;
  protocol: string;
}

/** Pods of a Service that have the same numbers for its ports. */
interface PodGroup {
  ports: EndpointPort[];
  pods: Pod[];
}

/**
 * The Endpoints and EndpointSlices of a Service, by which clients of the API see where it leads; none without a selector. Pure.
 * Source: the endpoints and endpointslice controllers; slices are not split. Endpoints are those of the first family.
 * @param families of the Service
 */
export function toEndpointObjects(
  service: Service,
  pods: ServicePods,
  { nodeName, startedAt, families }: { nodeName: string; startedAt: string; families: readonly IpFamily[] },
): WorkloadObject[] {
  const { name = "", labels = {}, creationTimestamp = startedAt } = service.metadata;
  if (service.spec.type === "ExternalName" || Object.keys(service.spec.selector ?? {}).length === 0) return [];
  const namespace = namespaceOf(service);
  const selected = pods.selectedBy(service);
  const [first = "IPv4"] = families;
  const isPublished = (pod: Pod) => service.spec.publishNotReadyAddresses === true || hasCondition(pod.status, "Ready");
  const targetOf = (pod: Pod) => ({ kind: "Pod", namespace, name: pod.metadata.name, uid: pod.metadata.uid });
  const addressOf = (pod: Pod) => ({ ip: ipOf(pod, first), nodeName, targetRef: targetOf(pod) });
  const subsets = groupPods(service, selected, first).map(({ ports, pods: all }) => {
    const [ready, others] = [all.filter(isPublished), all.filter((pod) => !isPublished(pod))];
    return {
      ...(ready.length > 0 && { addresses: ready.map(addressOf) }),
      ...(others.length > 0 && { notReadyAddresses: others.map(addressOf) }),
      ...(ports.length > 0 && { ports }),
    };
  });
  const common = { namespace, creationTimestamp };
  const owner = {
    apiVersion: "v1",
    kind: "Service",
    name,
    uid: service.metadata.uid ?? objectUid(nodeName, "Service", namespace, name),
    controller: true,
    blockOwnerDeletion: true,
  };
  const toSlice = ({ ports, pods: all }: PodGroup, family: IpFamily): WorkloadObject => {
    const key = `${namespace}/${name} ${JSON.stringify(ports)}${family === "IPv4" ? "" : family}`;
    const own = `${name}-${hex32(key).slice(0, 5)}`;
    const conditions = (pod: Pod) => ({
      ready: isPublished(pod),
      serving: isPublished(pod),
      terminating: isTerminating(pod),
    });
    return {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        ...common,
        name: own,
        uid: objectUid(nodeName, "EndpointSlice", namespace, own),
        labels: {
          ...labels,
          "kubernetes.io/service-name": name,
          "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        },
        ownerReferences: [owner],
      },
      addressType: family,
      endpoints: all.map((pod) => ({
        addresses: [ipOf(pod, family)],
        conditions: conditions(pod),
        nodeName,
        targetRef: targetOf(pod),
      })),
      // The API's default, on which kubectl relies.
      ports: ports.map(({ name: portName = "", ...port }) => ({ name: portName, ...port })),
    };
  };
  const endpoints: WorkloadObject = {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: { ...common, name, uid: objectUid(nodeName, "Endpoints", namespace, name), labels },
    ...(subsets.length > 0 && { subsets }),
  };
  const slices = families.flatMap((family) => {
    const groups = groupPods(service, selected, family);
    return (groups.length > 0 ? groups : [{ ports: [], pods: [] }]).map((group) => toSlice(group, family));
  });
  return [endpoints, ...slices];
}

const isTerminating = ({ metadata }: Pod): boolean => metadata.deletionTimestamp !== undefined;

function groupPods({ spec: { ports = [] } }: Service, pods: readonly Pod[], family: IpFamily): PodGroup[] {
  const groups = new Map<string, PodGroup>();
  for (const pod of pods) {
    if (ipOf(pod, family) === undefined) continue;
    const own = ports.flatMap((port): EndpointPort[] => {
      const number = targetPortOf(port, pod);
      return number === undefined
        ? []
        : [{ ...(port.name !== undefined && { name: port.name }), port: number, protocol: port.protocol }];
    });
    // A pod without the ports of a Service is no endpoint of it; a headless Service may have no ports.
    if (own.length === 0 && ports.length > 0) continue;
    const key = JSON.stringify(own);
    const group = groups.get(key) ?? { ports: own, pods: [] };
    group.pods.push(pod);
    groups.set(key, group);
  }
  return [...groups.values()];
}
