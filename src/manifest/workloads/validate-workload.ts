import { matchesSelector } from "../../api/match-labels.ts";
import type { LabelSelector, Pod } from "../../api/pod.ts";
import type {
  Deployment,
  DeploymentSpec,
  PodTemplateSpec,
  ReplicaSet,
  ReplicationController,
  RollingUpdate,
} from "../../api/workload.ts";
import type { FieldPath } from "../field-path.ts";
import { FieldErrors } from "../validate/field-errors.ts";
import { validateMetadata } from "../validate/metadata.ts";
import { validateLabels } from "../validate/names.ts";
import { validatePodTemplate } from "../validate/pod.ts";
import { validateLabelSelector } from "../validate/scheduling.ts";

export interface ValidateOptions {
  allowPrivileged: boolean;
}

/** Source: apps validation `ValidateDeployment`. */
export function validateDeployment(
  { metadata, spec }: Deployment,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  const specPath = path.child("spec");
  validateNonNegative(spec.replicas, specPath.child("replicas"), errors);
  validateSelector(spec.selector, spec.template, specPath, errors);
  validateReplicaTemplate(spec.template, specPath.child("template"), options, errors);
  validateStrategy(spec, specPath.child("strategy"), errors);
  validateNonNegative(spec.minReadySeconds, specPath.child("minReadySeconds"), errors);
  validateNonNegative(spec.revisionHistoryLimit, specPath.child("revisionHistoryLimit"), errors);
  const deadline = spec.progressDeadlineSeconds;
  const deadlinePath = specPath.child("progressDeadlineSeconds");
  validateNonNegative(deadline, deadlinePath, errors);
  if (deadline !== undefined && deadline <= (spec.minReadySeconds ?? 0)) {
    errors.invalid(deadlinePath, deadline, "must be greater than minReadySeconds");
  }
  return errors;
}

/** Source: apps validation `ValidateReplicaSet`. */
export function validateReplicaSet(
  { metadata, spec }: ReplicaSet,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  const specPath = path.child("spec");
  validateNonNegative(spec.replicas, specPath.child("replicas"), errors);
  validateNonNegative(spec.minReadySeconds, specPath.child("minReadySeconds"), errors);
  validateSelector(spec.selector, spec.template, specPath, errors);
  validateReplicaTemplate(spec.template, specPath.child("template"), options, errors);
  return errors;
}

/** Source: core validation `ValidateReplicationController`. */
export function validateReplicationController(
  { metadata, spec }: ReplicationController,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  const specPath = path.child("spec");
  validateNonNegative(spec.minReadySeconds, specPath.child("minReadySeconds"), errors);
  validateNonNegative(spec.replicas, specPath.child("replicas"), errors);
  const matchLabels = spec.selector ?? {};
  if (Object.keys(matchLabels).length === 0) errors.required(specPath.child("selector"));
  else {
    validateLabels(matchLabels, specPath.child("selector"), errors);
    validateMatch({ matchLabels }, spec.template, specPath, errors);
  }
  validateReplicaTemplate(spec.template, specPath.child("template"), options, errors);
  return errors;
}

export function validateNonNegative(value: number | undefined, path: FieldPath, errors: FieldErrors): void {
  if (value !== undefined && value < 0) errors.invalid(path, value, "must be 0 or more");
}

/** A selector that is required, not empty, and matches the labels of the template. */
export function validateSelector(
  selector: LabelSelector | undefined,
  template: PodTemplateSpec,
  specPath: FieldPath,
  errors: FieldErrors,
): void {
  const path = specPath.child("selector");
  if (!selector) return errors.required(path, "is required, e.g. selector: {matchLabels: {app: web}}");
  const before = errors.count;
  validateLabelSelector(selector, path, errors);
  const terms = Object.keys(selector.matchLabels ?? {}).length + (selector.matchExpressions ?? []).length;
  if (terms === 0) errors.invalid(path, selector, "must not be empty");
  else if (errors.count === before) validateMatch(selector, template, specPath, errors);
}

function validateMatch(
  selector: LabelSelector,
  template: PodTemplateSpec,
  specPath: FieldPath,
  errors: FieldErrors,
): void {
  const labels = template.metadata.labels;
  if (matchesSelector(selector, labels)) return;
  const path = specPath.child("template").child("metadata").child("labels");
  errors.invalid(path, labels ?? {}, "must match spec.selector");
}

/** A template of pods that always restart. */
export function validateReplicaTemplate(
  template: PodTemplateSpec,
  path: FieldPath,
  options: ValidateOptions,
  errors: FieldErrors,
): void {
  validatePodTemplate(template as Pod, path, options, errors);
  const specPath = path.child("spec");
  const { restartPolicy, activeDeadlineSeconds } = template.spec;
  if (["OnFailure", "Never"].includes(restartPolicy)) {
    errors.notSupported(specPath.child("restartPolicy"), restartPolicy, ["Always"]);
  }
  if (activeDeadlineSeconds !== undefined) {
    errors.forbidden(
      specPath.child("activeDeadlineSeconds"),
      "must be absent: pods of this kind run until they are removed",
    );
  }
}

function validateStrategy({ strategy }: DeploymentSpec, path: FieldPath, errors: FieldErrors): void {
  const { type, rollingUpdate } = strategy;
  if (type === "Recreate") {
    if (rollingUpdate) errors.forbidden(path.child("rollingUpdate"), "must be absent when type is Recreate");
    return;
  }
  if (type !== "RollingUpdate") {
    errors.notSupported(path, type, ["Recreate", "RollingUpdate"], { at: path.child("type") });
    return;
  }
  if (!rollingUpdate) return errors.required(path.child("rollingUpdate"));
  validateFenceposts(rollingUpdate, path.child("rollingUpdate"), errors);
}

/** maxSurge and maxUnavailable of a rolling update. */
export function validateFenceposts(
  { maxSurge = 0, maxUnavailable = 0 }: RollingUpdate,
  path: FieldPath,
  errors: FieldErrors,
): void {
  for (const [name, value] of [
    ["maxUnavailable", maxUnavailable],
    ["maxSurge", maxSurge],
  ] as const) {
    if (typeof value === "number") validateNonNegative(value, path.child(name), errors);
    else if (!/^\d+%$/.test(value))
      errors.invalid(path.child(name), value, "must be a number or a percentage such as 25%");
  }
  const amount = (value: number | string) => (typeof value === "number" ? value : Number.parseInt(value, 10) || 0);
  const unavailablePath = path.child("maxUnavailable");
  if (amount(maxUnavailable) === 0 && amount(maxSurge) === 0) {
    errors.invalid(unavailablePath, maxUnavailable, "must not be 0 when maxSurge is 0");
  }
  if (typeof maxUnavailable === "string" && amount(maxUnavailable) > 100) {
    errors.invalid(unavailablePath, maxUnavailable, "must not be more than 100%");
  }
}
