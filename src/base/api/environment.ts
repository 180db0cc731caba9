import * as v from "valibot";
import { flagPointer, quantity, text } from "./scalar.ts";

/** Source: core/v1 `ObjectFieldSelector`. */
export const ObjectFieldSelectorSchema = v.object({
  apiVersion: v.optional(text, "v1"),
  fieldPath: text,
});
export type ObjectFieldSelector = v.InferOutput<typeof ObjectFieldSelectorSchema>;

/** Source: core/v1 `ResourceFieldSelector`. */
export const ResourceFieldSelectorSchema = v.object({
  /** Required in volumes; in env the container itself when absent. */
  containerName: v.optional(text),
  /** e.g. `limits.memory`. */
  resource: text,
  /** Canonical quantity; `0` means 1. */
  divisor: quantity,
});
export type ResourceFieldSelector = v.InferOutput<typeof ResourceFieldSelectorSchema>;

/** Source: core/v1 `ConfigMapKeySelector`, `SecretKeySelector`. */
export const KeySelectorSchema = v.object({
  name: v.optional(text),
  key: text,
  optional: v.optional(flagPointer),
});
export type KeySelector = v.InferOutput<typeof KeySelectorSchema>;

/** Source: core/v1 `FileKeySelector`. */
export const FileKeySelectorSchema = v.object({
  volumeName: text,
  path: text,
  key: text,
  optional: v.optional(flagPointer, false),
});
export type FileKeySelector = v.InferOutput<typeof FileKeySelectorSchema>;

/** Source: core/v1 `EnvVarSource`: exactly one is set. */
export const EnvVarSourceSchema = v.object({
  fieldRef: v.optional(ObjectFieldSelectorSchema),
  resourceFieldRef: v.optional(ResourceFieldSelectorSchema),
  configMapKeyRef: v.optional(KeySelectorSchema),
  secretKeyRef: v.optional(KeySelectorSchema),
  fileKeyRef: v.optional(FileKeySelectorSchema),
});
export type EnvVarSource = v.InferOutput<typeof EnvVarSourceSchema>;

/** Source: core/v1 `EnvVar`. */
export const EnvVarSchema = v.object({
  name: text,
  value: v.optional(text),
  valueFrom: v.optional(EnvVarSourceSchema),
});
export type EnvVar = v.InferOutput<typeof EnvVarSchema>;

/** Source: core/v1 `ConfigMapEnvSource`, `SecretEnvSource`. */
export const EnvSourceSchema = v.object({
  name: v.optional(text),
  optional: v.optional(flagPointer),
});

/** Source: core/v1 `EnvFromSource`: one of the two is set. */
export const EnvFromSourceSchema = v.object({
  prefix: v.optional(text),
  configMapRef: v.optional(EnvSourceSchema),
  secretRef: v.optional(EnvSourceSchema),
});
export type EnvFromSource = v.InferOutput<typeof EnvFromSourceSchema>;
