import {
  durationOf,
  ROLLBACK_ANNOTATION,
  ROLLBACK_DEADLINE_ANNOTATION,
  ROLLBACK_RESTARTS_ANNOTATION,
} from "../base/api/annotations.ts";
import { hasCondition } from "../base/api/meta.ts";
import type { Pod, PodStatus } from "../base/api/pod.ts";
import { attemptsOf } from "../base/model/pod-snapshot.ts";
import { formatDuration } from "../base/text/duration.ts";
import type { PodPlanInput } from "./pod-plan.ts";

/** When an edit has failed. */
export interface RolloutLimits {
  /** Time to become Ready. */
  deadlineMs: number;
  /** Restarts of one container. */
  maxRestarts: number;
}

const DEFAULT_LIMITS: RolloutLimits = { deadlineMs: 300_000, maxRestarts: 3 };

/** A revision counts as Ready after it was Ready for this long: a program without a probe is Ready until it crashes. */
export const MIN_READY_MS = 10_000;

/** Whether a failed edit of this pod is rolled back. */
export const wantsRollback = ({ metadata }: Pod) => metadata.annotations?.[ROLLBACK_ANNOTATION] === "on-failure";

export function rolloutLimitsOf({ metadata }: Pod): RolloutLimits {
  const maxRestarts = Number(metadata.annotations?.[ROLLBACK_RESTARTS_ANNOTATION]);
  return {
    deadlineMs: durationOf(metadata, ROLLBACK_DEADLINE_ANNOTATION, DEFAULT_LIMITS.deadlineMs),
    maxRestarts: maxRestarts >= 1 ? maxRestarts : DEFAULT_LIMITS.maxRestarts,
  };
}

/** An edit that has yet to become Ready. */
interface RolloutTrial {
  /** Restart counts when its containers were first seen, by container name. */
  restarts?: ReadonlyMap<string, number>;
  elapsedMs: number;
  limits: RolloutLimits;
}

export type TrialVerdict = { state: "pending" | "ready" } | { state: "failed"; message: string };

/** Whether an edit has become Ready or has failed. Time that a pod waits for its dependencies does not count. */
export function judgeTrial(trial: RolloutTrial, status: PodStatus | undefined, rollout: RolloutProgress): TrialVerdict {
  const { restarts, elapsedMs, limits } = trial;
  if (rollout === "live" && status?.phase === "Failed") return { state: "failed", message: "the pod failed" };
  for (const { name, restartCount } of restarts ? (status?.containerStatuses ?? []) : []) {
    const count = restartCount - (restarts?.get(name) ?? restartCount);
    if (count >= limits.maxRestarts) return { state: "failed", message: `container ${name} restarted ${count} times` };
  }
  if (rollout === "live" && isRevisionReady(status)) return { state: "ready" };
  if (elapsedMs < limits.deadlineMs || isHeld(status)) return { state: "pending" };
  return { state: "failed", message: `the pod was not Ready within ${formatDuration(limits.deadlineMs)}` };
}

/** Ready, or ended with success. */
export const isRevisionReady = (status: PodStatus | undefined): boolean =>
  status?.phase === "Succeeded" || hasCondition(status, "Ready");

/** The pod waits for another one. */
const isHeld = (status: PodStatus | undefined) =>
  status?.conditions?.some(({ type, status: value }) => type === "DependenciesMet" && value === "False") ?? false;

export const restartCountsOf = (status: PodStatus | undefined): Map<string, number> =>
  new Map((status?.containerStatuses ?? []).map(({ name, restartCount }) => [name, restartCount]));

/**
 * How far the desired revision of a pod has come. `pending`: the status may still be that of an earlier revision.
 * `progressing`: containers of an earlier revision run, or none. `live`: every container is of the desired revision.
 */
export type RolloutProgress = "pending" | "progressing" | "live";

/** Whether the sandbox and the newest attempt of every container are of the desired revision. */
export function isRevisionLive({ pod, hashes, snapshot }: Pick<PodPlanInput, "pod" | "hashes" | "snapshot">): boolean {
  const [sandbox] = snapshot.sandboxes;
  if (sandbox?.state !== "ready" || sandbox.hash !== hashes.sandbox) return false;
  return pod.spec.containers.every(({ name }) => {
    const newest = attemptsOf(snapshot, name)[0];
    return newest?.sandboxId === sandbox.id && newest.hash === hashes.containers.get(name);
  });
}
