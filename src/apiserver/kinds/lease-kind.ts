import * as v from "valibot";
import { ObjectMetaSchema } from "../../base/api/meta.ts";
import { int32Pointer, textPointer } from "../../base/api/scalar.ts";
import type { StatusCause } from "../api-error.ts";
import type { ApiObject } from "../object-store.ts";
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
  validateCreate: refuseWrong,
  validateUpdate: refuseWrong,
  hasGeneration: false,
  columns: [text("Holder", (it) => specOf(it).holderIdentity)],
});

/** Source: coordination validation `ValidateLeaseSpec`. */
function refuseWrong(lease: ApiObject): StatusCause[] {
  return [
    ["leaseDurationSeconds", 1, "must be greater than 0"] as const,
    ["leaseTransitions", 0, "must be greater than or equal to 0"] as const,
  ].flatMap(([name, least, why]) => {
    const value = specOf(lease)[name] ?? least;
    const cause = { reason: "FieldValueInvalid", field: `spec.${name}`, message: `Invalid value: ${value}: ${why}` };
    return Number(value) < least ? cause : [];
  });
}
