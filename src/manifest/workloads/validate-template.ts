import { matchesSelector } from "../../base/api/match-labels.ts";
import type { LabelSelector, ObjectMeta, Pod } from "../../base/api/pod.ts";
import type { PodTemplateSpec, RollingUpdate } from "../../base/api/workload.ts";
import type { FieldPath } from "../field-path.ts";
import { FieldErrors } from "../validate/field-errors.ts";
import { validateMetadata } from "../validate/metadata.ts";
import { validatePodTemplate } from "../validate/pod.ts";
import { validateLabelSelector } from "../validate/scheduling.ts";

export interface ValidateOptions {
  allowPrivileged: boolean;
}

/** Validates the metadata of an object, then its spec. */
export function validateObject(
  metadata: ObjectMeta,
  path: FieldPath,
  validateSpec: (specPath: FieldPath, errors: FieldErrors) => void,
): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  validateSpec(path.child("spec"), errors);
  return errors;
}

/** Absent is allowed. */
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

/** The labels of the template must match the selector. */
export function validateMatch(
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
