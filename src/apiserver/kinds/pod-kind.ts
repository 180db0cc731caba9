import * as v from "valibot";
import type { EphemeralContainer, Pod, PodCondition, PodStatus } from "../../base/api/pod.ts";
import { PodConditionSchema } from "../../base/api/pod.ts";
import { text } from "../../base/api/scalar.ts";
import { isRecord } from "../../base/text/json.ts";
import { computeQosClass } from "../../plan/pod-resources.ts";
import { isFinished } from "../../plan/service-endpoints.ts";
import { foreignConditions } from "../../plan/status/compute-pod-status.ts";
import { invalid, type StatusCause } from "../api-error.ts";
import type { ApiObject } from "../object-store.ts";
import { POD_COLUMNS } from "../printers/rows.ts";
import type { ReadOptions } from "../resource-definition.ts";
import { bySchema, manifestKind, printed, readObject } from "./define-kind.ts";

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
  subresources: ["status", "ephemeralcontainers"],
  firstStatus: (it) => ({ phase: "Pending", qosClass: computeQosClass(asPod(it)) }),
  nodeWrites: { status: acceptStatus, ephemeralcontainers: acceptEphemeralContainers },
  fate: "pods",
  decode: (object, options) => readObject(object, options, true),
  validateCreate: (next) => refuseEphemeralContainers(next, undefined),
  validateUpdate: refuseEphemeralContainers,
  carryOver: keepEphemeralContainers,
  gracefulDeletion: true,
});

const END = { phase: v.optional(text), reason: v.optional(text), message: v.optional(text) };
const readStatus = bySchema(v.object({ conditions: v.optional(v.array(PodConditionSchema)), ...END }));
/** Bytes of what is kept of the status that a client has written. */
const MAX_STATUS_BYTES = 32_768;

/**
 * The kubelet keeps conditions that it does not compute and the end of a pod, and overwrites the rest of a status. Source: its
 * status manager and `generateAPIPodStatus`.
 */
function acceptStatus({ status }: ApiObject, live: ApiObject): ApiObject {
  const { apiVersion, kind, metadata } = live;
  const { conditions: written = [], phase, reason, message } = isRecord(status) ? status : {};
  const isEnd = !isFinished(asPod(live)) && isFinished({ status: { phase } } as Pod);
  const end = isEnd ? { phase, reason, message } : {};
  const { object, causes } = readStatus({
    ...{ apiVersion, kind, metadata: { name: metadata.name }, conditions: written },
    ...end,
  });
  const { conditions: read = [] } = object as PodStatus;
  const byType = new Map(read.map((it) => [it.type, it]));
  const conditions = [...byType.values()];
  const found = [...causes];
  const add = (field: string, reason: string, message: string) => void found.push({ reason, field, message });
  const isKnown = ({ type, status: is }: PodCondition) => type !== "" && /^(True|False|Unknown)$/.test(is);
  if (!conditions.every(isKnown))
    add("conditions", "FieldValueInvalid", "Invalid value: each needs a type, and a status True, False or Unknown");
  if (JSON.stringify([foreignConditions(conditions), end]).length > MAX_STATUS_BYTES)
    add("conditions", "FieldValueTooLong", `Too long: may not have more than ${MAX_STATUS_BYTES} bytes`);
  const all = found.map((cause) => ({ ...cause, field: `status.${cause.field}` }));
  if (all.length > 0) throw invalid("", "Pod", metadata.name, all);
  return { ...live, status: { ...podStatus(live), ...end, conditions } };
}

/** Ephemeral containers of a pod as the API shows them; empty for every other object. */
export const ephemeralContainersOf = ({ spec }: ApiObject): readonly unknown[] =>
  isRecord(spec) && Array.isArray(spec.ephemeralContainers) ? spec.ephemeralContainers : [];

/** The pod as its manifest describes it: ephemeral containers belong to the running pod only. */
export function withoutEphemeralContainers<T extends ApiObject>(object: T): T {
  if (!isRecord(object.spec) || !("ephemeralContainers" in object.spec)) return object;
  const { ephemeralContainers: _, ...spec } = object.spec;
  return { ...object, spec };
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

const EPHEMERAL_FIELD = "spec.ephemeralContainers";

/** They belong to the running pod, of any source: no manifest changes. */
function acceptEphemeralContainers(written: ApiObject, live: ApiObject, options: ReadOptions): ApiObject {
  const { status: _, ...rest } = live;
  const spec = { ...asPod(live).spec, ephemeralContainers: ephemeralContainersOf(written) };
  const { object, causes, unknown } = readObject({ ...rest, spec }, options, true);
  const containers = asPod(object).spec.ephemeralContainers ?? [];
  // The pod runs: only what was added is judged.
  const own = [
    ...causes.filter(({ field = "" }) => field.startsWith(EPHEMERAL_FIELD)),
    ...unknown
      .filter((message) => message.includes(EPHEMERAL_FIELD))
      .map((message) => ({
        reason: "FieldValueInvalid",
        field: EPHEMERAL_FIELD,
        message: `Invalid value: ${message}`,
      })),
    ...(asPod(live).spec.ephemeralContainers ?? []).flatMap((before) => refuseLoss(before, containers)),
  ];
  if (own.length > 0) throw invalid("", "Pod", live.metadata.name, own);
  return { ...live, spec: { ...spec, ephemeralContainers: containers } };
}

/** Source: core validation `ValidatePodEphemeralContainersUpdate`. */
function refuseLoss(before: EphemeralContainer, after: readonly EphemeralContainer[]): StatusCause[] {
  const same = after.find(({ name }) => name === before.name);
  if (same && Bun.deepEquals(same, before)) return [];
  const message = `Forbidden: existing ephemeral containers "${before.name}" may not be ${same ? "changed" : "removed"}`;
  return [{ reason: "FieldValueForbidden", field: EPHEMERAL_FIELD, message }];
}

/** Source: core/v1 `EphemeralContainers` of Kubernetes 1.16 to 1.22. */
export const toOldEphemeralContainers = (object: ApiObject): ApiObject => {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  return {
    kind: "EphemeralContainers",
    apiVersion: "v1",
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    ephemeralContainers: ephemeralContainersOf(object),
  };
};
