import type { Pod } from "../api/pod.ts";

/** Source: upstream's SystemCriticalPriority: pods of this priority and above are critical. */
export const CRITICAL_PRIORITY = 2_000_000_000;

/** The classes every cluster has; there is nowhere to define others. Source: scheduling's SystemPriorityClasses. */
const CLASS_PRIORITIES: ReadonlyMap<string, number> = new Map([
  ["system-cluster-critical", CRITICAL_PRIORITY],
  ["system-node-critical", CRITICAL_PRIORITY + 1000],
]);

/** `spec.priority`, else what its priority class stands for, else 0. */
export const computePodPriority = ({ spec }: Pod): number =>
  spec.priority ?? CLASS_PRIORITIES.get(spec.priorityClassName ?? "") ?? 0;
