import * as v from "valibot";
import { ObjectMetaSchema } from "../../base/api/meta.ts";
import { int32Pointer, textPointer } from "../../base/api/scalar.ts";
import { apiKind, specOf, text } from "./define-kind.ts";

/** A Lease names the process of a program that leads, and until when; that of the node says that it is alive. */
export const LEASE = apiKind({
  group: "coordination.k8s.io",
  kind: "Lease",
  schema: v.object({
    metadata: ObjectMetaSchema,
    // Times with fractions of seconds are texts.
    spec: v.optional(
      v.object({
        holderIdentity: v.optional(textPointer),
        leaseDurationSeconds: v.optional(int32Pointer),
        acquireTime: v.optional(textPointer),
        renewTime: v.optional(textPointer),
        leaseTransitions: v.optional(int32Pointer),
      }),
    ),
  }),
  hasGeneration: false,
  columns: [text("Holder", (it) => specOf(it).holderIdentity)],
});
