import * as v from "valibot";
import * as go from "./scalar.ts";

/** Source: meta/v1 `OwnerReference`. */
export const OwnerReferenceSchema = v.object({
  apiVersion: go.text,
  kind: go.text,
  name: go.text,
  uid: go.text,
  controller: v.optional(go.flagPointer),
  blockOwnerDeletion: v.optional(go.flagPointer),
});
export type OwnerReference = v.InferOutput<typeof OwnerReferenceSchema>;

/** Source: meta/v1 `ManagedFieldsEntry`. */
export const ManagedFieldsEntrySchema = v.object({
  manager: v.optional(go.text),
  operation: v.optional(go.text),
  apiVersion: v.optional(go.text),
  time: v.optional(go.timePointer),
  fieldsType: v.optional(go.text),
  fieldsV1: v.optional(go.raw),
  subresource: v.optional(go.text),
});

/** Names, labels and annotations of an object. Source: meta/v1 `ObjectMeta`. */
export const ObjectMetaSchema = v.object({
  name: v.optional(go.text),
  generateName: v.optional(go.text),
  namespace: v.optional(go.text),
  selfLink: v.optional(go.text),
  uid: v.optional(go.text),
  resourceVersion: v.optional(go.text),
  generation: v.optional(go.int64),
  creationTimestamp: v.optional(go.timeOmitted),
  deletionTimestamp: v.optional(go.timePointer),
  deletionGracePeriodSeconds: v.optional(go.int64Pointer),
  labels: v.optional(go.textMap),
  annotations: v.optional(go.textMap),
  ownerReferences: v.optional(v.array(OwnerReferenceSchema)),
  finalizers: v.optional(go.textList),
  managedFields: v.optional(v.array(ManagedFieldsEntrySchema)),
});
export type ObjectMeta = v.InferOutput<typeof ObjectMetaSchema>;

/** Source: meta/v1 `LabelSelectorRequirement`. */
export const LabelSelectorRequirementSchema = v.object({
  key: go.text,
  operator: go.oneOf(["In", "NotIn", "Exists", "DoesNotExist"]),
  values: v.optional(go.textList),
});

/** Source: meta/v1 `LabelSelector`. */
export const LabelSelectorSchema = v.object({
  matchLabels: v.optional(go.textMap),
  matchExpressions: v.optional(v.array(LabelSelectorRequirementSchema)),
});
export type LabelSelector = v.InferOutput<typeof LabelSelectorSchema>;

/** Source: core/v1 `LocalObjectReference`. */
export const LocalObjectReferenceSchema = v.object({ name: v.optional(go.text) });

/** Source: core/v1 `TypedLocalObjectReference`, `TypedObjectReference`. */
export const TypedLocalObjectReferenceSchema = v.object({
  apiGroup: v.optional(go.textPointer),
  kind: go.text,
  name: go.text,
});
/** Source: core/v1 `TypedObjectReference`. */
export const TypedObjectReferenceSchema = v.object({
  ...TypedLocalObjectReferenceSchema.entries,
  namespace: v.optional(go.textPointer),
});

/** A condition of an object's status, of any kind. Times are RFC 3339. */
export interface Condition {
  type: string;
  status: string;
  reason?: string | undefined;
  message?: string | undefined;
  lastTransitionTime?: string | null | undefined;
  /** Nodes have it. */
  lastHeartbeatTime?: string | null | undefined;
}

type WithConditions = { conditions?: readonly Partial<Condition>[] | null | undefined };

/** The fix of a resize that waits, by the reason of its condition, whose message is upstream's. */
const RESIZE_FIXES: Readonly<Record<string, string>> = {
  Infeasible: "write requests that the node has: kubelet-ts describe node shows its capacity",
  Deferred: "lower the requests, or stop a pod that holds what is missing: kubelet-ts describe node shows who does",
};

/** The condition of a pod or workload that does not follow its newest manifest, or not with its resources; undefined: it does. */
export function notLive(status: WithConditions | null | undefined) {
  const find = (wanted: string, value: string) =>
    status?.conditions?.find(({ type, status: is }) => type === wanted && is === value);
  const resize = find("PodResizePending", "True");
  const fix = RESIZE_FIXES[resize?.reason ?? ""];
  return (
    find("ManifestLive", "False") ?? (resize && fix ? { ...resize, message: `${resize.message}. Fix: ${fix}` } : resize)
  );
}

/** Whether a condition is there and True. @param status undefined: the object has none yet */
export const hasCondition = (status: WithConditions | null | undefined, wanted: string): boolean =>
  status?.conditions?.some((condition) => condition.type === wanted && condition.status === "True") ?? false;

type Labels = Readonly<Record<string, string>>;

export type LabelFilter = (labels: Labels) => boolean;

const KEY = "[A-Za-z0-9][A-Za-z0-9._/-]*";
const SET_TERM = new RegExp(`^(${KEY})\\s+(in|notin)\\s*\\(([^()]*)\\)$`);
const VALUE_TERM = new RegExp(`^(${KEY})\\s*(==|=|!=)\\s*([A-Za-z0-9._-]*)$`);
const KEY_TERM = new RegExp(`^(!?)\\s*(${KEY})$`);

/** `app=web,tier!=db,env in (test, live),!legacy`. Source: `labels.Parse`. @returns what is wrong as `problem` */
export function parseLabelSelector(text: string): LabelFilter | { problem: string } {
  const filters: LabelFilter[] = [];
  for (const part of splitTerms(text)) {
    const term = part.trim();
    if (term === "" && text.trim() === "") continue;
    const filter = parseTerm(term);
    if (!filter) {
      return {
        problem: `"${term}" is not a term of a label selector: write key=value, key!=value, key in (a,b), key or !key`,
      };
    }
    filters.push(filter);
  }
  return (labels) => filters.every((matches) => matches(labels));
}

/** Splits at commas outside of parentheses. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let isInSet = false;
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    const character = text[index];
    if (character === "(") isInSet = true;
    else if (character === ")") isInSet = false;
    else if (character === "," && !isInSet) {
      terms.push(text.slice(start, index));
      start = index + 1;
    }
  }
  terms.push(text.slice(start));
  return terms;
}

function parseTerm(term: string): LabelFilter | undefined {
  const has = (labels: Labels, key: string) => Object.hasOwn(labels, key);
  const set = SET_TERM.exec(term);
  if (set) {
    const [, key = "", operator, list = ""] = set;
    const values = list.split(",").map((value) => value.trim());
    // An object without the label is in no set.
    return operator === "in"
      ? (labels) => has(labels, key) && values.includes(labels[key]!)
      : (labels) => !has(labels, key) || !values.includes(labels[key]!);
  }
  const compared = VALUE_TERM.exec(term);
  if (compared) {
    const [, key = "", operator, value] = compared;
    return operator === "!="
      ? (labels) => !has(labels, key) || labels[key] !== value
      : (labels) => has(labels, key) && labels[key] === value;
  }
  const [, not, key] = KEY_TERM.exec(term) ?? [];
  return key === undefined ? undefined : (labels) => has(labels, key) === (not === "");
}

/** Fields of objects that a selector may name. */
export type SelectableFields<T> = Readonly<Record<string, (object: T) => string | undefined>>;

/** `status.phase!=Running,spec.nodeName=node1`. Source: apimachinery's `fields`. @returns what is wrong as `problem` */
export function parseFieldSelector<T>(
  selector: string,
  fields: SelectableFields<T>,
): ((object: T) => boolean) | { problem: string } {
  const filters: ((object: T) => boolean)[] = [];
  // Parts at commas that no backslash escapes.
  for (const term of selector.match(/(?:\\.|[^,\\])+/gs) ?? []) {
    if (term.trim() === "") continue;
    const [, field = "", operator = "", value = ""] = /^([^=!]*)(==|=|!=)(.*)$/s.exec(term) ?? [];
    if (operator === "") return { problem: `invalid selector: '${selector}'; can't understand '${term}'` };
    if (!Object.hasOwn(fields, field)) return { problem: `field label not supported: ${field}` };
    const read = fields[field]!;
    const wanted = value.replace(/\\(.)/g, "$1");
    filters.push((object) => ((read(object) ?? "") === wanted) === (operator !== "!="));
  }
  return (object) => filters.every((matches) => matches(object));
}

/**
 * Whether labels satisfy a selector. An empty selector matches everything, as `LabelSelectorAsSelector` has it.
 */
export function matchesSelector(selector: LabelSelector, labels: Labels = {}): boolean {
  const labelOf = (key: string) => (Object.hasOwn(labels, key) ? labels[key] : undefined);
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labelOf(key) !== value) return false;
  return (selector.matchExpressions ?? []).every((requirement) =>
    meetsRequirement(labelOf(requirement.key), requirement),
  );
}

/** The selector of a Service or a ReplicationController is the labels alone. */
export function toLabelSelector(selector: LabelSelector | Labels): LabelSelector {
  const { matchLabels, matchExpressions } = selector as LabelSelector;
  const isSelector = typeof matchLabels === "object" || Array.isArray(matchExpressions);
  return isSelector ? (selector as LabelSelector) : { matchLabels: selector as Record<string, string> };
}

/** `app=web,tier in (a,b)`; empty for a selector of everything. Source: meta/v1 `FormatLabelSelector`. */
export function formatSelector(selector: LabelSelector | Labels): string {
  const { matchLabels = {}, matchExpressions = [] } = toLabelSelector(selector);
  const terms = [
    ...Object.entries(matchLabels).map(([key, value]) => ({ key, text: `${key}=${value}` })),
    ...matchExpressions.map(({ key, operator, values = [] }) => {
      if (operator === "Exists") return { key, text: key };
      if (operator === "DoesNotExist") return { key, text: `!${key}` };
      return { key, text: `${key} ${operator.toLowerCase()} (${[...values].sort().join(",")})` };
    }),
  ];
  const sorted = terms.sort((a, b) => (a.key < b.key ? -1 : 1));
  return sorted.map(({ text }) => text).join(",");
}

/** Operators that label selectors and node affinity share. */
type SetOperator = "In" | "NotIn" | "Exists" | "DoesNotExist";

/** Whether a label meets a requirement. @param value undefined: there is no such label */
export function meetsRequirement(
  value: string | undefined,
  { operator, values = [] }: { operator: SetOperator; values?: readonly string[] | undefined },
): boolean {
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    case "DoesNotExist":
      return value === undefined;
    default:
      return operator satisfies never;
  }
}
