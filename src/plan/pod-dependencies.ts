import {
  DEPENDS_ON_ANNOTATION,
  DEPENDS_ON_TIMEOUT_ANNOTATION,
  durationOf,
  type PodDependency,
  parseDependsOn,
} from "../base/api/annotations.ts";
import { hasCondition, type ObjectMeta } from "../base/api/meta.ts";
import type { Pod, PodStatus } from "../base/api/pod.ts";
import { type PodUID, podFullName } from "../base/model/pod.ts";
import { formatDuration } from "../base/text/duration.ts";
import type { WaitingReason } from "./pod-plan.ts";
import type { RolloutProgress } from "./rollout.ts";

const DEFAULT_DEPENDENCY_TIMEOUT_MS = 300_000;

/** Pods that this one waits for; none when the annotation is missing or malformed, which is a finding of its manifest. */
export function dependenciesOf({ metadata }: Pod): PodDependency[] {
  const text = metadata.annotations?.[DEPENDS_ON_ANNOTATION];
  return (text !== undefined && parseDependsOn(text)) || [];
}

/** How long a pod waits before its wait is reported as a warning. It keeps waiting. */
export const dependencyTimeoutMs = ({ metadata }: Pod): number =>
  durationOf(metadata, DEPENDS_ON_TIMEOUT_ANNOTATION, DEFAULT_DEPENDENCY_TIMEOUT_MS);

/** Names in the annotation have no node suffix; a name with it is accepted too. That of a workload means its pods. */
export function isDependencyOn({ namespace, name }: PodDependency, { metadata, spec }: Pod): boolean {
  if ((metadata.namespace ?? "default") !== namespace) return false;
  const owner = metadata.ownerReferences?.find(({ controller }) => controller)?.name;
  const names = [metadata.name, owner];
  return (
    names.includes(name) || names.includes(`${name}-${spec.nodeName ?? ""}`) || owner === `${name}-${hashOf(metadata)}`
  );
}

/** The end of the name of a Deployment's ReplicaSet. */
const hashOf = ({ labels }: ObjectMeta) => labels?.["pod-template-hash"] ?? "";

/** A pod that others may depend on, with the state of its worker; neither before it has one. */
export interface DependencyState {
  pod: Pod;
  status: PodStatus | undefined;
  rollout: RolloutProgress;
}

/** The first dependency that is not met; one whose edit is in progress is not. @param waitedMs so far */
export function findHold(
  pod: Pod,
  others: () => readonly DependencyState[],
  waitedMs: number,
): WaitingReason | undefined {
  const dependencies = dependenciesOf(pod);
  const states = dependencies.length > 0 ? others() : [];
  for (const dependency of dependencies) {
    const { namespace, name, condition } = dependency;
    const targets = states.filter((other) => isDependencyOn(dependency, other.pod));
    if (targets.length > 0 && targets.every((target) => isMet(dependency, target))) continue;
    const timeoutMs = dependencyTimeoutMs(pod);
    return waitedMs < timeoutMs
      ? { reason: "WaitingForDependency", message: `waits for pod "${namespace}/${name}" to be ${condition}` }
      : {
          reason: "DependencyTimeout",
          message: `pod "${namespace}/${name}" was not ${condition} within ${formatDuration(timeoutMs)}; still waiting`,
        };
  }
  return undefined;
}

function isMet({ condition }: PodDependency, { status, rollout }: DependencyState): boolean {
  if (!status || rollout !== "live") return false;
  // A pod that has succeeded ran, and will not run again.
  if (condition !== "Ready" && status.phase === "Succeeded") return true;
  if (condition === "Succeeded") return false;
  if (condition === "Ready") return hasCondition(status, "Ready");
  return status.phase === "Running" && (status.containerStatuses ?? []).every(({ state }) => state.running);
}

/** Names that do not exist, and cycles, whose pods never start; by UID. */
export function findDependencyProblems(pods: readonly Pod[]): Map<PodUID, WaitingReason> {
  const problems = new Map<PodUID, WaitingReason>();
  for (const pod of pods) {
    if (dependenciesOf(pod).length === 0) continue;
    const uid = pod.metadata.uid ?? "";
    const missing = dependenciesOf(pod).find((dependency) => !pods.some((other) => isDependencyOn(dependency, other)));
    const cycle = findCycle(pod, pods);
    if (missing) {
      const message = `${DEPENDS_ON_ANNOTATION}: there is no pod "${missing.namespace}/${missing.name}"`;
      problems.set(uid, { reason: "DependencyNotFound", message });
    } else if (cycle) {
      const names = cycle.map(({ metadata }) => podFullName(metadata)).join(" -> ");
      const message = `${DEPENDS_ON_ANNOTATION}: the dependencies form a cycle: ${names}`;
      problems.set(uid, { reason: "DependencyCycle", message });
    }
  }
  return problems;
}

const targetsOf = (pod: Pod, pods: readonly Pod[]) =>
  dependenciesOf(pod).flatMap((dependency) => pods.filter((other) => isDependencyOn(dependency, other)));

/** A way from the pod back to itself. */
function findCycle(start: Pod, pods: readonly Pod[]): Pod[] | undefined {
  const seen = new Set<Pod>();
  const visit = (pod: Pod, trail: readonly Pod[]): Pod[] | undefined => {
    for (const target of targetsOf(pod, pods)) {
      if (target === start) return [...trail, start];
      if (seen.has(target)) continue;
      seen.add(target);
      const cycle = visit(target, [...trail, target]);
      if (cycle) return cycle;
    }
    return undefined;
  };
  return visit(start, [start]);
}

/** Pods that depend on `pod` and so stop before it. In a cycle the order does not matter. */
export function findStopsBefore(pod: Pod, stopping: readonly Pod[]): Pod[] {
  return stopping.filter(
    (other) =>
      other !== pod &&
      dependenciesOf(other).some((dependency) => isDependencyOn(dependency, pod)) &&
      !findCycle(other, stopping)?.includes(pod),
  );
}
