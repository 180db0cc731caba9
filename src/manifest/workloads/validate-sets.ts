import type { Pod } from "../../api/pod.ts";
import type { DaemonSet, StatefulSet } from "../../api/workload.ts";
import type { FieldPath } from "../field-path.ts";
import { FieldErrors } from "../validate/field-errors.ts";
import { validateMetadata } from "../validate/metadata.ts";
import {
  type ValidateOptions,
  validateFenceposts,
  validateNonNegative,
  validateReplicaTemplate,
  validateSelector,
} from "./validate-workload.ts";

/**
 * Source: apps validation `ValidateStatefulSet`. Volumes that the claim templates bring count as volumes of the pods.
 */
export function validateStatefulSet(
  { metadata, spec }: StatefulSet,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  const specPath = path.child("spec");
  const policies = ["OrderedReady", "Parallel"];
  if (!policies.includes(spec.podManagementPolicy)) {
    errors.invalid(specPath.child("podManagementPolicy"), spec.podManagementPolicy, "must be OrderedReady or Parallel");
  }
  validateStatefulStrategy(spec.updateStrategy, specPath.child("updateStrategy"), errors);
  validateNonNegative(spec.replicas, specPath.child("replicas"), errors);
  validateNonNegative(spec.minReadySeconds, specPath.child("minReadySeconds"), errors);
  validateNonNegative(spec.ordinals?.start, specPath.child("ordinals").child("start"), errors);
  validateSelector(spec.selector, spec.template, specPath, errors);
  const claims = (spec.volumeClaimTemplates ?? []).map(({ metadata: { name = "" } }) => name);
  for (const [index, name] of claims.entries()) {
    const namePath = specPath.child("volumeClaimTemplates").index(index).child("metadata").child("name");
    if (name === "") errors.required(namePath);
    else if (claims.indexOf(name) < index) errors.duplicate(namePath, name);
  }
  const { volumes = [] } = spec.template.spec;
  const others = volumes.filter(({ name }) => !claims.includes(name));
  const claimed = claims
    .filter((name) => name !== "")
    .map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const template = { ...spec.template, spec: { ...spec.template.spec, volumes: [...others, ...claimed] } } as Pod;
  validateReplicaTemplate(template, specPath.child("template"), options, errors);
  return errors;
}

function validateStatefulStrategy(
  { type, rollingUpdate }: StatefulSet["spec"]["updateStrategy"],
  path: FieldPath,
  errors: FieldErrors,
): void {
  if (type === "OnDelete") {
    if (rollingUpdate) {
      errors.invalid(path.child("rollingUpdate"), rollingUpdate, "must be absent when type is OnDelete");
    }
  } else if (type === "RollingUpdate") {
    validateNonNegative(rollingUpdate?.partition, path.child("rollingUpdate").child("partition"), errors);
  } else errors.invalid(path, type, "must be RollingUpdate or OnDelete", { at: path.child("type") });
}

/** Source: apps validation `ValidateDaemonSet`; maxSurge as of 1.22. */
export function validateDaemonSet(
  { metadata, spec }: DaemonSet,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  const errors = new FieldErrors();
  validateMetadata(metadata, path.child("metadata"), errors);
  const specPath = path.child("spec");
  validateSelector(spec.selector, spec.template, specPath, errors);
  validateReplicaTemplate(spec.template, specPath.child("template"), options, errors);
  validateNonNegative(spec.minReadySeconds, specPath.child("minReadySeconds"), errors);
  validateNonNegative(spec.revisionHistoryLimit, specPath.child("revisionHistoryLimit"), errors);
  const strategyPath = specPath.child("updateStrategy");
  const { type, rollingUpdate } = spec.updateStrategy;
  const types = ["RollingUpdate", "OnDelete"];
  if (!types.includes(type)) errors.notSupported(strategyPath.child("type"), type, types);
  else if (type === "RollingUpdate" && rollingUpdate) {
    validateFenceposts(rollingUpdate, strategyPath.child("rollingUpdate"), errors);
  }
  return errors;
}
