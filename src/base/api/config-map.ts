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
