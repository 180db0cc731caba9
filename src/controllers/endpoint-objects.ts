import { type Endpoints, SERVICE_NAME_LABEL } from "../base/api/endpoints.ts";
import { hasCondition } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";
import type { Service } from "../base/api/service.ts";
import type { WorkloadObject } from "../base/model/desired-state.ts";
import { namespaceOf } from "../base/model/pod.ts";
import { familyOf, type IpFamily } from "../base/text/ip-range.ts";
import { hex32 } from "../base/text/json.ts";
import { hasSelector, hostNameIn, ipOf, type ServicePods, targetPortOf } from "../plan/service-endpoints.ts";
import { controllerReference, objectUid } from "./workload-records.ts";

interface EndpointPort {
  name?: string | undefined;
  port: number;
  protocol: string;
}

/** Pods of a Service that have the same numbers for its ports. */
interface PodGroup {
  ports: EndpointPort[];
  pods: Pod[];
}

/**
 * The Endpoints and EndpointSlices of a Service, by which clients of the API see where it leads; without a selector slices with
 * the addresses of its written Endpoints. Pure. Source: the endpoints, endpointslice and endpointslicemirroring
 * controllers; slices are not split. Endpoints are those of the first family.
 * @param families of the Service
 */
export function toEndpointObjects(
  service: Service,
  pods: ServicePods,
  { nodeName, startedAt, families }: { nodeName: string; startedAt: string; families: readonly IpFamily[] },
): WorkloadObject[] {
  const { name = "", labels = {}, creationTimestamp = startedAt } = service.metadata;
  if (service.spec.type === "ExternalName") return [];
  const namespace = namespaceOf(service);
  const selected = pods.selectedBy(service);
  const [first = "IPv4"] = families;
  const isPublished = (pod: Pod) => service.spec.publishNotReadyAddresses === true || hasCondition(pod.status, "Ready");
  const detailsOf = (pod: Pod) => {
    const { name, uid } = pod.metadata;
    const hostname = hostNameIn(service, pod);
    return { ...(hostname && { hostname }), nodeName, targetRef: { kind: "Pod", namespace, name, uid } };
  };
  const addressOf = (pod: Pod) => ({ ip: ipOf(pod, first), ...detailsOf(pod) });
  const subsets = groupPods(service, selected, first).map(({ ports, pods: all }) => {
    const [ready, others] = [all.filter(isPublished), all.filter((pod) => !isPublished(pod))];
    return {
      ...(ready.length > 0 && { addresses: ready.map(addressOf) }),
      ...(others.length > 0 && { notReadyAddresses: others.map(addressOf) }),
      ...(ports.length > 0 && { ports }),
    };
  });
  const common = { namespace, creationTimestamp };
  const written = pods.endpointsOf(service);
  const [kind, { metadata: of }] = written ? (["Endpoints", written] as const) : (["Service", service] as const);
  const ownerReferences = [controllerReference(kind, name, of.uid ?? objectUid(nodeName, kind, namespace, name))];
  const toSlice = (ports: readonly EndpointPort[], endpoints: object[], family: IpFamily): WorkloadObject => {
    const key = `${namespace}/${name} ${JSON.stringify(ports)}${family === "IPv4" ? "" : family}`;
    const own = `${name}-${hex32(key).slice(0, 5)}`;
    return {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        ...common,
        name: own,
        uid: objectUid(nodeName, "EndpointSlice", namespace, own),
        labels: {
          ...labels,
          [SERVICE_NAME_LABEL]: name,
          "endpointslice.kubernetes.io/managed-by": `endpointslice${written ? "mirroring" : ""}-controller.k8s.io`,
        },
        ownerReferences,
      },
      addressType: family,
      endpoints,
      // The API's default, on which kubectl relies.
      ports: ports.map(({ name: portName = "", ...port }) => ({ name: portName, ...port })),
    };
  };
  if (written) return mirror(written, toSlice);
  if (!hasSelector(service)) return [];
  const endpoints: WorkloadObject = {
    apiVersion: "v1",
    kind: "Endpoints",
    metadata: { ...common, name, uid: objectUid(nodeName, "Endpoints", namespace, name), labels, ownerReferences },
    ...(subsets.length > 0 && { subsets }),
  };
  const slices = families.flatMap((family) => {
    const groups = groupPods(service, selected, family);
    return (groups.length > 0 ? groups : [{ ports: [], pods: [] }]).map(({ ports, pods: all }) =>
      toSlice(
        ports,
        all.map((pod) => ({
          addresses: [ipOf(pod, family)],
          conditions: { ready: isPublished(pod), serving: isPublished(pod), terminating: isTerminating(pod) },
          ...detailsOf(pod),
        })),
        family,
      ),
    );
  });
  return [endpoints, ...slices];
}

/** Slices for the addresses of written Endpoints; none where these ask for none. */
function mirror(
  { metadata: { labels }, subsets = [] }: Endpoints,
  toSlice: (ports: readonly EndpointPort[], endpoints: object[], family: IpFamily) => WorkloadObject,
): WorkloadObject[] {
  if (labels?.["endpointslice.kubernetes.io/skip-mirror"] === "true") return [];
  const byPorts = Map.groupBy(subsets, ({ ports = [] }) => JSON.stringify(ports));
  return [...byPorts.values()].flatMap((group) =>
    (["IPv4", "IPv6"] as const).flatMap((family) => {
      const endpoints = group.flatMap(({ addresses = [], notReadyAddresses = [] }) =>
        [addresses, notReadyAddresses].flatMap((list) =>
          list
            .filter(({ ip }) => familyOf(ip) === family)
            .map(({ ip, ...more }) => ({ addresses: [ip], conditions: { ready: list === addresses }, ...more })),
        ),
      );
      return endpoints.length > 0 ? [toSlice(group[0]!.ports ?? [], endpoints, family)] : [];
    }),
  );
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
    groups.getOrInsertComputed(key, () => ({ ports: own, pods: [] })).pods.push(pod);
  }
  return [...groups.values()];
}
