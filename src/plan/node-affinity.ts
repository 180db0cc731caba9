import { meetsRequirement } from "../base/api/meta.ts";
import type { NodeSelector, NodeSelectorTerm, Pod } from "../base/api/pod.ts";

type Requirement = NonNullable<NodeSelectorTerm["matchExpressions"]>[number];

const machineLabels = (nodeName: string, architecture: string) => ({
  "beta.kubernetes.io/arch": architecture,
  "beta.kubernetes.io/os": "linux",
  "kubernetes.io/arch": architecture,
  "kubernetes.io/hostname": nodeName,
  "kubernetes.io/os": "linux",
});

/** Labels of every node: they say what the machine is. All others are given to it and say what it is for. */
export const MACHINE_LABELS: ReadonlySet<string> = new Set(Object.keys(machineLabels("", "")));

/** Labels every node has, and those it was given. Source: the kubelet's initial node labels. */
export const computeNodeLabels = (
  nodeName: string,
  architecture: string,
  given: Readonly<Record<string, string>>,
): Record<string, string> => ({ ...machineLabels(nodeName, architecture), ...given });

/** Compares nodeSelector and required node affinity. Source: upstream's PodMatchesNodeSelectorAndAffinityTerms. */
export function matchesNode(pod: Pod, nodeName: string, labels: Readonly<Record<string, string>>): boolean {
  for (const [key, value] of Object.entries(pod.spec.nodeSelector ?? {})) if (labels[key] !== value) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return !required || matchesNodeSelector(required, nodeName, labels);
}

/**
 * Whether the only node runs the pods of a template that no scheduler places: the labels they ask for count once the
 * node was given some; labels of the machine always do.
 * @returns also the labels that are not compared, e.g. `disk=ssd`
 */
export function matchesOnlyNode(
  pod: Pod,
  nodeName: string,
  labels: Readonly<Record<string, string>>,
): { matches: boolean; ignored: string[] } {
  if (matchesNode(pod, nodeName, labels)) return { matches: true, ignored: [] };
  const isGiven = (key: string) => !MACHINE_LABELS.has(key);
  if (Object.keys(labels).some(isGiven)) return { matches: false, ignored: [] };
  const { nodeSelector = {}, affinity } = pod.spec;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const selected = Object.entries(nodeSelector);
  const terms = required?.nodeSelectorTerms ?? [];
  const machineTerms = terms.map((term) => ({
    ...term,
    matchExpressions: (term.matchExpressions ?? []).filter(({ key }) => !isGiven(key)),
  }));
  // A term that asks for nothing else matches.
  const isOpen = ({ matchExpressions, matchFields = [] }: NodeSelectorTerm, index: number) =>
    matchExpressions!.length + matchFields.length === 0 && (terms[index]!.matchExpressions?.length ?? 0) > 0;
  const matches =
    selected.every(([key, value]) => isGiven(key) || labels[key] === value) &&
    (!required || machineTerms.some((term, index) => isOpen(term, index) || matchesTerm(term, nodeName, labels)));
  if (!matches) return { matches, ignored: [] };
  const keys = terms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key));
  const ignored = [
    ...selected.filter(([key]) => isGiven(key)).map(([key, value]) => `${key}=${value}`),
    ...keys.filter(isGiven),
  ];
  return { matches, ignored: [...new Set(ignored)] };
}

/** @param ignored labels of {@link matchesOnlyNode} */
export const describeIgnoredLabels = (ignored: readonly string[]): string =>
  `${ignored.map((label) => label.replace(/=$/, "")).join(", ")} ${ignored.length === 1 ? "has" : "have"} no effect here: this is the only node, and it was given no labels; with --node-labels they count`;

/** Whether a node is one that a selector means: its terms are alternatives, and none at all matches nothing. */
export const matchesNodeSelector = (
  { nodeSelectorTerms }: NodeSelector,
  nodeName: string,
  labels: Readonly<Record<string, string>>,
): boolean => nodeSelectorTerms.some((term) => matchesTerm(term, nodeName, labels));

function matchesTerm(term: NodeSelectorTerm, nodeName: string, labels: Readonly<Record<string, string>>): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length + matchFields.length === 0) return false;
  return (
    matchExpressions.every((requirement) => matchesRequirement(requirement, labelOf(labels, requirement.key))) &&
    matchFields.every((requirement) => requirement.key === "metadata.name" && matchesRequirement(requirement, nodeName))
  );
}

/** Own properties only: inherited ones are not labels. */
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
