import type { Pod } from "../../base/api/pod.ts";
import { isRecord } from "../../base/text/json.ts";
import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../object-store.ts";
import { POD_COLUMNS } from "../printers/pod-row.ts";
import type { Decoded, ReadOptions } from "../resource-definition.ts";
import { manifestKind, printed, readObject } from "./define-kind.ts";

const asPod = (object: ApiObject) => object as unknown as Pod;

const podStatus = (object: ApiObject) => asPod(object).status;

/** Source: core/v1's selectable fields. */
export const POD = manifestKind({
  kind: "Pod",
  shortNames: ["po"],
  categories: ["all"],
  columns: printed(POD_COLUMNS),
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
  fate: "pods",
  decode: decodePod,
  validateCreate: (next) => refuseEphemeralContainers(next, undefined),
  validateUpdate: refuseEphemeralContainers,
  carryOver: keepEphemeralContainers,
  gracefulDeletion: true,
  description: "Pod is a collection of containers that can run on a host.",
});

/** Ephemeral containers of a pod as the API shows them; empty for every other object. */
export const ephemeralContainersOf = ({ spec }: ApiObject): readonly unknown[] =>
  isRecord(spec) && Array.isArray(spec.ephemeralContainers) ? spec.ephemeralContainers : [];

/** The pod as its manifest describes it: ephemeral containers belong to the running pod only. */
export function withoutEphemeralContainers<T extends ApiObject>(object: T): T {
  if (!isRecord(object.spec) || !("ephemeralContainers" in object.spec)) return object;
  const { ephemeralContainers: _, ...spec } = object.spec;
  return { ...object, spec };
}

/** Decodes a pod without its ephemeral containers, and puts them back as they are. */
function decodePod(object: ApiObject, options: ReadOptions): Decoded {
  const ephemeralContainers = ephemeralContainersOf(object);
  const decoded = readObject(withoutEphemeralContainers(object), options);
  if (ephemeralContainers.length === 0) return decoded;
  const spec = { ...(decoded.object.spec as object), ephemeralContainers };
  return { ...decoded, object: { ...decoded.object, spec } };
}

/** A write to the pod that leaves them out does not remove them. */
function keepEphemeralContainers(next: ApiObject, live: ApiObject): ApiObject {
  const kept = ephemeralContainersOf(live);
  if (kept.length === 0 || ephemeralContainersOf(next).length > 0) return next;
  return { ...next, spec: { ...(next.spec as object), ephemeralContainers: kept } };
}

/** They are changed by the subresource alone. @param previous undefined when the pod is created */
function refuseEphemeralContainers(next: ApiObject, previous: ApiObject | undefined): StatusCause[] {
  const before = previous ? ephemeralContainersOf(previous) : [];
  if (Bun.deepEquals(ephemeralContainersOf(next), before)) return [];
  const message = previous
    ? "Forbidden: a pod update may not change ephemeral containers: use the subresource ephemeralcontainers (kubectl debug)"
    : "Forbidden: cannot be set on create";
  return [{ reason: "FieldValueForbidden", field: "spec.ephemeralContainers", message }];
}
