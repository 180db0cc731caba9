import type { Pod } from "../api/pod.ts";

/** Source: upstream's SystemCriticalPriority: pods of this priority and above are critical. */
export const CRITICAL_PRIORITY = 2_000_000_000;

/** The classes every cluster has; others cannot be defined. Source: scheduling's SystemPriorityClasses. */
const CLASS_PRIORITIES: ReadonlyMap<string, number> = new Map([
  ["system-cluster-critical", CRITICAL_PRIORITY],
  ["system-node-critical", CRITICAL_PRIORITY + 1000],
]);

/** `spec.priority`, else the value of its priority class, else 0. */
export const computePodPriority = ({ spec }: Pod): number =>
  spec.priority ?? CLASS_PRIORITIES.get(spec.priorityClassName ?? "") ?? 0;
