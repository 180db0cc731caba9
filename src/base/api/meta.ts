import * as v from "valibot";
import {
  flagPointer,
  int64,
  int64Pointer,
  oneOf,
  raw,
  text,
  textList,
  textMap,
  textPointer,
  timeOmitted,
  timePointer,
} from "./scalar.ts";

/** Source: meta/v1 `OwnerReference`. */
export const OwnerReferenceSchema = v.object({
  apiVersion: text,
  kind: text,
  name: text,
  uid: text,
  controller: v.optional(flagPointer),
  blockOwnerDeletion: v.optional(flagPointer),
});
export type OwnerReference = v.InferOutput<typeof OwnerReferenceSchema>;

/** Source: meta/v1 `ManagedFieldsEntry`. */
export const ManagedFieldsEntrySchema = v.object({
  manager: v.optional(text),
  operation: v.optional(text),
  apiVersion: v.optional(text),
  time: v.optional(timePointer),
  fieldsType: v.optional(text),
  fieldsV1: v.optional(raw),
  subresource: v.optional(text),
});

/** Names, labels and annotations of an object. Source: meta/v1 `ObjectMeta`. */
export const ObjectMetaSchema = v.object({
  name: v.optional(text),
  generateName: v.optional(text),
  namespace: v.optional(text),
  selfLink: v.optional(text),
  uid: v.optional(text),
  resourceVersion: v.optional(text),
  generation: v.optional(int64),
  creationTimestamp: v.optional(timeOmitted),
  deletionTimestamp: v.optional(timePointer),
  deletionGracePeriodSeconds: v.optional(int64Pointer),
  labels: v.optional(textMap),
  annotations: v.optional(textMap),
  ownerReferences: v.optional(v.array(OwnerReferenceSchema)),
  finalizers: v.optional(textList),
  managedFields: v.optional(v.array(ManagedFieldsEntrySchema)),
});
export type ObjectMeta = v.InferOutput<typeof ObjectMetaSchema>;

/** Source: meta/v1 `LabelSelectorRequirement`. */
export const LabelSelectorRequirementSchema = v.object({
  key: text,
  operator: oneOf(["In", "NotIn", "Exists", "DoesNotExist"]),
  values: v.optional(textList),
});

/** Source: meta/v1 `LabelSelector`. */
export const LabelSelectorSchema = v.object({
  matchLabels: v.optional(textMap),
  matchExpressions: v.optional(v.array(LabelSelectorRequirementSchema)),
});
export type LabelSelector = v.InferOutput<typeof LabelSelectorSchema>;

/** Source: core/v1 `LocalObjectReference`. */
export const LocalObjectReferenceSchema = v.object({ name: v.optional(text) });

/** Source: core/v1 `TypedLocalObjectReference`, `TypedObjectReference`. */
export const TypedLocalObjectReferenceSchema = v.object({
  apiGroup: v.optional(textPointer),
  kind: text,
  name: text,
});
/** Source: core/v1 `TypedObjectReference`. */
export const TypedObjectReferenceSchema = v.object({
  ...TypedLocalObjectReferenceSchema.entries,
  namespace: v.optional(textPointer),
});
