import type { ContainerStatus, PodCondition, PodStatus } from "../../base/api/pod.ts";
import { judgeReadinessGates, OWN_CONDITIONS } from "../../plan/status/compute-pod-status.ts";

/** Fields of a status that only this node sets: an absent one is deleted from the API object. */
const OWN_FIELDS = [
  "message",
  "reason",
  "podIP",
  "podIPs",
  "containerStatuses",
  "initContainerStatuses",
  "ephemeralContainerStatuses",
] as const;
/** Lists that a strategic merge patch would add to. */
const MERGED_LISTS: ReadonlySet<string> = new Set(["podIPs", "hostIPs"]);

/**
 * The status to report: that of this node, with conditions that others have set, with the Ready condition as the
 * readiness gates make it, and with times that do not move while nothing changes.
 * @param api the status as the API server has it
 * @param now RFC 3339: when the gates change the Ready condition
 */
export function mergePodStatus(
  ours: PodStatus,
  api: PodStatus | undefined,
  gates: readonly { conditionType: string }[],
  now: string,
): PodStatus {
  const known = api?.conditions ?? [];
  const own = (ours.conditions ?? []).map((condition) => withGates(condition, gates, known, now));
  const types = new Set(own.map(({ type }) => type));
  const foreign = known.filter(({ type }) => !types.has(type) && !OWN_CONDITIONS.has(type));
  return {
    ...withKnownImages(ours, api),
    conditions: [...own.map((condition) => withKnownTransition(condition, known)), ...foreign],
    ...(api?.startTime && { startTime: api.startTime }),
    ...(ours.qosClass === undefined && api?.qosClass !== undefined && { qosClass: api.qosClass }),
  };
}

const CONTAINER_LISTS = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"] as const;

/** An image may have several names: one container keeps that which was reported first, also over our restarts. */
function withKnownImages(ours: PodStatus, api: PodStatus | undefined): PodStatus {
  const names = new Map(
    CONTAINER_LISTS.flatMap((list) => api?.[list] ?? []).map(({ containerID, image }) => [containerID, image]),
  );
  const lists = CONTAINER_LISTS.flatMap((list) => {
    const statuses = ours[list]?.map((status) => {
      const image = status.containerID && names.get(status.containerID);
      return image ? { ...status, image } : status;
    });
    return statuses ? [[list, statuses] as const] : [];
  });
  return { ...ours, ...Object.fromEntries(lists) };
}

/**
 * The status, of this generation of the pod's spec: as a whole and in each condition. Source: newer kubelets.
 * @param generation undefined where the API server counts none
 */
export function withObservedGeneration(status: PodStatus, generation: number | undefined): PodStatus {
  if (generation === undefined) return status;
  const conditions = (status.conditions ?? []).map((condition) => ({ ...condition, observedGeneration: generation }));
  return { ...status, observedGeneration: generation, conditions };
}

function withGates(
  condition: PodCondition,
  gates: readonly { conditionType: string }[],
  known: readonly PodCondition[],
  now: string,
): PodCondition {
  if (condition.type !== "Ready" || gates.length === 0 || isUnreadyAnyway(condition)) return condition;
  const states = new Map(known.map(({ type, status }) => [type, status]));
  const { type, lastProbeTime, observedGeneration } = condition;
  const verdict = judgeReadinessGates(gates, states);
  const lastTransitionTime = verdict.status === condition.status ? condition.lastTransitionTime : now;
  const generation = observedGeneration === undefined ? {} : { observedGeneration };
  return { type, ...generation, lastProbeTime, lastTransitionTime, ...verdict } as PodCondition;
}

/** Not ready for another reason than the gates, which are judged here. */
const isUnreadyAnyway = ({ status, reason }: PodCondition) => status !== "True" && reason !== "ReadinessGatesNotReady";

function withKnownTransition(condition: PodCondition, known: readonly PodCondition[]): PodCondition {
  const before = known.find(({ type }) => type === condition.type);
  return before?.status === condition.status && before.lastTransitionTime
    ? { ...condition, lastTransitionTime: before.lastTransitionTime }
    : condition;
}

/**
 * Strategic merge patch from the status the API server has to the wanted one: only fields that differ.
 * @returns undefined when nothing does
 */
export function computeStatusPatch(
  uid: string,
  api: PodStatus | undefined,
  wanted: PodStatus,
): { metadata: { uid: string }; status: Record<string, unknown> } | undefined {
  const before = (api ?? {}) as Record<string, unknown>;
  const status: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(wanted)) {
    if (name === "conditions" || isSame(before[name], value)) continue;
    const isReplaced = MERGED_LISTS.has(name) && Array.isArray(before[name]);
    status[name] = isReplaced ? [...(value as unknown[]), { $patch: "replace" }] : value;
  }
  for (const name of OWN_FIELDS) {
    if (before[name] !== undefined && wanted[name] === undefined) status[name] = null;
  }
  const conditions = (wanted.conditions ?? []).flatMap((condition) => {
    const known = api?.conditions?.find(({ type }) => type === condition.type);
    return isSame(known, condition) ? [] : [withRemovedMembers(condition, known)];
  });
  const wantedTypes = new Set(wanted.conditions?.map(({ type }) => type));
  const removed = (api?.conditions ?? [])
    .filter(({ type }) => OWN_CONDITIONS.has(type) && !wantedTypes.has(type))
    .map(({ type }) => ({ type, $patch: "delete" }));
  if (conditions.length + removed.length > 0) status.conditions = [...conditions, ...removed];
  return Object.keys(status).length === 0 ? undefined : { metadata: { uid }, status };
}

/**
 * Why the wanted status would be a step back from what the API server has: a pod that has ended runs again, or a
 * container that must not be started again does. Source: the kubelet's checkContainerStateTransition.
 */
export function findStepBack(
  api: PodStatus | undefined,
  wanted: PodStatus,
  restartPolicy = "Always",
): string | undefined {
  const { phase } = api ?? {};
  if ((phase === "Failed" || phase === "Succeeded") && wanted.phase !== phase) {
    return `the pod has ended (${phase}) and cannot be ${wanted.phase}`;
  }
  if (restartPolicy === "Always") return undefined;
  for (const before of api?.containerStatuses ?? []) {
    const after = wanted.containerStatuses?.find(({ name }) => name === before.name);
    const exitCode = before.state.terminated?.exitCode;
    if (exitCode === undefined || !after || after.state.terminated) continue;
    if (restartPolicy === "OnFailure" && exitCode !== 0) continue;
    return `container "${before.name}" has ended and its restart policy is ${restartPolicy}`;
  }
  return undefined;
}

/** The part of a status that this node alone decides: a difference means that another client has changed it. */
export function ownPart(status: PodStatus | undefined): unknown {
  const { phase, message, reason, podIP, containerStatuses, initContainerStatuses } = status ?? {};
  const ready = status?.conditions?.find(({ type }) => type === "ContainersReady")?.status;
  const states = (list: readonly ContainerStatus[] = []) =>
    list.map(({ name, state, ready, restartCount }) => ({ name, state, ready, restartCount }));
  return [phase, message, reason, podIP, ready, states(containerStatuses), states(initContainerStatuses)];
}

/** A condition with null for each member that no longer holds: a strategic merge patch also merges its members. */
function withRemovedMembers(condition: PodCondition, known: PodCondition | undefined): object {
  return {
    ...(known?.reason !== undefined && { reason: null }),
    ...(known?.message !== undefined && { message: null }),
    ...condition,
  };
}

function isSame(a: unknown, b: unknown): boolean {
  return Bun.deepEquals(normalize(a), normalize(b));
}

/** Without members that are null, false or empty, which the API server may leave out. */
function normalize(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normalize);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value)
    .filter(([, member]) => member !== null && member !== undefined && member !== "" && member !== false)
    .map(([name, member]) => [name, normalize(member)] as const)
    .filter(([, member]) => !(typeof member === "object" && member !== null && Object.keys(member).length === 0));
  return Object.fromEntries(entries);
}
