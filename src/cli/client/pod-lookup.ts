import type { Pod } from "../../base/api/pod.ts";
import { nearestName } from "../../base/text/nearest-name.ts";

/** Which pods are meant. */
export interface PodScope {
  /** undefined: all of them. */
  namespace: string | undefined;
}

/** Pods of a namespace, or all. */
export const inScope = (pods: readonly Pod[], { namespace }: PodScope): Pod[] =>
  pods.filter((pod) => namespace === undefined || namespaceOf(pod) === namespace);

export const namespaceOf = ({ metadata }: Pod): string => metadata.namespace ?? "default";

/**
 * The pod of that name. The suffix a static pod has, its node's name, may be left out, as in the manifest; `pod/web` is
 * `web`. Where namespaces have pods of the same name, one must be chosen.
 * @returns the message for the user as `problem`
 */
export function findPod(pods: readonly Pod[], written: string, scope: PodScope): Pod | { problem: string } {
  const name = written.replace(/^(pods?|po)\//, "");
  const candidates = inScope(pods, scope);
  const exact = candidates.filter(({ metadata }) => metadata.name === name);
  const found =
    exact.length > 0 ? exact : candidates.filter(({ metadata, spec }) => metadata.name === `${name}-${spec.nodeName}`);
  const [pod, ...others] = found;
  if (!pod) return { problem: notFound(pods, candidates, name, scope) };
  if (others.length === 0) return pod;
  return {
    problem: `there are pods "${name}" in the namespaces ${found.map(namespaceOf).join(", ")}: choose one with -n`,
  };
}

const MAX_NAMES = 10;

function notFound(all: readonly Pod[], candidates: readonly Pod[], name: string, { namespace }: PodScope): string {
  const where = namespace === undefined ? "" : ` in namespace "${namespace}"`;
  const elsewhere = namespace === undefined ? undefined : findPod(all, name, { namespace: undefined });
  const hint =
    elsewhere && "metadata" in elsewhere ? `it is in namespace "${namespaceOf(elsewhere)}"` : hintOf(name, candidates);
  return `pod "${name}" not found${where}; ${hint}`;
}

function hintOf(name: string, candidates: readonly Pod[]): string {
  if (candidates.length === 0) return "there are no pods";
  const full = [...new Set(candidates.map(({ metadata }) => metadata.name ?? ""))];
  const short = candidates.map(({ metadata, spec }) => metadata.name?.replace(`-${spec.nodeName}`, "") ?? "");
  const near = nearestName(name, [...full, ...short]) ?? full.find((candidate) => candidate.includes(name));
  if (near !== undefined) return `did you mean "${near}"?`;
  const more = full.length > MAX_NAMES ? `, … (${full.length} in all)` : "";
  return `there are ${full.slice(0, MAX_NAMES).join(", ")}${more}`;
}
