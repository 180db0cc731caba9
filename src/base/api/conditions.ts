/** A condition of an object's status, of any kind. Times are RFC 3339. */
export interface Condition {
  type: string;
  status: string;
  reason?: string | undefined;
  message?: string | undefined;
  lastTransitionTime?: string | null | undefined;
  /** Nodes have it. */
  lastHeartbeatTime?: string | null | undefined;
}

type WithConditions = { conditions?: readonly Partial<Condition>[] | null | undefined };

/** The fix of a resize that waits, by the reason of its condition, whose message is upstream's. */
const RESIZE_FIXES: Readonly<Record<string, string>> = {
  Infeasible: "write requests that the node has: kubelet-ts describe node shows its capacity",
  Deferred: "lower the requests, or stop a pod that holds what is missing: kubelet-ts describe node shows who does",
};

/** The condition of a pod or workload that does not follow its newest manifest, or not with its resources; undefined: it does. */
export function notLive(status: WithConditions | null | undefined) {
  const find = (wanted: string, value: string) =>
    status?.conditions?.find(({ type, status: is }) => type === wanted && is === value);
  const resize = find("PodResizePending", "True");
  const fix = RESIZE_FIXES[resize?.reason ?? ""];
  return (
    find("ManifestLive", "False") ?? (resize && fix ? { ...resize, message: `${resize.message}. Fix: ${fix}` } : resize)
  );
}

/** Whether a condition is there and True. @param status undefined: the object has none yet */
export const hasCondition = (status: WithConditions | null | undefined, wanted: string): boolean =>
  status?.conditions?.some((condition) => condition.type === wanted && condition.status === "True") ?? false;
