import type { Service } from "../../base/api/service.ts";
import { memoized } from "../../base/model/memoized.ts";
import type { ApiObject } from "../object-store.ts";
import { READ_VERBS } from "../resource-definition.ts";
import { type Fields, formatLabels, manifestKind, specOf, text } from "./define-kind.ts";

/** `<port>:<port of the node>/<protocol>` */
function ports(object: ApiObject): string {
  const service = object as unknown as Service;
  const shown = (service.spec.ports ?? []).map(
    ({ port, nodePort, protocol }) => `${port}${nodePort === undefined ? "" : `:${nodePort}`}/${protocol ?? "TCP"}`,
  );
  return shown.join(",") || "<none>";
}

interface Status {
  loadBalancer?: { ingress?: { ip?: string }[] };
  conditions?: { type: string; status: string }[];
}

/** Source: kubectl's `getServiceExternalIP`. */
function externalIp(object: ApiObject): string {
  const { type, externalName, externalIPs = [] } = object.spec as Service["spec"];
  if (type === "ExternalName") return externalName ?? "<none>";
  const { loadBalancer, conditions = [] } = (object.status ?? {}) as Status;
  const ingress = (loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
  const all = [...ingress, ...externalIPs];
  if (conditions.some(({ type: kind, status }) => kind === "PortNotAllocated" && status === "True"))
    return "<port is held>";
  return all.join(",") || (type === "LoadBalancer" ? "<pending>" : "<none>");
}

/** A Service with the defaults that mean nothing here, but that kubectl describe prints. Source: core/v1 defaults. */
const showServiceDefaults = memoized((service: ApiObject) => {
  const { clusterIP, ports, ...spec } = specOf(service) as Fields & {
    ports?: { port: number; targetPort?: unknown }[];
  };
  const shownPorts = ports?.map((port) => ({ ...port, targetPort: port.targetPort ?? port.port }));
  return {
    ...service,
    spec: {
      ...(clusterIP !== undefined && { clusterIP, clusterIPs: [clusterIP] }),
      ...(shownPorts && { ports: shownPorts }),
      sessionAffinity: "None",
      ...spec,
    },
  };
});

/** Source: kubectl's printers and core/v1's selectable fields. */
export const SERVICE = manifestKind({
  kind: "Service",
  shortNames: ["svc"],
  categories: ["all"],
  subresources: ["status"],
  columns: [
    text("Type", (it) => specOf(it).type ?? "ClusterIP"),
    text("Cluster-IP", (it) => specOf(it).clusterIP || "<none>"),
    text("External-IP", externalIp),
    text("Port(s)", ports),
    text("Selector", (it) => formatLabels(specOf(it).selector), 1),
  ],
  fields: {
    "spec.clusterIP": (it) => String(specOf(it).clusterIP ?? ""),
    "spec.type": (it) => String(specOf(it).type ?? "ClusterIP"),
  },
  hasGeneration: false,
  complete: showServiceDefaults,
  description: "Service is a named abstraction of a set of pods.",
});

interface Subset {
  addresses?: { ip: string }[];
  ports?: { port: number }[];
}

const MAX_SHOWN = 3;

/** Source: kubectl's `formatEndpoints`. */
function formatEndpoints(object: ApiObject): string {
  const subsets = (object as unknown as { subsets?: Subset[] }).subsets ?? [];
  const all = subsets.flatMap(({ addresses = [], ports = [] }) =>
    addresses.flatMap(({ ip }) => (ports.length === 0 ? [ip] : ports.map(({ port }) => `${ip}:${port}`))),
  );
  const more = all.length - MAX_SHOWN;
  return all.length === 0 ? "<none>" : `${all.slice(0, MAX_SHOWN).join(",")}${more > 0 ? ` + ${more} more...` : ""}`;
}

export const ENDPOINTS = manifestKind({
  kind: "Endpoints",
  plural: "endpoints",
  singular: "endpoints",
  shortNames: ["ep"],
  verbs: READ_VERBS,
  decode: undefined,
  hasGeneration: false,
  columns: [text("Endpoints", formatEndpoints)],
  description: "Endpoints are the addresses of the pods that a Service leads to.",
});

type Slice = ApiObject & { addressType: string; ports: { port: number }[]; endpoints: { addresses: string[] }[] };
const asSlice = (object: ApiObject) => object as unknown as Slice;

export const ENDPOINT_SLICE = manifestKind({
  group: "discovery.k8s.io",
  kind: "EndpointSlice",
  verbs: READ_VERBS,
  decode: undefined,
  columns: [
    text("AddressType", (it) => asSlice(it).addressType),
    text(
      "Ports",
      (it) =>
        asSlice(it)
          .ports.map(({ port }) => port)
          .join(",") || "<unset>",
    ),
    text(
      "Endpoints",
      (it) =>
        asSlice(it)
          .endpoints.flatMap(({ addresses }) => addresses)
          .join(",") || "<unset>",
    ),
  ],
  description: "EndpointSlice has endpoints of a Service with the same ports.",
});
