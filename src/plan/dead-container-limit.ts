import type { PodUID } from "../base/model/pod.ts";
import { type ContainerId, isTerminated, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import type { SyncState } from "./pod-plan.ts";

/** One dead container of any pod. */
export interface DeadContainer {
  podUid: PodUID;
  name: string;
  id: ContainerId;
  createdAt: Date;
  /** Monotonic; when it ended. */
  exitedAtMs: number;
  /** The newest attempt that stays of a container that may restart: its restart count and back-off are still needed. */
  isNeeded: boolean;
}

/** Dead containers of one pod that are not being removed. @param mayRestart false once the pod has ended */
export function findDeadContainers(
  podUid: PodUID,
  { containers }: PodSnapshot,
  { removing, exitedAtMs }: Pick<SyncState, "removing" | "exitedAtMs">,
  mayRestart: boolean,
): DeadContainer[] {
  // One that was made and never started is removed before the next start.
  const staying = containers.filter((it) => !removing.has(it.id) && (it.state !== "created" || isTerminated(it)));
  return staying.filter(isTerminated).map(({ id, name, createdAt }) => ({
    podUid,
    name,
    id,
    createdAt,
    exitedAtMs: exitedAtMs.get(id) ?? Number.NEGATIVE_INFINITY,
    isNeeded: mayRestart && staying.find((one) => one.name === name)?.id === id,
  }));
}

export interface DeadContainerPolicy {
  /** How many may be kept in all pods together; -1 = no limit. */
  maxInAll: number;
  /** Each is kept at least this long after its end. */
  minTtlMs: number;
}

/**
 * First every container loses what is beyond its fair share, then the oldest go. What the back-off of a restarting
 * container rests on stays, and counts. Source: upstream's containerGC.evictContainers.
 */
export function computeSurplusDead(
  dead: readonly DeadContainer[],
  policy: DeadContainerPolicy,
  nowMs: number,
): DeadContainer[] {
  if (policy.maxInAll < 0 || dead.length <= policy.maxInAll) return [];
  const surplus = dead.length - policy.maxInAll;
  const oldestFirst = dead
    .filter(({ isNeeded, exitedAtMs }) => !isNeeded && nowMs - exitedAtMs >= policy.minTtlMs)
    .sort((a, b) => a.createdAt.getTime() - b.createdAt.getTime());
  const kept = countByContainer(dead);
  const share = Math.max(1, Math.floor(policy.maxInAll / Math.max(1, kept.size)));
  const going = new Set<DeadContainer>();
  for (const container of oldestFirst) {
    const count = kept.get(keyOf(container)) ?? 0;
    if (going.size === surplus || count <= share) continue;
    going.add(container);
    kept.set(keyOf(container), count - 1);
  }
  for (const container of oldestFirst) {
    if (going.size < surplus) going.add(container);
  }
  return [...going];
}

const keyOf = ({ podUid, name }: DeadContainer) => `${podUid}/${name}`;

function countByContainer(dead: readonly DeadContainer[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const container of dead) counts.set(keyOf(container), (counts.get(keyOf(container)) ?? 0) + 1);
  return counts;
}
