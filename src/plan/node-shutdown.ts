import type { Pod, PodSpec } from "../base/api/pod.ts";
import type { ShutdownPeriod } from "../base/model/option-values.ts";
import type { PodUID } from "../base/model/pod.ts";
import { type ContainerId, type ContainerSnapshot, isTerminated } from "../base/model/pod-snapshot.ts";
import type { KubeletOptions } from "../config/option-table.ts";
import type { PodRefusal } from "./pod-end-reasons.ts";
import type { PodEnd } from "./pod-plan.ts";
import { CRITICAL_PRIORITY, computePodPriority } from "./pod-resources.ts";
import { endsOnlyOnSuccess } from "./restart-policy.ts";

/** Upstream's status of a pod that a shutdown of the machine ends. Source: nodeshutdown. */
export const ENDED_BY_SHUTDOWN: PodEnd & PodRefusal = {
  phase: "Failed",
  reason: "Terminated",
  message: "Pod was terminated in response to imminent node shutdown.",
};

/** Upstream's rejection of a pod during a shutdown. */
export const REFUSED_BY_SHUTDOWN: PodRefusal = {
  reason: "NodeShutdown",
  message: "Pod was rejected as the node is shutting down.",
};

/** Pods that stop at the same time, and how long the next group waits for them. */
interface ShutdownGroup {
  waitSeconds: number;
  pods: { uid: PodUID; graceSeconds: number }[];
}

type ShutdownOptions = Pick<
  KubeletOptions,
  "shutdownGracePeriodMs" | "shutdownGracePeriodCriticalPodsMs" | "shutdownGracePeriodByPodPriority"
>;

/** Time of each priority, lowest first; empty when a shutdown does not wait. Source: upstream's migrateConfig. */
export function computeShutdownPeriods(options: ShutdownOptions): ShutdownPeriod[] {
  const { shutdownGracePeriodMs: totalMs, shutdownGracePeriodCriticalPodsMs: criticalMs } = options;
  if (options.shutdownGracePeriodByPodPriority.length > 0) {
    return [...options.shutdownGracePeriodByPodPriority].sort((a, b) => a.priority - b.priority);
  }
  if (totalMs <= 0) return [];
  return [
    { priority: 0, shutdownGracePeriodSeconds: Math.floor((totalMs - criticalMs) / 1000) },
    { priority: CRITICAL_PRIORITY, shutdownGracePeriodSeconds: Math.floor(criticalMs / 1000) },
  ];
}

/** Total time the machine waits. Unit: seconds. */
export const totalShutdownSeconds = (periods: readonly ShutdownPeriod[]): number =>
  periods.reduce((total, { shutdownGracePeriodSeconds }) => total + shutdownGracePeriodSeconds, 0);

/** The least important pods stop first; none gets more time than its own grace period. Source: groupByPriority. */
export function computeShutdownGroups(periods: readonly ShutdownPeriod[], pods: readonly Pod[]): ShutdownGroup[] {
  const groups = periods.map(({ shutdownGracePeriodSeconds }): ShutdownGroup => {
    return { waitSeconds: shutdownGracePeriodSeconds, pods: [] };
  });
  for (const pod of pods) {
    const priority = computePodPriority(pod);
    const index = periods.findLastIndex((period) => period.priority <= priority);
    const group = groups[Math.max(0, index)];
    const own = pod.spec.terminationGracePeriodSeconds ?? 30;
    group?.pods.push({ uid: pod.metadata.uid ?? "", graceSeconds: Math.min(own, group.waitSeconds) });
  }
  return groups.filter(({ pods: members }) => members.length > 0);
}

/** Containers that exited with 0 because a shutdown stopped them, and that would therefore count as done. */
export function findMisleadingExits(
  spec: PodSpec,
  containers: readonly ContainerSnapshot[],
  shutdownTerminated: { has(id: ContainerId): boolean },
): ContainerSnapshot[] {
  return containers.filter(
    (it) => shutdownTerminated.has(it.id) && isTerminated(it) && it.exitCode === 0 && endsOnlyOnSuccess(spec, it.name),
  );
}
