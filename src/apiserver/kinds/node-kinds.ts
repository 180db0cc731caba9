import * as v from "valibot";
import { ObjectMetaSchema } from "../../base/api/meta.ts";
import { raw, textList } from "../../base/api/scalar.ts";
import { toApiTime } from "../../base/text/api-time.ts";
import { checkDnsLabel } from "../../manifest/validate/names.ts";
import type { StatusCause } from "../api-error.ts";
import { type ApiObject, checkObjectName, type ObjectStore } from "../object-store.ts";
import { NODE_COLUMNS, type NodeObject } from "../printers/node-row.ts";
import { ALL_VERBS, type Decoded, READ_VERBS } from "../resource-definition.ts";
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
