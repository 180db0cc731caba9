import type { Pod } from "../../base/api/pod.ts";
import type { PodRow } from "../../page/wire.ts";
import type { PodExplanation } from "../../plan/status/explain-pod.ts";

/** Columns of `kubelet-ts get pods` for a pod. */
interface PodColumns {
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
    // A container that waits for its second start has ended, and was not restarted.
    lastRestart: columns.restarts > 0 ? (columns.lastRestart?.getTime() ?? 0) : 0,
    createdAt: columns.createdAt ? Date.parse(columns.createdAt) || 0 : 0,
    owner: describeOwner(pod),
    source,
    why: cause ? `${cause.subject}: ${cause.problem}` : "",
    notice: describeNotice(pod),
    ip: status?.podIP ?? "",
  };
}

/** `Deployment web`, `Job backup-29384`; "" for a pod that no object made. A ReplicaSet is shown as its Deployment. */
function describeOwner({ metadata }: Pod): string {
  const owner = metadata.ownerReferences?.find(({ controller }) => controller) ?? metadata.ownerReferences?.[0];
  if (!owner || owner.kind === "Node") return "";
  const suffix = `-${metadata.labels?.["pod-template-hash"]}`;
  const isOfDeployment = owner.kind === "ReplicaSet" && owner.name.endsWith(suffix);
  return isOfDeployment ? `Deployment ${owner.name.slice(0, -suffix.length)}` : `${owner.kind} ${owner.name}`;
}

const NOTICES: Readonly<Record<string, string>> = {
  InvalidManifest: "an older manifest runs",
  DuplicateManifest: "a second manifest of this name is ignored",
  Unclaimed: "its source is no longer configured",
  RolledBack: "the last edit was rolled back",
  RolloutPaused: "the rollout of an edit is paused",
};

/** From the condition `ManifestLive`, which is False while the pod does not run its newest manifest. */
function describeNotice({ status }: Pod): string {
  const found = status?.conditions?.find(({ type, status: is }) => type === "ManifestLive" && is === "False");
  if (!found) return "";
  const words = NOTICES[found.reason ?? ""] ?? found.reason ?? "";
  return found.message ? `${words}: ${found.message}` : words;
}
