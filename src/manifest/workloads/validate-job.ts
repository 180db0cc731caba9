import type { CronJob, Job, JobSpec } from "../../base/api/job.ts";
import type { Pod } from "../../base/api/pod.ts";
import { isTimeZone, parseCronSchedule } from "../../base/text/cron-schedule.ts";
import type { Field } from "../field.ts";
import { validateMetadata } from "../validate/metadata.ts";
import { checkLabelValue, validateLabels } from "../validate/names.ts";
import { type ValidateOptions, validatePodTemplate } from "../validate/pod.ts";
import { validateSelector } from "./validate-workload.ts";

/** As long as upstream's names of Jobs, which end with the time of the run. */
const MAX_CRON_JOB_NAME = 52;
const MAX_LABEL_VALUE = 63;

/** Source: batch validation `ValidateJob`. */
export function validateJob(job: Field<Job>, options: ValidateOptions): void {
  validateMetadata(job.field("metadata"));
  const name = job.field("metadata").field("name");
  // Each pod carries the name as a label.
  if ((name.value ?? "").length > MAX_LABEL_VALUE) name.format(checkLabelValue);
  const spec = job.field("spec");
  if (spec.value.manualSelector) validateSelector(spec);
  else if (spec.value.selector) spec.field("selector").invalid("must be absent unless manualSelector is true");
  validateJobSpec(spec, options);
}

const JOB_NUMBERS = [
  "parallelism",
  "completions",
  "activeDeadlineSeconds",
  "backoffLimit",
  "ttlSecondsAfterFinished",
  "backoffLimitPerIndex",
  "maxFailedIndexes",
] as const;

function validateJobSpec(spec: Field<JobSpec>, options: ValidateOptions): void {
  for (const name of JOB_NUMBERS) spec.field(name).nonNegative();
  validateIndexing(spec);
  validateFailurePolicy(spec);
  const template = spec.field("template");
  validatePodTemplate(template as Field<Pod>, options);
  if (template.value.spec.restartPolicy === "Always") {
    const message = "must be OnFailure or Never: the pods of a Job come to an end";
    template.field("spec").field("restartPolicy").required(message);
  }
}

function validateIndexing(spec: Field<JobSpec>): void {
  const { completionMode, completions, backoffLimitPerIndex, maxFailedIndexes } = spec.value;
  spec.field("completionMode").oneOf(["NonIndexed", "Indexed"]);
  const isIndexed = completionMode === "Indexed";
  if (isIndexed && completions === undefined) {
    spec.field("completions").required("is required when completionMode is Indexed");
  }
  if (backoffLimitPerIndex !== undefined && !isIndexed) {
    spec.field("backoffLimitPerIndex").invalid("needs completionMode: Indexed");
  }
  if (maxFailedIndexes !== undefined && backoffLimitPerIndex === undefined) {
    spec.field("backoffLimitPerIndex").required("is required when maxFailedIndexes is set");
  }
}

function validateFailurePolicy(spec: Field<JobSpec>): void {
  const policy = spec.field("podFailurePolicy");
  if (!policy.value) return;
  const { restartPolicy } = spec.value.template.spec;
  if (restartPolicy !== "Never") policy.with(restartPolicy).invalid("needs restartPolicy: Never in the template");
  for (const rule of policy.field("rules").items()) {
    const { onExitCodes, onPodConditions = [] } = rule.value;
    const action = rule.field("action");
    action.requiredOneOf(["FailJob", "FailIndex", "Ignore", "Count"]);
    if (action.value === "FailIndex" && spec.value.backoffLimitPerIndex === undefined) {
      action.invalid("needs backoffLimitPerIndex");
    }
    if ((onExitCodes !== undefined) === onPodConditions.length > 0) {
      rule.invalid("must have exactly one of onExitCodes and onPodConditions");
    }
    if (!onExitCodes) continue;
    const codes = rule.field("onExitCodes");
    codes.field("operator").oneOf(["In", "NotIn"]);
    const values = codes.field("values").with(onExitCodes.values ?? []);
    if (values.value.length === 0) values.invalid("must hold at least one exit code");
    if (onExitCodes.operator !== "In") continue;
    for (const value of values.items()) if (value.value === 0) value.invalid("must not be 0 when operator is In");
  }
}

/** Source: batch validation `ValidateCronJob`. */
export function validateCronJob(cronJob: Field<CronJob>, options: ValidateOptions): void {
  validateMetadata(cronJob.field("metadata"));
  const name = cronJob.field("metadata").field("name");
  if ((name.value ?? "").length > MAX_CRON_JOB_NAME)
    name.invalid(`must be no more than ${MAX_CRON_JOB_NAME} characters`);
  const spec = cronJob.field("spec");
  validateSchedule(spec);
  for (const field of ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] as const) {
    spec.field(field).nonNegative();
  }
  spec.field("concurrencyPolicy").oneOf(["Allow", "Forbid", "Replace"]);
  const template = spec.field("jobTemplate");
  validateLabels(template.field("metadata").field("labels"));
  const jobSpec = template.field("spec");
  if (jobSpec.value.selector) jobSpec.field("selector").invalid("must be absent: it is generated");
  if (jobSpec.value.manualSelector) jobSpec.field("manualSelector").notSupported(["nil", "false"]);
  validateJobSpec(jobSpec, options);
}

function validateSchedule(spec: Field<CronJob["spec"]>): void {
  const { schedule, timeZone } = spec.value;
  const isKnownZone = timeZone === undefined || isTimeZone(timeZone);
  if (!isKnownZone) spec.field("timeZone").invalid("must be a time zone such as Europe/Berlin");
  if (schedule === "") return spec.field("schedule").required('is required, e.g. schedule: "*/5 * * * *"');
  const parsed = parseCronSchedule(schedule, isKnownZone ? timeZone : undefined);
  if ("problem" in parsed) spec.field("schedule").invalid(parsed.problem);
}
