import { hasCondition, notLive } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";

/** A pod in the overview; {@link toPodRow} fills it, in the kubelet. */
export interface PodRow {
  uid: string;
  namespace: string;
  name: string;
  /** As `kubelet-ts get pods` prints it. */
  status: string;
  ready: number;
  total: number;
  isReady: boolean;
  restarts: number;
  /** 0 = never. */
  lastRestart: number;
  /** 0 = unknown. */
  createdAt: number;
  /** The object that made the pod, as `Deployment web`; "" for a pod without an owner. */
  owner: string;
  /** Manifest: `file:line`, URL or `submitted`. */
  source: string;
  /** Why the pod is not Ready, in a sentence; "" when it is. */
  why: string;
  /** That not the present manifest runs, and why; "" when it does. */
  notice: string;
  ip: string;
}

/** The columns of `kubelet-ts get pods`, and what the pod alone does not say. */
type PodColumns = Pick<
  PodRow,
  "status" | "ready" | "total" | "restarts" | "lastRestart" | "createdAt" | "source" | "why"
>;

/** A row of the overview. Pure. */
export function toPodRow(pod: Pod, columns: PodColumns): PodRow {
  const { metadata, status } = pod;
  return {
    uid: metadata.uid ?? "",
    namespace: metadata.namespace ?? "default",
    name: metadata.name ?? "",
    ...columns,
    isReady: hasCondition(status, "Ready"),
    owner: describeOwner(pod),
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
  EditPending: "an edit is not in force",
  Deferred: "its new resources wait",
  Infeasible: "its new resources are not possible",
};

function describeNotice({ status }: Pod): string {
  const found = notLive(status);
  if (!found) return "";
  const words = NOTICES[found.reason ?? ""] ?? found.reason ?? "";
  return found.message ? `${words}: ${found.message}` : words;
}
