import type { EndpointSlice } from "../../base/api/endpoints.ts";
import type { Service } from "../../base/api/service.ts";
import { memoized } from "../../base/model/memoized.ts";
import { isRecord } from "../../base/text/json.ts";
import { invalidValue } from "../api-error.ts";
import type { ApiObject } from "../object-store.ts";
import { firstThree } from "../printers/rows.ts";
import { type Fields, fixed, formatLabels, manifestKind, type RefuseChange, specOf, text } from "./define-kind.ts";

/** `<port>:<port of the node>/<protocol>` */
function ports(object: ApiObject): string {
  const service = object as unknown as Service;
  const shown = (service.spec.ports ?? []).map(
    ({ port, nodePort, protocol }) => `${port}${nodePort === undefined ? "" : `:${nodePort}`}/${protocol ?? "TCP"}`,
  );
  return shown.join(",") || "<none>";
}

/** Source: kubectl's `getServiceExternalIP`. */
function externalIp(object: ApiObject): string {
  const { type, externalName, externalIPs = [] } = object.spec as Service["spec"];
  if (type === "ExternalName") return externalName ?? "<none>";
  const { loadBalancer, conditions = [] } = (object.status ?? {}) as {
    loadBalancer?: { ingress?: { ip?: string }[] };
    conditions?: { type: string; status: string }[];
  };
  const ingress = (loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? []);
  const all = [...ingress, ...externalIPs];
  if (conditions.some(({ type: kind, status }) => kind === "PortNotAllocated" && status === "True"))
    return "<port is held>";
  return all.join(",") || (type === "LoadBalancer" ? "<pending>" : "<none>");
}

const isPublished = ({ type }: Fields) => type === "NodePort" || type === "LoadBalancer";
/** Source: `NeedsHealthCheck`. */
const hasHealthCheck = ({ type, externalTrafficPolicy }: Fields) =>
  type === "LoadBalancer" && externalTrafficPolicy === "Local";
const isSingle = ({ ipFamilyPolicy = "SingleStack" }: Fields) => ipFamilyPolicy === "SingleStack";
const isExternalName = ({ type }: Fields) => type === "ExternalName";
/** Source: core/v1 `DefaultClientIPServiceAffinitySeconds`. */
const AFFINITY = { clientIP: { timeoutSeconds: 10_800 } };

/** A Service with the defaults that mean nothing here, but that clients read. Source: core/v1 defaults. */
const showServiceDefaults = memoized((service: ApiObject) => {
  const {
    clusterIP,
    clusterIPs = [clusterIP],
    ports,
    ...spec
  } = specOf(service) as Fields & {
    ports?: { port: number; targetPort?: unknown }[];
  };
  const shownPorts = ports?.map((port) => ({ ...port, targetPort: port.targetPort ?? port.port }));
  const hasAddress = clusterIP !== undefined && !isExternalName(spec);
  return {
    ...service,
    spec: {
      ...(clusterIP !== undefined && { clusterIP, clusterIPs }),
      ...(hasAddress && { ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" }),
      ...(shownPorts && { ports: shownPorts }),
      sessionAffinity: "None",
      ...(spec.sessionAffinity === "ClientIP" && { sessionAffinityConfig: AFFINITY }),
      ...(!isExternalName(spec) && { internalTrafficPolicy: "Cluster" }),
      ...(isPublished(spec) && { externalTrafficPolicy: "Cluster" }),
      ...spec,
    },
  };
});

/** Fields of an address, which an ExternalName has not; of a published port, which a ClusterIP has not. */
const OF_ADDRESS = ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"];
const OF_PUBLISHED = ["externalTrafficPolicy"];
const OF_LOAD_BALANCER = ["allocateLoadBalancerNodePorts", "loadBalancerClass"];

const portsOf = (spec: Fields): Fields[] => (Array.isArray(spec.ports) ? spec.ports.filter(isRecord) : []);
const nodePortsOf = (spec: Fields) => portsOf(spec).map(({ nodePort }) => nodePort || undefined);

/**
 * A write keeps the address and the node ports that it does not name, and a change of the type drops fields of the old one
 * that the client has left as they were. Source: core's `patchAllocatedValues`, `normalizeClusterIPs` and
 * `dropTypeDependentFields`.
 */
function keepAllocated(next: ApiObject, live: ApiObject): ApiObject {
  const [after, before] = [specOf(next), specOf(showServiceDefaults(live))];
  const spec: Record<string, unknown> = { ...after };
  const drop = (names: readonly string[]) => {
    for (const name of names) if (Bun.deepEquals(after[name], before[name])) delete spec[name];
  };
  if (isExternalName(after)) {
    if (!isExternalName(before)) drop(OF_ADDRESS);
  } else if (!isExternalName(before)) {
    if (!after.clusterIP) Object.assign(spec, { clusterIP: before.clusterIP, clusterIPs: before.clusterIPs });
    else if (after.clusterIP !== before.clusterIP) spec.clusterIPs = [after.clusterIP];
    if (isSingle(after) && !isSingle(before)) {
      // Source: core's `trimFieldsForDualStackDowngrade`.
      for (const name of ["clusterIPs", "ipFamilies"]) {
        const [all, known] = [spec[name], before[name]];
        if (Array.isArray(all) && Bun.deepEquals(all, known)) spec[name] = all.slice(0, 1);
      }
    }
  }
  if (isPublished(before) && isPublished(after)) spec.ports = withNodePorts(after, before);
  else if (isPublished(before)) {
    drop(OF_PUBLISHED);
    if (Bun.deepEquals(nodePortsOf(after), nodePortsOf(before))) {
      spec.ports = portsOf(after).map(({ nodePort: _port, ...port }) => port);
    }
  }
  if (before.type === "LoadBalancer" && after.type !== "LoadBalancer") drop(OF_LOAD_BALANCER);
  if (hasHealthCheck(before) && !hasHealthCheck(after)) drop(["healthCheckNodePort"]);
  return { ...next, spec };
}

/** Ports without a number get the one that the port of their name had, unless another one has it now. */
function withNodePorts(after: Fields, before: Fields): unknown {
  if (!Array.isArray(after.ports)) return after.ports;
  const used = new Set(nodePortsOf(after));
  const known = new Map(portsOf(before).map(({ name, nodePort }) => [name ?? "", nodePort]));
  return after.ports.map((port: unknown) => {
    if (!isRecord(port) || port.nodePort) return port;
    const nodePort = known.get(port.name ?? "");
    return nodePort && !used.has(nodePort) ? { ...port, nodePort } : port;
  });
}

const addressesOf = ({ clusterIP, clusterIPs }: Fields): unknown[] =>
  Array.isArray(clusterIPs) && clusterIPs[0] === clusterIP ? clusterIPs : [clusterIP];

/** Source: core validation `validateUpgradeDowngradeClusterIPs`. */
const refuseOtherAddress: RefuseChange = (next, live) => {
  const [after, before] = [specOf(next), specOf(live)];
  if (isExternalName(after) || isExternalName(before)) return [];
  const [next0, next1] = addressesOf(after);
  const [live0, live1] = addressesOf(before);
  const isKept = live0 === undefined || live0 === next0;
  // The second one may come and go.
  if (isKept && (live1 === undefined || next1 === undefined || live1 === next1)) return [];
  const shown = JSON.stringify(addressesOf(after));
  return [invalidValue(`spec.clusterIPs[${isKept ? 1 : 0}]`, shown, "may not change once set")];
};

/** Source: kubectl's printers and core/v1's selectable fields. */
export const SERVICE = manifestKind({
  kind: "Service",
  shortNames: ["svc"],
  categories: ["all"],
  subresources: ["status"],
  firstStatus: () => ({ loadBalancer: {} }),
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
  carryOver: keepAllocated,
  validateUpdate: refuseOtherAddress,
});

/** Source: kubectl's `formatEndpoints`. */
function formatEndpoints(object: ApiObject): string {
  const { subsets = [] } = object as { subsets?: { addresses?: { ip: string }[]; ports?: { port: number }[] }[] };
  const all = subsets.flatMap(({ addresses = [], ports = [] }) =>
    addresses.flatMap(({ ip }) => (ports.length === 0 ? [ip] : ports.map(({ port }) => `${ip}:${port}`))),
  );
  return firstThree(all) || "<none>";
}

export const ENDPOINTS = manifestKind({
  kind: "Endpoints",
  plural: "endpoints",
  singular: "endpoints",
  shortNames: ["ep"],
  columns: [text("Endpoints", formatEndpoints)],
});

const asSlice = (object: ApiObject) => object as unknown as EndpointSlice;

export const ENDPOINT_SLICE = manifestKind({
  group: "discovery.k8s.io",
  otherVersions: [{ version: "v1beta1", deprecation: "v1.21+, unavailable in v1.25+" }],
  kind: "EndpointSlice",
  validateUpdate: (next, live) =>
    asSlice(next).addressType === asSlice(live).addressType ? [] : [fixed("addressType")],
  columns: [
    text("AddressType", (it) => asSlice(it).addressType),
    text(
      "Ports",
      (it) =>
        asSlice(it)
          .ports?.map(({ port }) => port)
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
});
