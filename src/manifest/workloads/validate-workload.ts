import type { CronJob, Job, JobSpec } from "../../base/api/job.ts";
import { matchesSelector } from "../../base/api/meta.ts";
import type { LabelSelector, Pod } from "../../base/api/pod.ts";
import type {
  DaemonSet,
  Deployment,
  DeploymentSpec,
  PodTemplateSpec,
  ReplicaSet,
  ReplicationController,
  RollingUpdate,
  StatefulSet,
} from "../../base/api/workload.ts";
import { isTimeZone, parseCronSchedule } from "../../base/text/cron-schedule.ts";
import type { Field } from "../field.ts";
import { checkLabelValue, validateLabels, validateMetadata } from "../validate/names.ts";
import { type ValidateOptions, validatePodTemplate } from "../validate/pod.ts";
import { validateLabelSelector } from "../validate/scheduling.ts";

/** Source: apps validation `ValidateDeployment`. */
export function validateDeployment(deployment: Field<Deployment>, options: ValidateOptions): void {
  validateMetadata(deployment.field("metadata"));
  const spec = deployment.field("spec");
  spec.field("replicas").nonNegative();
  validateSelector(spec);
  validateReplicaTemplate(spec, options);
  validateStrategy(spec.field("strategy"));
  for (const name of ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] as const) {
    spec.field(name).nonNegative();
  }
  const { progressDeadlineSeconds: deadline, minReadySeconds = 0 } = spec.value;
  if (deadline !== undefined && deadline <= minReadySeconds) {
    spec.field("progressDeadlineSeconds").invalid("must be greater than minReadySeconds");
  }
}

/** Source: apps validation `ValidateReplicaSet`. */
export function validateReplicaSet(replicaSet: Field<ReplicaSet>, options: ValidateOptions): void {
  validateMetadata(replicaSet.field("metadata"));
  const spec = replicaSet.field("spec");
  for (const name of ["replicas", "minReadySeconds"] as const) spec.field(name).nonNegative();
  validateSelector(spec);
  validateReplicaTemplate(spec, options);
}

/** Source: core validation `ValidateReplicationController`. */
export function validateReplicationController(
  controller: Field<ReplicationController>,
  options: ValidateOptions,
): void {
  validateMetadata(controller.field("metadata"));
  const spec = controller.field("spec");
  for (const name of ["minReadySeconds", "replicas"] as const) spec.field(name).nonNegative();
  const selector = spec.field("selector");
  const matchLabels = selector.value ?? {};
  if (Object.keys(matchLabels).length === 0) selector.required();
  else {
    validateLabels(selector);
    validateMatch({ matchLabels }, spec.field("template"));
  }
  validateReplicaTemplate(spec, options);
}

/** Source: apps validation `ValidateStatefulSet`. Volumes of the claim templates count as volumes of the pods. */
export function validateStatefulSet(set: Field<StatefulSet>, options: ValidateOptions): void {
  validateMetadata(set.field("metadata"));
  const spec = set.field("spec");
  const { podManagementPolicy, volumeClaimTemplates = [], template } = spec.value;
  if (!["OrderedReady", "Parallel"].includes(podManagementPolicy)) {
    spec.field("podManagementPolicy").invalid("must be OrderedReady or Parallel");
  }
  validateStatefulStrategy(spec.field("updateStrategy"));
  for (const name of ["replicas", "minReadySeconds"] as const) spec.field(name).nonNegative();
  spec.field("ordinals").field("start").nonNegative();
  validateSelector(spec);
  const claims = volumeClaimTemplates.map(({ metadata: { name = "" } }) => name);
  for (const [index, claim] of spec.field("volumeClaimTemplates").items().entries()) {
    const name = claim.field("metadata").field("name").with(claims[index]!);
    if (name.value === "") name.required();
    else if (claims.indexOf(name.value) < index) name.duplicate();
  }
  const others = (template.spec.volumes ?? []).filter(({ name }) => !claims.includes(name));
  const claimed = claims
    .filter((name) => name !== "")
    .map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const volumes = [...others, ...claimed] as Pod["spec"]["volumes"];
  validateReplicaTemplate(spec.with({ template: { ...template, spec: { ...template.spec, volumes } } }), options);
}

function validateStatefulStrategy(strategy: Field<StatefulSet["spec"]["updateStrategy"]>): void {
  const { type, rollingUpdate } = strategy.value;
  const update = strategy.field("rollingUpdate");
  if (type === "RollingUpdate") update.field("partition").nonNegative();
  else if (type !== "OnDelete") strategy.field("type").as(strategy.path).invalid("must be RollingUpdate or OnDelete");
  else if (rollingUpdate) update.invalid("must be absent when type is OnDelete");
}

/** Source: apps validation `ValidateDaemonSet`; maxSurge as of 1.22. */
export function validateDaemonSet(set: Field<DaemonSet>, options: ValidateOptions): void {
  validateMetadata(set.field("metadata"));
  const spec = set.field("spec");
  validateSelector(spec);
  validateReplicaTemplate(spec, options);
  for (const name of ["minReadySeconds", "revisionHistoryLimit"] as const) spec.field(name).nonNegative();
  const strategy = spec.field("updateStrategy");
  strategy.field("type").oneOf(["RollingUpdate", "OnDelete"]);
  if (strategy.value.type === "RollingUpdate") validateFenceposts(strategy.field("rollingUpdate"));
}

function validateStrategy(strategy: Field<DeploymentSpec["strategy"]>): void {
  const { type, rollingUpdate } = strategy.value;
  const update = strategy.field("rollingUpdate");
  if (type === "Recreate") {
    if (rollingUpdate) update.forbidden("must be absent when type is Recreate");
  } else if (type !== "RollingUpdate") {
    strategy.field("type").as(strategy.path).notSupported(["Recreate", "RollingUpdate"]);
  } else if (!rollingUpdate) update.required();
  else validateFenceposts(update);
}

/** maxSurge and maxUnavailable of a rolling update. */
function validateFenceposts(update: Field<RollingUpdate | undefined>): void {
  if (!update.value) return;
  for (const name of ["maxUnavailable", "maxSurge"] as const) {
    const value = update.field(name);
    if (typeof value.value === "number") value.nonNegative();
    else if (value.value !== undefined && !/^\d+%$/.test(value.value)) {
      value.invalid("must be a number or a percentage such as 25%");
    }
  }
  const { maxSurge = 0, maxUnavailable = 0 } = update.value;
  const amount = (value: number | string) => (typeof value === "number" ? value : Number.parseInt(value, 10) || 0);
  const unavailable = update.field("maxUnavailable").with(maxUnavailable);
  if (amount(maxUnavailable) === 0 && amount(maxSurge) === 0) unavailable.invalid("must not be 0 when maxSurge is 0");
  if (typeof maxUnavailable === "string" && amount(maxUnavailable) > 100)
    unavailable.invalid("must not be more than 100%");
}

/** A selector that is required, not empty, and matches the labels of the template. */
export function validateSelector(
  spec: Field<{ selector?: LabelSelector | undefined; template: PodTemplateSpec }>,
): void {
  const selector = spec.field("selector");
  if (!selector.value) return selector.required("is required, e.g. selector: {matchLabels: {app: web}}");
  const before = spec.errors.length;
  validateLabelSelector(selector);
  const { matchLabels = {}, matchExpressions = [] } = selector.value;
  if (Object.keys(matchLabels).length + matchExpressions.length === 0) selector.invalid("must not be empty");
  else if (spec.errors.length === before) validateMatch(selector.value, spec.field("template"));
}

const showLabels = (labels: Readonly<Record<string, string>> = {}): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(",") || "no labels";

/** The labels of the template must match the selector. */
function validateMatch(selector: LabelSelector, template: Field<PodTemplateSpec>): void {
  const { labels } = template.value.metadata;
  if (matchesSelector(selector, labels)) return;
  template
    .field("metadata")
    .field("labels")
    .with(labels ?? {})
    .absent(
      `must match spec.selector: the pods have ${showLabels(labels)}, it wants ${showLabels(selector.matchLabels)}${selector.matchExpressions?.length ? " and its matchExpressions" : ""}`,
    );
}

/** A template of pods that always restart. */
function validateReplicaTemplate(owner: Field<{ template: PodTemplateSpec }>, options: ValidateOptions): void {
  const template = owner.field("template");
  validatePodTemplate(template as Field<Pod>, options);
  const spec = template.field("spec");
  const { restartPolicy, activeDeadlineSeconds } = spec.value;
  if (["OnFailure", "Never"].includes(restartPolicy)) spec.field("restartPolicy").notSupported(["Always"]);
  if (activeDeadlineSeconds !== undefined) {
    spec.field("activeDeadlineSeconds").forbidden("must be absent: pods of this kind run until they are removed");
  }
}

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
