import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../api-object.ts";
import { type Fields, specOf } from "./kind-row.ts";

/** Refuses changes of some fields; the causes have upstream's paths. */
type RefuseChange = (next: ApiObject, previous: ApiObject) => StatusCause[];

const fixed = (field: string): StatusCause => ({
  reason: "FieldValueInvalid",
  field,
  message: "Invalid value: field is immutable: delete the object and create it again",
});

const forbidden = (field: string, message: string): StatusCause => ({
  reason: "FieldValueForbidden",
  field,
  message: `Forbidden: ${message}`,
});

const isOther = (a: unknown, b: unknown): boolean => !Bun.deepEquals(a ?? {}, b ?? {});

/** Refuses other values of fields of the spec. */
const fixedSpec =
  (...names: string[]): RefuseChange =>
  (next, previous) =>
    names.filter((name) => isOther(specOf(next)[name], specOf(previous)[name])).map((name) => fixed(`spec.${name}`));

const without = (spec: Fields, names: ReadonlySet<string>): Fields =>
  Object.fromEntries(Object.entries(spec).filter(([name]) => !names.has(name)));

/** The three of 1.20, and those that later versions let change. */
const MUTABLE_OF_STATEFUL_SET: ReadonlySet<string> = new Set([
  "replicas",
  "template",
  "updateStrategy",
  "minReadySeconds",
  "ordinals",
  "persistentVolumeClaimRetentionPolicy",
  "revisionHistoryLimit",
]);

function refuseStatefulSet(next: ApiObject, previous: ApiObject): StatusCause[] {
  const [after, before] = [next, previous].map((object) => without(specOf(object), MUTABLE_OF_STATEFUL_SET));
  const message =
    "updates to statefulset spec for fields other than 'replicas', 'template', and 'updateStrategy' are forbidden";
  return isOther(after, before) ? [forbidden("spec", message)] : [];
}

/** A volume may be named while there is none. */
function refuseClaim(next: ApiObject, previous: ApiObject): StatusCause[] {
  const isNamed = specOf(previous).volumeName !== undefined;
  const mutable = new Set(["resources", "volumeAttributesClassName", ...(isNamed ? [] : ["volumeName"])]);
  const [after, before] = [next, previous].map((object) => {
    const { requests: _requests, ...resources } = (specOf(object).resources ?? {}) as Fields;
    return { ...without(specOf(object), mutable), resources };
  });
  const message = "spec is immutable after creation except resources.requests for bound claims";
  return isOther(after, before) ? [forbidden("spec", message)] : [];
}

/** Fields of a PersistentVolume besides its source. */
const MUTABLE_OF_VOLUME: ReadonlySet<string> = new Set([
  "accessModes",
  "capacity",
  "claimRef",
  "mountOptions",
  "nodeAffinity",
  "persistentVolumeReclaimPolicy",
  "storageClassName",
  "volumeAttributesClassName",
  "volumeMode",
]);

function refuseVolume(next: ApiObject, previous: ApiObject): StatusCause[] {
  const [after, before] = [specOf(next), specOf(previous)];
  const source = "spec.persistentvolumesource";
  const hasOther = (name: string) => before[name] !== undefined && isOther(after[name], before[name]);
  return [
    ...(isOther(without(after, MUTABLE_OF_VOLUME), without(before, MUTABLE_OF_VOLUME))
      ? [forbidden(source, `${source} is immutable after creation`)]
      : []),
    ...(after.volumeMode === before.volumeMode ? [] : [fixed("volumeMode")]),
    ...(hasOther("nodeAffinity") ? [fixed("nodeAffinity")] : []),
  ];
}

const RULES: Readonly<Record<string, RefuseChange>> = {
  Deployment: fixedSpec("selector"),
  ReplicaSet: fixedSpec("selector"),
  DaemonSet: fixedSpec("selector"),
  StatefulSet: refuseStatefulSet,
  Job: fixedSpec("completions", "completionMode", "selector", "template"),
  PersistentVolumeClaim: refuseClaim,
  PersistentVolume: refuseVolume,
};

/** Causes for refusing a change by a client of the API. Source: the `Validate…Update` functions of each kind. */
export const refuseFixedFields: RefuseChange = (next, previous) => RULES[next.kind]?.(next, previous) ?? [];

/** Causes for refusing a change of a Secret's type. */
export const refuseOtherType: RefuseChange = (next, previous) =>
  (next.type ?? "Opaque") === (previous.type ?? "Opaque") ? [] : [fixed("type")];
