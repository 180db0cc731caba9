import * as v from "valibot";
import { EVENT_FIELDS } from "../../base/api/event.ts";
import { ObjectMetaSchema } from "../../base/api/meta.ts";
import { int32, int32Pointer, raw, text as string, textList, textPointer, timeOmitted } from "../../base/api/scalar.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { checkDnsLabel } from "../../manifest/validate/names.ts";
import { invalidValue, type StatusCause } from "../api-error.ts";
import { type ApiObject, checkObjectName, type ObjectStore } from "../object-store.ts";
import { EVENT_COLUMNS, NODE_COLUMNS, type NodeObject } from "../printers/rows.ts";
import { ALL_VERBS, type Decoded, READ_VERBS, type ResourceDefinition } from "../resource-definition.ts";
import { apiKind, bySchema, forbidden, isOther, manifestKind, printed, specOf, text, without } from "./define-kind.ts";

const NAMESPACE_SCHEMA = v.object({
  metadata: ObjectMetaSchema,
  spec: v.optional(v.object({ finalizers: v.optional(textList) })),
  status: v.optional(raw),
});
const readNamespace = bySchema(NAMESPACE_SCHEMA);

export const NAMESPACE = apiKind({
  kind: "Namespace",
  shortNames: ["ns"],
  namespaced: false,
  schema: NAMESPACE_SCHEMA,
  verbs: ALL_VERBS.filter((verb) => verb !== "deletecollection"),
  columns: [text("Status", ({ status }) => (status as { phase?: string } | undefined)?.phase ?? "Active")],
  fields: { "status.phase": ({ status }) => (status as { phase?: string } | undefined)?.phase ?? "Active" },
  subresources: ["status"],
  observedStatus: true,
  hasGeneration: false,
  decode: decodeNamespace,
});

/** Adds a namespace that is used and was never submitted. */
export function ensureNamespace(store: ObjectStore, name: string, now: Date): void {
  if (store.get("namespaces", undefined, name)) return;
  const metadata = { name, uid: `namespace-${name}`, creationTimestamp: toApiTime(now) };
  store.put("namespaces", decodeNamespace({ apiVersion: "v1", kind: "Namespace", metadata }).object);
}

function decodeNamespace(object: ApiObject): Decoded {
  const { metadata, ...rest } = object;
  const decoded = readNamespace({
    spec: { finalizers: ["kubernetes"] },
    status: { phase: "Active" },
    ...rest,
    metadata: { ...metadata, labels: { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name } },
  });
  const { namespace: _namespace, ...own } = decoded.object.metadata;
  const causes = checkObjectName(own.name, checkDnsLabel);
  return { ...decoded, object: { ...decoded.object, metadata: own }, causes: [...decoded.causes, ...causes] };
}

const NODE_SCHEMA = v.object({ metadata: ObjectMetaSchema, spec: v.optional(raw), status: v.optional(raw) });
const asNode = (object: ApiObject) => object as unknown as NodeObject;
export const NODE = manifestKind({
  kind: "Node",
  shortNames: ["no"],
  namespaced: false,
  verbs: [...READ_VERBS, "patch", "update"],
  decode: bySchema(NODE_SCHEMA),
  columns: printed(NODE_COLUMNS),
  fields: { "spec.unschedulable": (it) => String(isUnschedulable(it)) },
  subresources: ["status"],
  observedStatus: true,
  hasGeneration: false,
  fate: "node",
  validateUpdate: refuseOtherThanCordon,
});

const isUnschedulable = (node: ApiObject): boolean => asNode(node).spec.unschedulable === true;

/** `unschedulable` is all that can be written of the spec: flags and the machine decide the rest. */
function refuseOtherThanCordon(next: ApiObject, previous: ApiObject): StatusCause[] {
  const cordon = new Set(["unschedulable"]);
  const [after, before] = [next, previous].map((node) => without(specOf(node), cordon));
  const why = "only spec.unschedulable can be changed: the taints of this node come from --register-with-taints";
  return isOther(after, before) ? [forbidden("spec", why)] : [];
}

/** A Lease names the process of a program that leads, and until when; that of the node says that it is alive. */
export const LEASE = apiKind({
  group: "coordination.k8s.io",
  kind: "Lease",
  schema: v.object({
    metadata: ObjectMetaSchema,
    // Times with fractions of seconds are texts.
    spec: v.optional(
      v.object({
        holderIdentity: v.optional(textPointer),
        leaseDurationSeconds: v.optional(int32Pointer),
        acquireTime: v.optional(textPointer),
        renewTime: v.optional(textPointer),
        leaseTransitions: v.optional(int32Pointer),
      }),
    ),
  }),
  validateCreate: refuseWrongLease,
  validateUpdate: refuseWrongLease,
  hasGeneration: false,
  columns: [text("Holder", (it) => specOf(it).holderIdentity)],
});

/** Source: coordination validation `ValidateLeaseSpec`. */
function refuseWrongLease(lease: ApiObject): StatusCause[] {
  return [
    ["leaseDurationSeconds", 1, "must be greater than 0"] as const,
    ["leaseTransitions", 0, "must be greater than or equal to 0"] as const,
  ].flatMap(([name, least, why]) => {
    const value = specOf(lease)[name] ?? least;
    return Number(value) < least ? invalidValue(`spec.${name}`, value, why) : [];
  });
}

const optionalText = v.optional(string);

/** Source: core/v1 `ObjectReference`. */
const ReferenceSchema = v.object({
  kind: v.optional(string, ""),
  namespace: optionalText,
  name: v.optional(string, ""),
  uid: optionalText,
  apiVersion: optionalText,
  resourceVersion: optionalText,
  fieldPath: optionalText,
});

/** Times with fractions of seconds are texts. Source: core/v1 `Event`. */
const FIELDS = {
  involvedObject: ReferenceSchema,
  reason: optionalText,
  message: v.optional(string, ""),
  source: v.optional(v.object({ component: optionalText, host: optionalText }), {}),
  firstTimestamp: v.optional(timeOmitted),
  lastTimestamp: v.optional(timeOmitted),
  count: v.optional(int32),
  type: optionalText,
  eventTime: optionalText,
  series: v.optional(v.object({ count: v.optional(int32), lastObservedTime: optionalText })),
  action: optionalText,
  related: v.optional(ReferenceSchema),
  reportingComponent: v.optional(string, ""),
  reportingInstance: v.optional(string, ""),
};

/** Fields that events.k8s.io calls otherwise. Source: the conversion of events/v1. */
const NEW_NAMES: Readonly<Record<string, string>> = {
  involvedObject: "regarding",
  message: "note",
  reportingComponent: "reportingController",
  source: "deprecatedSource",
  firstTimestamp: "deprecatedFirstTimestamp",
  lastTimestamp: "deprecatedLastTimestamp",
  count: "deprecatedCount",
};
const OLD_NAMES = Object.fromEntries(Object.entries(NEW_NAMES).map(([old, name]) => [name, old]));

const rename = <T extends object>(object: T, names: Readonly<Record<string, string>>): T =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [names[name] ?? name, value])) as T;

/** An event of a client is in memory. */
const MAX_BYTES = 8_192;

function refuseWrongEvent({ metadata: { managedFields: _fields, ...metadata }, ...event }: ApiObject): StatusCause[] {
  const { namespace = "" } = event.involvedObject as { namespace?: string };
  const isOfNamespace = (namespace || "default") === metadata.namespace;
  const isShort = Buffer.byteLength(JSON.stringify({ ...event, metadata })) <= MAX_BYTES;
  const why = `Invalid value: ${JSON.stringify(namespace)}: does not match event.namespace`;
  const rows: [isRight: boolean, field: string, message: string][] = [
    [isOfNamespace, "involvedObject.namespace", why],
    [isShort, "message", `Too long: the event may have at most ${MAX_BYTES} bytes`],
  ];
  return rows.flatMap(([isRight, field, message]) => (isRight ? [] : { reason: "FieldValueInvalid", field, message }));
}

const schemaOf = (fields: typeof FIELDS) => v.object({ metadata: ObjectMetaSchema, ...fields });

export const EVENT = apiKind({
  kind: "Event",
  shortNames: ["ev"],
  schema: schemaOf(FIELDS),
  otherVersions: [
    {
      group: "events.k8s.io",
      version: "v1",
      schema: schemaOf(rename(FIELDS, NEW_NAMES)),
      conversion: {
        fromPreferred: (event) => rename(event, NEW_NAMES),
        toPreferred: (event) => rename(event, OLD_NAMES),
      },
    },
  ],
  columns: printed(EVENT_COLUMNS),
  fields: EVENT_FIELDS as unknown as NonNullable<ResourceDefinition["fields"]>,
  fate: "observed",
  validateCreate: refuseWrongEvent,
  validateUpdate: refuseWrongEvent,
});
