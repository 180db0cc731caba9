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
