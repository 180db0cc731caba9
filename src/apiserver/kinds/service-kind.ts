import type { Service } from "../../base/api/service.ts";
import { memoized } from "../../base/model/memoized.ts";
import type { ApiObject } from "../api-object.ts";
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
