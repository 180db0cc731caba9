import type {
  Affinity,
  LabelSelector,
  NodeAffinity,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
  Toleration,
  TopologySpreadConstraint,
} from "../../base/api/pod.ts";
import type { FieldPath } from "../field-path.ts";
import type { FieldErrors } from "./field-errors.ts";
import { checkDnsLabel, checkDnsSubdomain, checkLabelValue, checkQualifiedName, validateLabels } from "./names.ts";

// Fields that only a scheduler reads. They have no effect on one node, but errors in them are reported.

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

export function validateAffinity(affinity: Affinity, path: FieldPath, errors: FieldErrors): void {
  if (affinity.nodeAffinity) validateNodeAffinity(affinity.nodeAffinity, path.child("nodeAffinity"), errors);
  if (affinity.podAffinity) validatePodAffinity(affinity.podAffinity, path.child("podAffinity"), errors);
  if (affinity.podAntiAffinity) validatePodAffinity(affinity.podAntiAffinity, path.child("podAntiAffinity"), errors);
}

function validateNodeAffinity(affinity: NodeAffinity, path: FieldPath, errors: FieldErrors): void {
  const required = affinity[REQUIRED];
  if (required) validateNodeSelector(required, path.child(REQUIRED), errors);
  for (const [index, term] of (affinity[PREFERRED] ?? []).entries()) {
    const termPath = path.child(PREFERRED).index(index);
    validateWeight(term.weight, termPath, errors);
    validateNodeSelectorTerm(term.preference, termPath.child("preference"), errors, false);
  }
}

/** Source: core validation `ValidateNodeSelector`. */
export function validateNodeSelector(
  { nodeSelectorTerms }: { nodeSelectorTerms: readonly NodeSelectorTerm[] },
  path: FieldPath,
  errors: FieldErrors,
): void {
  const terms = path.child("nodeSelectorTerms");
  if (nodeSelectorTerms.length === 0) errors.required(terms, "must have at least one term");
  for (const [index, term] of nodeSelectorTerms.entries()) {
    validateNodeSelectorTerm(term, terms.index(index), errors, true);
  }
}

function validateWeight(weight: number, path: FieldPath, errors: FieldErrors): void {
  if (weight < 1 || weight > 100) errors.invalid(path.child("weight"), weight, "must be between 1 and 100");
}

function validateNodeSelectorTerm(
  term: NodeSelectorTerm,
  path: FieldPath,
  errors: FieldErrors,
  checkValues: boolean,
): void {
  for (const [index, requirement] of (term.matchExpressions ?? []).entries()) {
    const itemPath = path.child("matchExpressions").index(index);
    const values = requirement.values ?? [];
    const { operator } = requirement;
    if (operator === "Gt" || operator === "Lt") {
      if (values.length !== 1)
        errors.required(itemPath.child("values"), `must be one value when operator is ${operator}`);
    } else validateOperator(operator, values, itemPath, errors);
    errors.invalidAll(itemPath.child("key"), requirement.key, checkQualifiedName(requirement.key));
    if (checkValues) validateValues(values, itemPath, errors);
  }
  for (const [index, requirement] of (term.matchFields ?? []).entries()) {
    const itemPath = path.child("matchFields").index(index);
    const values = requirement.values ?? [];
    if (requirement.operator !== "In" && requirement.operator !== "NotIn") {
      errors.invalid(itemPath.child("operator"), requirement.operator, "must be In or NotIn");
    } else if (values.length !== 1) errors.required(itemPath.child("values"), "must be one value");
    if (requirement.key !== "metadata.name") {
      errors.invalid(itemPath.child("key"), requirement.key, "must be metadata.name");
      continue;
    }
    for (const [valueIndex, value] of values.entries()) {
      errors.invalidAll(itemPath.child("values").index(valueIndex), value, checkDnsSubdomain(value));
    }
  }
}

function validateOperator(operator: string, values: readonly string[], path: FieldPath, errors: FieldErrors): void {
  if (operator === "In" || operator === "NotIn") {
    if (values.length === 0) errors.required(path.child("values"), `is required when operator is ${operator}`);
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    if (values.length > 0) errors.forbidden(path.child("values"), `must be absent when operator is ${operator}`);
  } else errors.invalid(path.child("operator"), operator, "must be In, NotIn, Exists or DoesNotExist");
}

function validateValues(values: readonly string[], path: FieldPath, errors: FieldErrors): void {
  for (const [index, value] of values.entries()) {
    errors.invalidAll(path.child("values").index(index), value, checkLabelValue(value));
  }
}

/** Source: meta/v1 validation `ValidateLabelSelector`. */
export function validateLabelSelector(selector: LabelSelector, path: FieldPath, errors: FieldErrors): void {
  validateLabels(selector.matchLabels ?? {}, path.child("matchLabels"), errors);
  for (const [index, requirement] of (selector.matchExpressions ?? []).entries()) {
    const itemPath = path.child("matchExpressions").index(index);
    validateOperator(requirement.operator, requirement.values ?? [], itemPath, errors);
    errors.invalidAll(itemPath.child("key"), requirement.key, checkQualifiedName(requirement.key));
    validateValues(requirement.values ?? [], itemPath, errors);
  }
}

function validatePodAffinity(affinity: PodAffinity, path: FieldPath, errors: FieldErrors): void {
  for (const [index, term] of (affinity[REQUIRED] ?? []).entries()) {
    validatePodAffinityTerm(term, path.child(REQUIRED).index(index), errors);
  }
  for (const [index, weighted] of (affinity[PREFERRED] ?? []).entries()) {
    const termPath = path.child(PREFERRED).index(index);
    validateWeight(weighted.weight, termPath, errors);
    validatePodAffinityTerm(weighted.podAffinityTerm, termPath.child("podAffinityTerm"), errors);
  }
}

function validatePodAffinityTerm(term: PodAffinityTerm, path: FieldPath, errors: FieldErrors): void {
  if (term.labelSelector) validateLabelSelector(term.labelSelector, path.child("labelSelector"), errors);
  if (term.namespaceSelector) validateLabelSelector(term.namespaceSelector, path.child("namespaceSelector"), errors);
  for (const [index, name] of (term.namespaces ?? []).entries()) {
    errors.invalidAll(path.child("namespace"), name, checkDnsLabel(name), {
      at: path.child("namespaces").index(index),
    });
  }
  const keyPath = path.child("topologyKey");
  if (term.topologyKey === "") errors.required(keyPath, "must not be empty");
  errors.invalidAll(keyPath, term.topologyKey, checkQualifiedName(term.topologyKey));
}

/** @param at position in the text when it differs from `path` (tolerations in an annotation). */
export function validateTolerations(
  tolerations: readonly Toleration[],
  path: FieldPath,
  errors: FieldErrors,
  at?: FieldPath,
): void {
  const position = at ? { at } : undefined;
  for (const [index, toleration] of tolerations.entries()) {
    const itemPath = path.index(index);
    const { key = "", value = "", operator, effect } = toleration;
    if (key !== "") errors.invalidAll(itemPath.child("key"), key, checkQualifiedName(key), position);
    if (key === "" && operator !== "Exists") {
      errors.invalid(itemPath.child("operator"), operator, "must be Exists when key is empty", position);
    }
    if (toleration.tolerationSeconds !== undefined && effect !== "NoExecute") {
      const message = "must be NoExecute when tolerationSeconds is set";
      errors.invalid(itemPath.child("effect"), effect, message, position);
    }
    if (operator === undefined || operator === "Equal") {
      const messages = checkLabelValue(value);
      // Upstream joins the messages and names the operator.
      const valuePosition = position ?? { at: itemPath.child("value") };
      if (messages.length > 0)
        errors.invalid(itemPath.child("operator"), value, `value ${messages.join("; ")}`, valuePosition);
    } else if (operator === "Exists") {
      const valuePosition = position ?? { at: itemPath.child("value") };
      if (value !== "")
        errors.invalid(itemPath.child("operator"), value, "value must be empty when operator is Exists", valuePosition);
    } else errors.notSupported(itemPath.child("operator"), operator, ["Equal", "Exists"], position);
    const effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
    if (effect !== undefined && !effects.includes(effect)) {
      errors.notSupported(itemPath.child("effect"), effect, effects, position);
    }
  }
}

const SPREAD_ACTIONS = ["DoNotSchedule", "ScheduleAnyway"];
const INCLUSION_POLICIES = ["Honor", "Ignore"];

export function validateTopologySpread(
  constraints: readonly TopologySpreadConstraint[],
  path: FieldPath,
  errors: FieldErrors,
): void {
  const last = new Map(
    constraints.map(({ topologyKey, whenUnsatisfiable }, index) => [`{${topologyKey}, ${whenUnsatisfiable}}`, index]),
  );
  for (const [index, constraint] of constraints.entries()) {
    const itemPath = path.index(index);
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains } = constraint;
    if (maxSkew <= 0) errors.invalid(itemPath.child("maxSkew"), maxSkew, "must be greater than 0");
    if (topologyKey === "") errors.required(itemPath.child("topologyKey"), "must not be empty");
    if (!SPREAD_ACTIONS.includes(whenUnsatisfiable)) {
      errors.notSupported(itemPath.child("whenUnsatisfiable"), whenUnsatisfiable, SPREAD_ACTIONS);
    }
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`;
    // Upstream reports the first of two equal ones.
    if (last.get(pair) !== index) errors.duplicate(itemPath.child("{topologyKey, whenUnsatisfiable}"), pair);
    if (minDomains !== undefined && (minDomains <= 0 || whenUnsatisfiable !== "DoNotSchedule")) {
      const message = "must be greater than 0, and whenUnsatisfiable DoNotSchedule";
      errors.invalid(itemPath.child("minDomains"), minDomains, message);
    }
    for (const name of ["nodeAffinityPolicy", "nodeTaintsPolicy"] as const) {
      const policy = constraint[name];
      if (policy !== undefined && !INCLUSION_POLICIES.includes(policy)) {
        errors.notSupported(itemPath.child(name), policy, INCLUSION_POLICIES);
      }
    }
    if (constraint.labelSelector)
      validateLabelSelector(constraint.labelSelector, itemPath.child("labelSelector"), errors);
  }
}
