import type { Pod } from "../../base/api/pod.ts";
import type {
  DaemonSet,
  Deployment,
  DeploymentSpec,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from "../../base/api/workload.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors } from "../validate/field-errors.ts";
import { validateLabels } from "../validate/names.ts";
import {
  type ValidateOptions,
  validateFenceposts,
  validateMatch,
  validateNonNegative,
  validateObject,
  validateReplicaTemplate,
  validateSelector,
} from "./validate-template.ts";

/** Source: apps validation `ValidateDeployment`. */
export function validateDeployment(
  { metadata, spec }: Deployment,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  return validateObject(metadata, path, (specPath, errors) => {
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
  });
}

/** Source: apps validation `ValidateReplicaSet`. */
export function validateReplicaSet(
  { metadata, spec }: ReplicaSet,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  return validateObject(metadata, path, (specPath, errors) => {
    validateNonNegative(spec.replicas, specPath.child("replicas"), errors);
    validateNonNegative(spec.minReadySeconds, specPath.child("minReadySeconds"), errors);
    validateSelector(spec.selector, spec.template, specPath, errors);
    validateReplicaTemplate(spec.template, specPath.child("template"), options, errors);
  });
}

/** Source: core validation `ValidateReplicationController`. */
export function validateReplicationController(
  { metadata, spec }: ReplicationController,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  return validateObject(metadata, path, (specPath, errors) => {
    validateNonNegative(spec.minReadySeconds, specPath.child("minReadySeconds"), errors);
    validateNonNegative(spec.replicas, specPath.child("replicas"), errors);
    const matchLabels = spec.selector ?? {};
    if (Object.keys(matchLabels).length === 0) errors.required(specPath.child("selector"));
    else {
      validateLabels(matchLabels, specPath.child("selector"), errors);
      validateMatch({ matchLabels }, spec.template, specPath, errors);
    }
    validateReplicaTemplate(spec.template, specPath.child("template"), options, errors);
  });
}

/**
 * Source: apps validation `ValidateStatefulSet`. Volumes of the claim templates count as volumes of the pods.
 */
export function validateStatefulSet(
  { metadata, spec }: StatefulSet,
  path: FieldPath,
  options: ValidateOptions,
): FieldErrors {
  return validateObject(metadata, path, (specPath, errors) => {
    const policies = ["OrderedReady", "Parallel"];
    if (!policies.includes(spec.podManagementPolicy)) {
      errors.invalid(
        specPath.child("podManagementPolicy"),
        spec.podManagementPolicy,
        "must be OrderedReady or Parallel",
      );
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
  });
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
  return validateObject(metadata, path, (specPath, errors) => {
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
  });
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
