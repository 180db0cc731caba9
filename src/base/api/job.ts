import * as v from "valibot";
import { LabelSelectorSchema, ObjectMetaSchema } from "./meta.ts";
import * as go from "./scalar.ts";
import { PodTemplateSpecSchema } from "./workload.ts";

/** Source: batch/v1 `PodFailurePolicyRule`. */
export const PodFailurePolicyRuleSchema = v.object({
  action: go.text,
  onExitCodes: v.optional(
    v.object({ containerName: v.optional(go.textPointer), operator: go.text, values: v.optional(v.array(go.int32)) }),
  ),
  onPodConditions: v.optional(v.array(v.object({ type: go.text, status: v.optional(go.text, "True") }))),
});
export type PodFailurePolicyRule = v.InferOutput<typeof PodFailurePolicyRuleSchema>;

/** Source: batch/v1 `JobSpec`; the fields after `ttlSecondsAfterFinished` came after 1.20. */
export const JobSpecSchema = v.object({
  parallelism: v.optional(go.int32Pointer),
  completions: v.optional(go.int32Pointer),
  activeDeadlineSeconds: v.optional(go.int64Pointer),
  backoffLimit: v.optional(go.int32Pointer),
  selector: v.optional(LabelSelectorSchema),
  manualSelector: v.optional(go.flagPointer),
  template: PodTemplateSpecSchema,
  ttlSecondsAfterFinished: v.optional(go.int32Pointer),
  completionMode: v.optional(go.textPointer, "NonIndexed"),
  suspend: v.optional(go.flagPointer),
  backoffLimitPerIndex: v.optional(go.int32Pointer),
  maxFailedIndexes: v.optional(go.int32Pointer),
  podFailurePolicy: v.optional(v.object({ rules: v.array(PodFailurePolicyRuleSchema) })),
  podReplacementPolicy: v.optional(go.textPointer),
  successPolicy: v.optional(go.raw),
  managedBy: v.optional(go.textPointer),
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
export const JobSchema = v.object({ metadata: ObjectMetaSchema, spec: JobSpecSchema, status: v.optional(go.raw) });
export type Job = v.InferOutput<typeof JobSchema>;

/** Source: batch/v1 `CronJob`. */
export const CronJobSchema = v.object({
  metadata: ObjectMetaSchema,
  spec: v.object({
    schedule: go.text,
    timeZone: v.optional(go.textPointer),
    startingDeadlineSeconds: v.optional(go.int64Pointer),
    concurrencyPolicy: v.optional(go.text, "Allow"),
    suspend: v.optional(go.flagPointer, false),
    jobTemplate: v.object({ metadata: v.optional(ObjectMetaSchema, {}), spec: JobSpecSchema }),
    successfulJobsHistoryLimit: v.optional(go.int32Pointer, 3),
    failedJobsHistoryLimit: v.optional(go.int32Pointer, 1),
  }),
  status: v.optional(go.raw),
});
export type CronJob = v.InferOutput<typeof CronJobSchema>;
