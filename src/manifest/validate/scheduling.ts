import type {
  Affinity,
  LabelSelector,
  NodeSelectorTerm,
  PodAffinity,
  PodAffinityTerm,
  Toleration,
  TopologySpreadConstraint,
} from "../../base/api/pod.ts";
import type { Field } from "../field.ts";
import { checkDnsLabel, checkDnsSubdomain, checkLabelValue, checkQualifiedName, validateLabels } from "./names.ts";

// Fields that only a scheduler reads. They have no effect on one node, but errors in them are reported.

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

export function validateAffinity(affinity: Field<Affinity | undefined>): void {
  const node = affinity.field("nodeAffinity");
  validateNodeSelector(node.field(REQUIRED));
  for (const term of node.field(PREFERRED).items()) {
    term.field("weight").between(1, 100);
    validateNodeSelectorTerm(term.field("preference"), false);
  }
  validatePodAffinity(affinity.field("podAffinity"));
  validatePodAffinity(affinity.field("podAntiAffinity"));
}

/** Source: core validation `ValidateNodeSelector`. */
export function validateNodeSelector(
  selector: Field<{ nodeSelectorTerms: readonly NodeSelectorTerm[] } | undefined>,
): void {
  const terms = selector.field("nodeSelectorTerms");
  if (terms.value?.length === 0) terms.required("must have at least one term");
  for (const term of terms.items()) validateNodeSelectorTerm(term, true);
}

function validateNodeSelectorTerm(term: Field<NodeSelectorTerm>, checkValues: boolean): void {
  for (const requirement of term.field("matchExpressions").items()) {
    const { operator, values = [] } = requirement.value;
    if (operator !== "Gt" && operator !== "Lt") validateOperator(requirement);
    else if (values.length !== 1)
      requirement.field("values").required(`must be one value when operator is ${operator}`);
    requirement.field("key").format(checkQualifiedName);
    if (checkValues) for (const value of requirement.field("values").items()) value.format(checkLabelValue);
  }
  for (const requirement of term.field("matchFields").items()) {
    const { operator, values = [] } = requirement.value;
    if (operator !== "In" && operator !== "NotIn") requirement.field("operator").invalid("must be In or NotIn");
    else if (values.length !== 1) requirement.field("values").required("must be one value");
    if (requirement.value.key !== "metadata.name") requirement.field("key").invalid("must be metadata.name");
    else for (const value of requirement.field("values").items()) value.format(checkDnsSubdomain);
  }
}

type Requirement = NonNullable<LabelSelector["matchExpressions"]>[number];

function validateOperator(requirement: Field<Omit<Requirement, "operator"> & { operator: string }>): void {
  const { operator, values = [] } = requirement.value;
  if (operator === "In" || operator === "NotIn") {
    if (values.length === 0) requirement.field("values").required(`is required when operator is ${operator}`);
  } else if (operator === "Exists" || operator === "DoesNotExist") {
    if (values.length > 0) requirement.field("values").forbidden(`must be absent when operator is ${operator}`);
  } else requirement.field("operator").invalid("must be In, NotIn, Exists or DoesNotExist");
}

/** Source: meta/v1 validation `ValidateLabelSelector`. */
export function validateLabelSelector(selector: Field<LabelSelector | undefined>): void {
  validateLabels(selector.field("matchLabels"));
  for (const requirement of selector.field("matchExpressions").items()) {
    validateOperator(requirement);
    requirement.field("key").format(checkQualifiedName);
    for (const value of requirement.field("values").items()) value.format(checkLabelValue);
  }
}

function validatePodAffinity(affinity: Field<PodAffinity | undefined>): void {
  for (const term of affinity.field(REQUIRED).items()) validatePodAffinityTerm(term);
  for (const weighted of affinity.field(PREFERRED).items()) {
    weighted.field("weight").between(1, 100);
    validatePodAffinityTerm(weighted.field("podAffinityTerm"));
  }
}

function validatePodAffinityTerm(term: Field<PodAffinityTerm>): void {
  validateLabelSelector(term.field("labelSelector"));
  validateLabelSelector(term.field("namespaceSelector"));
  for (const name of term.field("namespaces").items()) name.as(term.path.child("namespace")).format(checkDnsLabel);
  const key = term.field("topologyKey");
  if (key.value === "") key.required("must not be empty");
  key.format(checkQualifiedName);
}

/** Upstream names the operator in errors of the value. */
export function validateTolerations(tolerations: Field<readonly Toleration[] | undefined>): void {
  for (const toleration of tolerations.items()) {
    const { key = "", value = "", effect, tolerationSeconds } = toleration.value;
    const operator = toleration.field("operator");
    if (key !== "") toleration.field("key").format(checkQualifiedName);
    if (key === "" && operator.value !== "Exists") operator.invalid("must be Exists when key is empty");
    if (tolerationSeconds !== undefined && effect !== "NoExecute") {
      toleration.field("effect").invalid("must be NoExecute when tolerationSeconds is set");
    }
    const ofValue = toleration.field("value").with(value).as(operator.path);
    if (operator.value === undefined || operator.value === "Equal") {
      const messages = checkLabelValue(value);
      if (messages.length > 0) ofValue.invalid(`value ${messages.join("; ")}`);
    } else if (operator.value === "Gt" || operator.value === "Lt") {
      if (!/^(?:0|-?[1-9]\d*)$/.test(value))
        ofValue.invalid(`value must be an integer when operator is ${operator.value}`);
    } else if (operator.value !== "Exists") operator.notSupported(["Equal", "Exists", "Gt", "Lt"]);
    else if (value !== "") ofValue.invalid("value must be empty when operator is Exists");
    toleration.field("effect").oneOf(["NoSchedule", "PreferNoSchedule", "NoExecute"]);
  }
}

export function validateTopologySpread(constraints: Field<readonly TopologySpreadConstraint[] | undefined>): void {
  const pairOf = ({ topologyKey, whenUnsatisfiable }: TopologySpreadConstraint) =>
    `{${topologyKey}, ${whenUnsatisfiable}}`;
  const last = new Map(constraints.value?.map((constraint) => [pairOf(constraint), constraint]));
  for (const constraint of constraints.items()) {
    const { maxSkew, topologyKey, whenUnsatisfiable, minDomains } = constraint.value;
    if (maxSkew <= 0) constraint.field("maxSkew").invalid("must be greater than 0");
    if (topologyKey === "") constraint.field("topologyKey").required("must not be empty");
    constraint.field("whenUnsatisfiable").oneOf(["DoNotSchedule", "ScheduleAnyway"]);
    const pair = pairOf(constraint.value);
    // Upstream reports the first of two equal ones.
    if (last.get(pair) !== constraint.value) {
      constraint.with(pair).as(constraint.path.child("{topologyKey, whenUnsatisfiable}")).duplicate();
    }
    if (minDomains !== undefined && (minDomains <= 0 || whenUnsatisfiable !== "DoNotSchedule")) {
      constraint.field("minDomains").invalid("must be greater than 0, and whenUnsatisfiable DoNotSchedule");
    }
    for (const name of ["nodeAffinityPolicy", "nodeTaintsPolicy"] as const) {
      constraint.field(name).oneOf(["Honor", "Ignore"]);
    }
    validateLabelSelector(constraint.field("labelSelector"));
  }
}
