import type { DesiredObject } from "../base/model/desired-object.ts";
import type { WorkloadObject } from "../base/model/workload-object.ts";
import { hex32 } from "../base/text/canonical-json.ts";
import type { PodFacts } from "./controller.ts";
import { replicaSetAnnotations } from "./revision-annotations.ts";
import type { PodRecord, RevisionRecord, WorkloadRecord } from "./workload-record.ts";

/** Inputs of a status. */
interface WorkloadState {
  desired: DesiredObject;
  record: WorkloadRecord;
  pod: (uid: string) => PodFacts;
}

/**
 * Objects that a controller derives from a workload: the ReplicaSets of a Deployment, the revisions of a StatefulSet or
 * DaemonSet, the Jobs of a CronJob. Pure.
 */
export function toDerivedObjects(state: WorkloadState): WorkloadObject[] {
  const { desired, record } = state;
  if (desired.kind === "Deployment") {
    return Object.values(record.revisions).map((revision) => toReplicaSet(state, revision));
  }
  if (desired.kind === "StatefulSet" || desired.kind === "DaemonSet") {
    return Object.values(record.revisions).map((revision) => toControllerRevision(state, revision));
  }
  const { metadata, spec } = desired.object;
  const isChild = metadata.ownerReferences?.some(({ kind }) => kind === "CronJob") ?? false;
  if (desired.kind !== "Job" || !isChild) return [];
  const live = record.pods.filter(({ leaving }) => !leaving);
  const own = { ...metadata, uid: record.uid, creationTimestamp: record.createdAt };
  return [{ apiVersion: "batch/v1", kind: "Job", metadata: own, spec, status: jobStatus(record, live) }];
}

function toReplicaSet({ desired, record, pod }: WorkloadState, revision: RevisionRecord): WorkloadObject {
  const label = { "pod-template-hash": revision.hash };
  const { template } = revision;
  const labels = { ...template.metadata.labels, ...label };
  const pods = record.pods.filter((it) => !it.leaving && it.revision === revision.hash);
  const { metadata, spec } = desired.object;
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: revision.name,
      namespace: metadata.namespace,
      uid: revision.uid,
      creationTimestamp: revision.createdAt,
      labels,
      annotations: replicaSetAnnotations(revision),
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: "Deployment",
          name: metadata.name ?? "",
          uid: record.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      replicas: revision.replicas,
      selector: selectorWith((spec as { selector?: { matchLabels?: object } }).selector, label),
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
    status: { ...countsOf(pods, pod), fullyLabeledReplicas: pods.length },
  };
}

/** The object that `kubectl rollout history` and `undo` read. Source: `history.NewControllerRevision`; the data is a patch. */
function toControllerRevision({ desired, record }: WorkloadState, revision: RevisionRecord): WorkloadObject {
  const { name = "", namespace } = desired.object.metadata;
  const { template, hash, annotations = {} } = revision;
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name: `${name}-${hash}`,
      namespace,
      uid: objectUidOf(record.uid, hash),
      creationTimestamp: revision.createdAt,
      labels: { ...template.metadata.labels, "controller-revision-hash": hash },
      ...(Object.keys(annotations).length > 0 && { annotations }),
      ownerReferences: [
        {
          apiVersion: "apps/v1",
          kind: desired.kind,
          name,
          uid: record.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    data: { spec: { template: { ...template, $patch: "replace" } } },
    revision: revision.revision,
  };
}

const objectUidOf = (ownerUid: string, hash: string): string => hex32(`${ownerUid}\n${hash}`);

const selectorWith = (selector: { matchLabels?: object } | undefined, label: object) => ({
  ...selector,
  matchLabels: { ...selector?.matchLabels, ...label },
});

function countsOf(pods: readonly PodRecord[], pod: WorkloadState["pod"]) {
  const readyReplicas = pods.filter(({ uid }) => pod(uid).isReady).length;
  return { replicas: pods.length, readyReplicas, availableReplicas: readyReplicas };
}

function jobStatus({ job }: WorkloadRecord, live: readonly PodRecord[]): object {
  const finished = job?.finished;
  const ended = (phase: string) => live.filter((it) => it.ended?.phase === phase).length;
  const active = live.filter((it) => !it.ended).length;
  const condition = finished && {
    type: finished.type,
    status: "True",
    lastProbeTime: finished.at,
    lastTransitionTime: finished.at,
    ...(finished.reason && { reason: finished.reason }),
    ...(finished.message && { message: finished.message }),
  };
  return {
    ...(job?.startTime && { startTime: job.startTime }),
    ...(finished?.type === "Complete" && { completionTime: finished.at }),
    ...(active > 0 && { active }),
    ...(ended("Succeeded") > 0 && { succeeded: ended("Succeeded") }),
    ...(ended("Failed") > 0 && { failed: ended("Failed") }),
    ...(condition && { conditions: [condition] }),
    ...(job?.isSuspended && { conditions: [{ type: "Suspended", status: "True" }] }),
  };
}
