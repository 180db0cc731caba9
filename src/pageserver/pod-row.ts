import type { Pod } from "../api/pod.ts";
import type { PodRow } from "../page/wire.ts";
import type { PodExplanation } from "../status/explain-pod.ts";

/** Columns of `kubelet-ts get pods` for a pod. */
export interface PodColumns {
  status: string;
  ready: number;
  total: number;
  restarts: number;
  lastRestart: Date | undefined;
  /** RFC 3339; undefined = unknown. */
  createdAt: string | undefined;
}

/**
 * A row of the overview. Pure.
 * @param explanation why the pod is not ready
 * @param source where the manifest is: `file:line`, URL, `submitted`
 */
export function toPodRow(pod: Pod, columns: PodColumns, source: string, explanation: PodExplanation): PodRow {
  const { metadata, status } = pod;
  const isReady = status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false;
  const [cause] = explanation.causes;
  return {
    uid: metadata.uid ?? "",
    namespace: metadata.namespace ?? "default",
    name: metadata.name ?? "",
    status: columns.status,
    ready: columns.ready,
    total: columns.total,
    isReady,
    restarts: columns.restarts,
    lastRestart: columns.lastRestart?.getTime() ?? 0,
    createdAt: columns.createdAt ? Date.parse(columns.createdAt) || 0 : 0,
    source,
    why: cause ? `${cause.subject}: ${cause.problem}` : "",
    ip: status?.podIP ?? "",
  };
}
