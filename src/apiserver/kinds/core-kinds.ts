import type { CoreEvent } from "../../base/api/event.ts";
import type { Pod } from "../../base/api/pod.ts";
import { checkDnsLabel } from "../../manifest/validate/names.ts";
import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../api-object.ts";
import { toEventRow } from "../printers/event-row.ts";
import { type NodeObject, toNodeRow } from "../printers/node-row.ts";
import { formatReadinessGates, formatRestarts, summarizePod } from "../printers/pod-row.ts";
import { ALL_VERBS, type Column, type Decoded, READ_VERBS, type ResourceDefinition } from "../resource-definition.ts";
import { decodeByManifest, type ReadSubmitted, refuseImmutable } from "./decode-manifest.ts";
import { decodeAround, keepEphemeralContainers, refuseEphemeralContainers } from "./ephemeral-containers.ts";
import { refuseOtherType } from "./immutable-fields.ts";
import { text } from "./kind-row.ts";

const core = { group: "", version: "v1" } as const;

const asPod = (object: ApiObject) => object as unknown as Pod;
const asEvent = (object: ApiObject) => object as unknown as CoreEvent;

const summaries = new WeakMap<ApiObject, ReturnType<typeof summarizePod>>();

function summaryOf(object: ApiObject) {
  let summary = summaries.get(object);
  if (!summary) {
    summary = summarizePod(asPod(object));
    summaries.set(object, summary);
  }
  return summary;
}

const podStatus = (object: ApiObject) => asPod(object).status;

/** Source: kubectl's printers and core/v1's selectable fields. */
const pods = (read: ReadSubmitted): ResourceDefinition => ({
  ...core,
  kind: "Pod",
  plural: "pods",
  singular: "pod",
  shortNames: ["po"],
  categories: ["all"],
  namespaced: true,
  verbs: ALL_VERBS,
  columns: [
    text("Ready", (it) => `${summaryOf(it).ready}/${summaryOf(it).total}`),
    text("Status", (it) => summaryOf(it).status),
    text("Restarts", (it, now) => formatRestarts(summaryOf(it), now)),
    text("IP", (it) => podStatus(it)?.podIP || "<none>", 1),
    text("Node", (it) => asPod(it).spec.nodeName || "<none>", 1),
    text("Nominated Node", (it) => podStatus(it)?.nominatedNodeName || "<none>", 1),
    text("Readiness Gates", (it) => formatReadinessGates(asPod(it)), 1),
  ],
  fields: {
    "spec.nodeName": (it) => asPod(it).spec.nodeName ?? "",
    "spec.restartPolicy": (it) => asPod(it).spec.restartPolicy ?? "",
    "spec.schedulerName": (it) => asPod(it).spec.schedulerName ?? "",
    "spec.serviceAccountName": (it) => asPod(it).spec.serviceAccountName ?? "",
    "spec.hostNetwork": (it) => String(asPod(it).spec.hostNetwork ?? false),
    "status.phase": (it) => podStatus(it)?.phase ?? "",
    "status.podIP": (it) => podStatus(it)?.podIP ?? "",
    "status.nominatedNodeName": (it) => podStatus(it)?.nominatedNodeName ?? "",
  },
  subresources: ["status"],
  observedStatus: true,
  storage: "file",
  decode: (object) => decodeAround(object, (pod) => decodeByManifest(read, pod)),
  validateCreate: (next) => refuseEphemeralContainers(next, undefined),
  validateUpdate: refuseEphemeralContainers,
  carryOver: keepEphemeralContainers,
  gracefulDeletion: true,
  description: "Pod is a collection of containers that can run on a host.",
});

const configMaps = (read: ReadSubmitted): ResourceDefinition => ({
  ...core,
  kind: "ConfigMap",
  plural: "configmaps",
  singular: "configmap",
  shortNames: ["cm"],
  namespaced: true,
  verbs: ALL_VERBS,
  columns: [
    { name: "Data", type: "integer", value: ({ data, binaryData }) => countKeys(data) + countKeys(binaryData) },
  ],
  storage: "file",
  decode: (object) => decodeByManifest(read, object),
  validateUpdate: refuseImmutable,
  description: "ConfigMap holds configuration data for pods to consume.",
});

const secrets = (read: ReadSubmitted): ResourceDefinition => ({
  ...core,
  kind: "Secret",
  plural: "secrets",
  singular: "secret",
  namespaced: true,
  verbs: ALL_VERBS,
  columns: [
    text("Type", ({ type }) => String(type ?? "Opaque")),
    { name: "Data", type: "integer", value: ({ data }) => countKeys(data) },
  ],
  fields: { type: ({ type }) => String(type ?? "") },
  storage: "file",
  decode: (object) => decodeByManifest(read, object),
  validateUpdate: (next, previous) => [...refuseImmutable(next, previous), ...refuseOtherType(next, previous)],
  isSecret: true,
  description: "Secret holds secret data of a certain type.",
});

const countKeys = (map: unknown) => Object.keys((map as Record<string, unknown> | undefined) ?? {}).length;

const namespaces: ResourceDefinition = {
  ...core,
  kind: "Namespace",
  plural: "namespaces",
  singular: "namespace",
  shortNames: ["ns"],
  namespaced: false,
  verbs: ALL_VERBS.filter((verb) => verb !== "deletecollection"),
  columns: [text("Status", ({ status }) => (status as { phase?: string } | undefined)?.phase ?? "Active")],
  fields: { "status.phase": ({ status }) => (status as { phase?: string } | undefined)?.phase ?? "Active" },
  subresources: ["status"],
  observedStatus: true,
  storage: "file",
  decode: decodeNamespace,
  description: "Namespace provides a scope for Names.",
};

function decodeNamespace(object: ApiObject): Decoded {
  const { apiVersion, kind, metadata, spec, status } = object;
  const { namespace: _namespace, ...own } = metadata;
  const labels = { ...own.labels, "kubernetes.io/metadata.name": own.name };
  const causes = checkDnsLabel(own.name).map((message) => ({
    reason: "FieldValueInvalid",
    field: "metadata.name",
    message: `Invalid value: ${JSON.stringify(own.name)}: ${message}`,
  }));
  const known = ["apiVersion", "kind", "metadata", "spec", "status"];
  const unknown = Object.keys(object).filter((field) => !known.includes(field));
  return {
    object: {
      apiVersion,
      kind,
      metadata: { ...own, labels },
      spec: spec ?? { finalizers: ["kubernetes"] },
      status: status ?? { phase: "Active" },
    },
    causes,
    unknown: unknown.map((field) => `unknown field "${field}"`),
    warnings: [],
  };
}

const asNode = (object: ApiObject) => object as unknown as NodeObject;
const nodeCell =
  (index: number): Column["value"] =>
  (it, now) =>
    toNodeRow(asNode(it), now, true)[index] ?? "";

const nodes: ResourceDefinition = {
  ...core,
  kind: "Node",
  plural: "nodes",
  singular: "node",
  shortNames: ["no"],
  namespaced: false,
  verbs: [...READ_VERBS, "patch", "update"],
  columns: [
    text("Status", nodeCell(1)),
    text("Roles", nodeCell(2)),
    text("Age", nodeCell(3)),
    text("Version", nodeCell(4)),
    text("Internal-IP", nodeCell(5), 1),
    text("External-IP", nodeCell(6), 1),
    text("OS-Image", nodeCell(7), 1),
    text("Kernel-Version", nodeCell(8), 1),
    text("Container-Runtime", nodeCell(9), 1),
  ],
  fields: { "spec.unschedulable": (it) => String(isUnschedulable(it)) },
  subresources: ["status"],
  observedStatus: true,
  storage: "node",
  validateUpdate: refuseOtherThanCordon,
  description: "Node is the machine this API is served from.",
};

export const isUnschedulable = (node: ApiObject): boolean => asNode(node).spec.unschedulable === true;

/** Only `spec.unschedulable` can be written: flags and the machine decide everything else. */
function refuseOtherThanCordon(next: ApiObject, previous: ApiObject): StatusCause[] {
  const forbidden = (field: string, fix: string): StatusCause => ({
    reason: "FieldValueForbidden",
    field,
    message: `Forbidden: ${fix}`,
  });
  const { unschedulable: _next, taints, ...spec } = asNode(next).spec as NodeSpec;
  const { unschedulable: _previous, taints: taintsBefore, ...specBefore } = asNode(previous).spec as NodeSpec;
  const same = (a: object | undefined, b: object | undefined) => Bun.deepEquals(a ?? {}, b ?? {});
  return [
    ...(same(next.metadata.labels, previous.metadata.labels)
      ? []
      : [forbidden("metadata.labels", "the labels of this node come from --node-labels")]),
    ...(same(next.metadata.annotations, previous.metadata.annotations)
      ? []
      : [forbidden("metadata.annotations", "this node keeps no annotations")]),
    ...(same(taints, taintsBefore)
      ? []
      : [forbidden("spec.taints", "the taints of this node come from --register-with-taints")]),
    ...(same(spec, specBefore) ? [] : [forbidden("spec", "only spec.unschedulable can be changed")]),
  ];
}

type NodeSpec = NodeObject["spec"] & Record<string, unknown>;

const eventCell =
  (index: number): Column["value"] =>
  (it, now) =>
    toEventRow(asEvent(it), now, true)[index] ?? "";

const events: ResourceDefinition = {
  ...core,
  kind: "Event",
  plural: "events",
  singular: "event",
  shortNames: ["ev"],
  namespaced: true,
  verbs: READ_VERBS,
  columns: [
    text("Last Seen", eventCell(0)),
    text("Type", eventCell(1)),
    text("Reason", eventCell(2)),
    text("Object", eventCell(3)),
    text("Subobject", eventCell(4), 1),
    text("Source", eventCell(5), 1),
    text("Message", eventCell(6)),
    text("First Seen", eventCell(7), 1),
    { name: "Count", type: "integer", value: (it) => asEvent(it).count, priority: 1 },
    { name: "Name", type: "string", format: "name", value: ({ metadata }) => metadata.name, priority: 1 },
  ],
  fields: {
    "involvedObject.kind": (it) => asEvent(it).involvedObject.kind,
    "involvedObject.name": (it) => asEvent(it).involvedObject.name,
    "involvedObject.namespace": (it) => asEvent(it).involvedObject.namespace,
    "involvedObject.uid": (it) => asEvent(it).involvedObject.uid,
    "involvedObject.apiVersion": (it) => asEvent(it).involvedObject.apiVersion,
    "involvedObject.resourceVersion": () => "",
    "involvedObject.fieldPath": (it) => asEvent(it).involvedObject.fieldPath ?? "",
    reason: (it) => asEvent(it).reason,
    reportingComponent: (it) => asEvent(it).reportingComponent,
    source: (it) => asEvent(it).source.component,
    type: (it) => asEvent(it).type,
  },
  storage: "memory",
  description: "Event is a report of an event somewhere in the cluster.",
};

/** Kinds of the core group that every node serves. */
export const coreKinds = (read: ReadSubmitted): ResourceDefinition[] => [
  namespaces,
  nodes,
  pods(read),
  configMaps(read),
  secrets(read),
  events,
];
