import type { Pod } from "../../base/api/pod.ts";
import type { Service } from "../../base/api/service.ts";
import { containersOf } from "../../base/model/pod-containers.ts";
import {
  type DescribedObject,
  describeAnnotations,
  describeEvents,
  type ObjectSurroundings,
  pairs,
} from "./describe-pod.ts";
import { describeWorkload } from "./describe-workload.ts";
import { Description } from "./text-table.ts";

/** `kubelet-ts describe` of kinds other than Pod and Node, in kubectl's layout. */
export function describeObject(object: DescribedObject, around: ObjectSurroundings): string {
  const { kind, metadata } = object;
  const out = new Description();
  out.field(0, "Name", metadata.name);
  if (metadata.namespace !== undefined) out.field(0, "Namespace", metadata.namespace);
  out.optional(0, "Manifest", around.manifest);
  if (!describeWorkload(out, object, around)) {
    describeMetadata(out, object);
    const describe = DESCRIBERS[kind];
    if (describe) describe(out, object, around);
    else describeFields(out, 0, withoutShown(object));
  }
  if (kind !== "Secret" && kind !== "Namespace") describeEvents(out, around.events, around.times.now);
  return out.toString();
}

function describeMetadata(out: Description, { metadata }: DescribedObject): void {
  out.list(0, "Labels", pairs(metadata.labels, "="));
  describeAnnotations(out, 0, metadata.annotations ?? {});
}

type Describe = (out: Description, object: DescribedObject, around: ObjectSurroundings) => void;

/** Kinds with a layout of their own, besides workloads. */
const DESCRIBERS: Readonly<Record<string, Describe>> = {
  Service: (out, object, { pods }) => describeService(out, object as unknown as Service, pods),
  ConfigMap: describeConfigMap,
  Secret: describeSecret,
  Namespace: (out, { status }) => out.field(0, "Status", (status as { phase?: string } | undefined)?.phase),
};

const MAX_ENDPOINTS = 3;

/** Source: kubectl's `describeService`. */
function describeService(out: Description, { spec }: Service, pods: readonly Pod[]): void {
  out.field(0, "Selector", pairs(spec.selector, "=").join(",") || "<none>");
  out.field(0, "Type", spec.type);
  out.optional(0, "IP Family Policy", spec.ipFamilyPolicy ?? undefined);
  out.field(0, "IP Families", spec.ipFamilies?.join(",") || "<none>");
  out.field(0, "IP", spec.clusterIP ?? "");
  out.field(0, "IPs", spec.clusterIPs?.join(",") || "<none>");
  out.optional(0, "External IPs", spec.externalIPs?.join(","));
  out.optional(0, "External Name", spec.externalName);
  for (const { name, port, protocol, targetPort = port, nodePort } of spec.ports ?? []) {
    const shown = name || "<unset>";
    out.cells(0, ["Port:", shown, `${port}/${protocol}`]);
    out.field(0, "TargetPort", `${targetPort}/${protocol}`);
    if (nodePort) out.cells(0, ["NodePort:", shown, `${nodePort}/${protocol}`]);
    out.field(0, "Endpoints", endpointsText(pods, targetPort));
  }
  out.field(0, "Session Affinity", spec.sessionAffinity ?? "None");
  out.optional(0, "External Traffic Policy", spec.externalTrafficPolicy);
}

/** Addresses of the pods that are ready. Source: kubectl's `formatEndpoints`. */
function endpointsText(pods: readonly Pod[], targetPort: number | string): string {
  const addresses = pods.flatMap(({ spec, status }) => {
    const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True");
    const ports = containersOf(spec).flatMap(({ ports: of = [] }) => of);
    const port =
      typeof targetPort === "number" ? targetPort : ports.find((it) => it.name === targetPort)?.containerPort;
    return isReady && status?.podIP && port !== undefined ? `${status.podIP}:${port}` : [];
  });
  const more = addresses.length - MAX_ENDPOINTS;
  return `${addresses.slice(0, MAX_ENDPOINTS).join(",") || "<none>"}${more > 0 ? ` + ${more} more...` : ""}`;
}

/** Source: kubectl's `ConfigMapDescriber`. */
function describeConfigMap(out: Description, object: DescribedObject): void {
  const { data = {}, binaryData = {} } = object as {
    data?: Record<string, string>;
    binaryData?: Record<string, string>;
  };
  for (const line of ["", "Data", "===="]) out.line(0, line);
  for (const [key, value] of Object.entries(data)) {
    out.line(0, `${key}:`);
    out.line(0, "----");
    for (const line of [...value.split("\n"), ""]) out.line(0, line);
  }
  for (const line of ["", "BinaryData", "===="]) out.line(0, line);
  for (const [key, value] of Object.entries(binaryData)) {
    out.line(0, `${key}: ${Buffer.from(value, "base64").length} bytes`);
  }
  out.line(0, "");
}

/** Sizes only. Source: kubectl's `describeSecret`. */
function describeSecret(out: Description, object: DescribedObject): void {
  const { type, data = {} } = object as { type?: string; data?: Record<string, string> };
  out.line(0, "");
  out.field(0, "Type", type ?? "Opaque");
  for (const line of ["", "Data", "===="]) out.line(0, line);
  for (const [key, value] of Object.entries(data)) {
    out.field(0, key, `${Buffer.from(value, "base64").length} bytes`);
  }
}

/** Leaves out the fields printed above the others, and managedFields, which only programs read. */
function withoutShown({ metadata, ...rest }: DescribedObject): Record<string, unknown> {
  const {
    name: _n,
    namespace: _ns,
    labels: _l,
    annotations: _a,
    managedFields: _m,
    ...others
  } = metadata as Record<string, unknown>;
  return { ...rest, metadata: others };
}

/** Any object, field by field. Source: kubectl's `printUnstructuredContent`. */
function describeFields(out: Description, depth: number, fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields).toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    if (Array.isArray(value)) {
      out.heading(depth, titleOf(name));
      for (const item of value as unknown[]) {
        if (isFields(item)) describeFields(out, depth + 1, item);
        else out.line(depth + 1, String(item));
      }
    } else if (isFields(value)) {
      out.heading(depth, titleOf(name));
      describeFields(out, depth + 1, value);
    } else out.field(depth, titleOf(name), value === null ? "<nil>" : String(value));
  }
}

const isFields = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

const ACRONYMS = new Set(["API", "URL", "UID", "OSB", "GUID"]);

/** `apiVersion` as `API Version`; a name with other characters stays. Source: kubectl's `smartLabelFor`. */
function titleOf(name: string): string {
  if (!/^[A-Za-z-]+$/.test(name)) return name;
  const words = name.match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+|-/g) ?? [name];
  return words
    .map((word) =>
      ACRONYMS.has(word.toUpperCase()) ? word.toUpperCase() : `${word.charAt(0).toUpperCase()}${word.slice(1)}`,
    )
    .join(" ");
}
