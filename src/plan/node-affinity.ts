import { meetsRequirement } from "../api/match-labels.ts";
import type { NodeSelectorTerm, Pod } from "../api/pod.ts";

type Requirement = NonNullable<NodeSelectorTerm["matchExpressions"]>[number];

/** Labels every node has, and those it was given. Source: the kubelet's initial node labels. */
export function computeNodeLabels(
  nodeName: string,
  architecture: string,
  given: Readonly<Record<string, string>>,
): Record<string, string> {
  return {
    "beta.kubernetes.io/arch": architecture,
    "beta.kubernetes.io/os": "linux",
    "kubernetes.io/arch": architecture,
    "kubernetes.io/hostname": nodeName,
    "kubernetes.io/os": "linux",
    ...given,
  };
}

/**
 * Whether the node is one the pod may run on: its nodeSelector and its required node affinity; preferences have no
 * meaning where there is one node. Source: upstream's PodMatchesNodeSelectorAndAffinityTerms.
 */
export function matchesNode(pod: Pod, nodeName: string, labels: Readonly<Record<string, string>>): boolean {
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {})) if (labels[key] !== value) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  // Terms are alternatives; none at all matches nothing.
  return !required || required.nodeSelectorTerms.some((term) => matchesTerm(term, nodeName, labels));
}

function matchesTerm(term: NodeSelectorTerm, nodeName: string, labels: Readonly<Record<string, string>>): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) => matchesRequirement(requirement, labelOf(labels, requirement.key))) &&
    matchFields.every((requirement) => requirement.key === "metadata.name" && matchesRequirement(requirement, nodeName))
  );
}

/** Own properties only: inherited ones are no labels. */
const labelOf = (labels: Readonly<Record<string, string>>, key: string) =>
  Object.hasOwn(labels, key) ? labels[key] : undefined;

function matchesRequirement({ operator, values = [] }: Requirement, value: string | undefined): boolean {
  if (operator !== "Gt" && operator !== "Lt") return meetsRequirement(value, { operator, values });
  const have = wholeNumber(value);
  const limit = wholeNumber(values[0]);
  if (have === undefined || limit === undefined) return false;
  return operator === "Gt" ? have > limit : have < limit;
}

const wholeNumber = (text: string | undefined): bigint | undefined =>
  text !== undefined && /^[+-]?\d+$/.test(text) ? BigInt(text.replace("+", "")) : undefined;
