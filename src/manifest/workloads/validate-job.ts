import type { CronJob, Job, JobSpec } from "../../base/api/job.ts";
import type { Pod } from "../../base/api/pod.ts";
import { isTimeZone, parseCronSchedule } from "../../base/text/cron-schedule.ts";
import type { FieldPath } from "../field-path.ts";
import { FieldErrors } from "../validate/field-errors.ts";
import { validateMetadata } from "../validate/metadata.ts";
import { checkLabelValue, validateLabels } from "../validate/names.ts";
import { validatePodTemplate } from "../validate/pod.ts";
import { type ValidateOptions, validateNonNegative, validateSelector } from "./validate-template.ts";

/** As long as upstream's names of Jobs, which end with the time of the run. */
const MAX_CRON_JOB_NAME = 52;
const MAX_LABEL_VALUE = 63;

/** Source: batch validation `ValidateJob`. */
export function validateJob({ metadata, spec }: Job, path: FieldPath, options: ValidateOptions): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  const name = metadata.name ?? "";
  // Each pod carries the name as a label.
  if (name.length > MAX_LABEL_VALUE) {
    errors.invalidAll(path.child("metadata").child("name"), name, checkLabelValue(name));
  }
  const specPath = path.child("spec");
  if (spec.manualSelector) validateSelector(spec.selector, spec.template, specPath, errors);
  else if (spec.selector) {
    errors.invalid(specPath.child("selector"), spec.selector, "must be absent unless manualSelector is true");
  }
  validateJobSpec(spec, specPath, options, errors);
  return errors;
}

function validateJobSpec(spec: JobSpec, path: FieldPath, options: ValidateOptions, errors: FieldErrors): void {
  const numbers = [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
  ] as const;
  for (const name of numbers) validateNonNegative(spec[name], path.child(name), errors);
  validateIndexing(spec, path, errors);
  validateFailurePolicy(spec, path.child("podFailurePolicy"), errors);
  const templatePath = path.child("template");
  validatePodTemplate(spec.template as Pod, templatePath, options, errors);
  const { restartPolicy } = spec.template.spec;
  if (restartPolicy === "Always") {
    const message = "must be OnFailure or Never: the pods of a Job come to an end";
    errors.required(templatePath.child("spec").child("restartPolicy"), message);
  }
}

function validateIndexing(spec: JobSpec, path: FieldPath, errors: FieldErrors): void {
  const modes = ["NonIndexed", "Indexed"];
  const { completionMode } = spec;
  if (!modes.includes(completionMode)) errors.notSupported(path.child("completionMode"), completionMode, modes);
  const isIndexed = completionMode === "Indexed";
  if (isIndexed && spec.completions === undefined) {
    errors.required(path.child("completions"), "is required when completionMode is Indexed");
  }
  if (spec.backoffLimitPerIndex !== undefined && !isIndexed) {
    errors.invalid(path.child("backoffLimitPerIndex"), spec.backoffLimitPerIndex, "needs completionMode: Indexed");
  }
  if (spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined) {
    errors.required(path.child("backoffLimitPerIndex"), "is required when maxFailedIndexes is set");
  }
}

function validateFailurePolicy(spec: JobSpec, path: FieldPath, errors: FieldErrors): void {
  if (!spec.podFailurePolicy) return;
  if (spec.template.spec.restartPolicy !== "Never") {
    errors.invalid(path, spec.template.spec.restartPolicy, "needs restartPolicy: Never in the template");
  }
  for (const [index, rule] of spec.podFailurePolicy.rules.entries()) {
    const rulePath = path.child("rules").index(index);
    const actions = ["FailJob", "FailIndex", "Ignore", "Count"];
    if (rule.action === "") errors.required(rulePath.child("action"));
    else if (!actions.includes(rule.action)) errors.notSupported(rulePath.child("action"), rule.action, actions);
    if (rule.action === "FailIndex" && spec.backoffLimitPerIndex === undefined) {
      errors.invalid(rulePath.child("action"), rule.action, "needs backoffLimitPerIndex");
    }
    const hasConditions = (rule.onPodConditions?.length ?? 0) > 0;
    if ((rule.onExitCodes !== undefined) === hasConditions) {
      errors.invalid(rulePath, rule, "must have exactly one of onExitCodes and onPodConditions");
    }
    if (rule.onExitCodes) validateExitCodes(rule.onExitCodes, rulePath.child("onExitCodes"), errors);
  }
}

function validateExitCodes(
  { operator, values = [] }: { operator: string; values?: number[] | undefined },
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (operator !== "In" && operator !== "NotIn") {
    errors.notSupported(path.child("operator"), operator, ["In", "NotIn"]);
  }
  if (values.length === 0) errors.invalid(path.child("values"), values, "must hold at least one exit code");
  for (const [index, value] of values.entries()) {
    if (value === 0 && operator === "In") {
      errors.invalid(path.child("values").index(index), value, "must not be 0 when operator is In");
    }
  }
}

/** Source: batch validation `ValidateCronJob`. */
export function validateCronJob({ metadata, spec }: CronJob, path: FieldPath, options: ValidateOptions): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  const { name = "" } = metadata;
  if (name.length > MAX_CRON_JOB_NAME) {
    errors.invalid(path.child("metadata").child("name"), name, `must be no more than ${MAX_CRON_JOB_NAME} characters`);
  }
  const specPath = path.child("spec");
  validateSchedule(spec, specPath, errors);
  validateNonNegative(spec.startingDeadlineSeconds, specPath.child("startingDeadlineSeconds"), errors);
  validateNonNegative(spec.successfulJobsHistoryLimit, specPath.child("successfulJobsHistoryLimit"), errors);
  validateNonNegative(spec.failedJobsHistoryLimit, specPath.child("failedJobsHistoryLimit"), errors);
  const policies = ["Allow", "Forbid", "Replace"];
  if (!policies.includes(spec.concurrencyPolicy)) {
    errors.notSupported(specPath.child("concurrencyPolicy"), spec.concurrencyPolicy, policies);
  }
  const templatePath = specPath.child("jobTemplate");
  const { labels } = spec.jobTemplate.metadata;
  if (labels) validateLabels(labels, templatePath.child("metadata").child("labels"), errors);
  const jobSpec = spec.jobTemplate.spec;
  if (jobSpec.selector) {
    errors.invalid(templatePath.child("spec").child("selector"), jobSpec.selector, "must be absent: it is generated");
  }
  if (jobSpec.manualSelector) {
    errors.notSupported(templatePath.child("spec").child("manualSelector"), true, ["nil", "false"]);
  }
  validateJobSpec(jobSpec, templatePath.child("spec"), options, errors);
  return errors;
}

function validateSchedule({ schedule, timeZone }: CronJob["spec"], path: FieldPath, errors: FieldErrors): void {
  const isKnownZone = timeZone === undefined || isTimeZone(timeZone);
  if (!isKnownZone) errors.invalid(path.child("timeZone"), timeZone, "must be a time zone such as Europe/Berlin");
  if (schedule === "") return errors.required(path.child("schedule"), 'is required, e.g. schedule: "*/5 * * * *"');
  const parsed = parseCronSchedule(schedule, isKnownZone ? timeZone : undefined);
  if ("problem" in parsed) errors.invalid(path.child("schedule"), schedule, parsed.problem);
}
