import * as v from "valibot";
import { ObjectMetaSchema } from "./meta.ts";
import { bytes, flagPointer, text, textMap } from "./scalar.ts";

/** Source: core/v1 `Secret`. `data` is base64 and holds `stringData` already. Never printed. */
export const SecretSchema = v.object({
  metadata: ObjectMetaSchema,
  immutable: v.optional(flagPointer),
  data: v.optional(v.record(v.string(), bytes)),
  stringData: v.optional(textMap),
  type: v.optional(text, "Opaque"),
});
export type Secret = v.InferOutput<typeof SecretSchema>;
