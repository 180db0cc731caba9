import * as v from "valibot";
import { LabelSelectorSchema, ObjectMetaSchema } from "./meta.ts";
import { flagPointer, int32, int32Pointer, int64Pointer, raw, text, textPointer } from "./scalar.ts";
import { PodTemplateSpecSchema } from "./workload.ts";

/** Source: batch/v1 `PodFailurePolicyRule`. */
export const PodFailurePolicyRuleSchema = v.object({
  action: text,
  onExitCodes: v.optional(
    v.object({ containerName: v.optional(textPointer), operator: text, values: v.optional(v.array(int32)) }),
  ),
  onPodConditions: v.optional(v.array(v.object({ type: text, status: v.optional(text, "True") }))),
});
export type PodFailurePolicyRule = v.InferOutput<typeof PodFailurePolicyRuleSchema>;

/** Source: batch/v1 `JobSpec`; the fields after `ttlSecondsAfterFinished` came after 1.20. */
export const JobSpecSchema = v.object({
  parallelism: v.optional(int32Pointer),
  completions: v.optional(int32Pointer),
  activeDeadlineSeconds: v.optional(int64Pointer),
  backoffLimit: v.optional(int32Pointer),
  selector: v.optional(LabelSelectorSchema),
  manualSelector: v.optional(flagPointer),
  template: PodTemplateSpecSchema,
  ttlSecondsAfterFinished: v.optional(int32Pointer),
  completionMode: v.optional(textPointer, "NonIndexed"),
  suspend: v.optional(flagPointer),
  backoffLimitPerIndex: v.optional(int32Pointer),
  maxFailedIndexes: v.optional(int32Pointer),
  podFailurePolicy: v.optional(v.object({ rules: v.array(PodFailurePolicyRuleSchema) })),
  podReplacementPolicy: v.optional(textPointer),
  successPolicy: v.optional(raw),
  managedBy: v.optional(textPointer),
});
export type JobSpec = v.InferOutput<typeof JobSpecSchema>;

/** No limit of failures: those of each index are limited. */
const NO_LIMIT = 2 ** 31 - 1;

/**
 * Fills in the defaults that depend on other fields. Changes the spec in place. Source: `SetDefaults_Job`, which holds for
 * Jobs: the template of a CronJob keeps what was written.
 */
export function fillJobDefaults(spec: JobSpec): void {
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : NO_LIMIT;
}

/** Source: batch/v1 `Job`. */
export const JobSchema = v.object({ metadata: ObjectMetaSchema, spec: JobSpecSchema, status: v.optional(raw) });
export type Job = v.InferOutput<typeof JobSchema>;

/** Source: batch/v1 `CronJob`. */
export const CronJobSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    schedule: text,
    timeZone: v.optional(textPointer),
    startingDeadlineSeconds: v.optional(int64Pointer),
    concurrencyPolicy: v.optional(text, "Allow"),
    suspend: v.optional(flagPointer, false),
    jobTemplate: v.object({ metadata: v.optional(ObjectMetaSchema, {}), spec: JobSpecSchema }),
    successfulJobsHistoryLimit: v.optional(int32Pointer, 3),
    failedJobsHistoryLimit: v.optional(int32Pointer, 1),
  }),
  status: v.optional(raw),
});
export type CronJob = v.InferOutput<typeof CronJobSchema>;
