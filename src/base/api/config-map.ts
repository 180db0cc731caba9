import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import { bytes, flagPointer, textMap } from "./scalar.ts";

/** Source: core/v1 `ConfigMap`. `binaryData` values are base64. */
export const ConfigMapSchema = v.object({
  metadata: ObjectMetaSchema,
  immutable: v.optional(flagPointer),
  data: v.optional(textMap),
  binaryData: v.optional(v.record(v.string(), bytes)),
});
export type ConfigMap = v.InferOutput<typeof ConfigMapSchema>;
