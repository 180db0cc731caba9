import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import * as go from "./scalar.ts";

/** Source: core/v1 `ConfigMap`. `binaryData` values are base64. */
export const ConfigMapSchema = v.object({
  metadata: ObjectMetaSchema,
  immutable: v.optional(go.flagPointer),
  data: v.optional(go.textMap),
  binaryData: v.optional(v.record(v.string(), go.bytes)),
});
export type ConfigMap = v.InferOutput<typeof ConfigMapSchema>;

/** Source: core/v1 `Secret`. `data` is base64 and holds `stringData` already. Never printed. */
export const SecretSchema = v.object({
  metadata: ObjectMetaSchema,
  immutable: v.optional(go.flagPointer),
  data: v.optional(v.record(v.string(), go.bytes)),
  stringData: v.optional(go.textMap),
  type: v.optional(go.text, "Opaque"),
});
export type Secret = v.InferOutput<typeof SecretSchema>;
