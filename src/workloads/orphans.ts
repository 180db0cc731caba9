import { type DesiredWorkload, objectKey } from "../model/desired-object.ts";
import type { RevisionRecord, WorkloadRecord } from "./workload-record.ts";

type DesiredReplicaSet = DesiredWorkload & { kind: "ReplicaSet" };

export interface SortedReplicaSets {
  /** They belong to a Deployment: the API stores a ReplicaSet before it deletes its Deployment. */
  owned: ReadonlySet<DesiredWorkload>;
  /** Records of ReplicaSets whose Deployment was deleted with `--cascade=orphan`, by key: they keep its pods. */
  orphaned: ReadonlyMap<string, WorkloadRecord>;
}

/**
 * Separates the ReplicaSets that a Deployment owns or adopts (by name and template) from those it orphaned. Pure.
 * @param records of all workloads, by key
 */
export function sortReplicaSets(
  workloads: readonly DesiredWorkload[],
  records: ReadonlyMap<string, WorkloadRecord>,
): SortedReplicaSets {
  const replicaSets = workloads.filter((desired): desired is DesiredReplicaSet => desired.kind === "ReplicaSet");
  const wanted = new Set<string>(workloads.map(({ kind, object }) => objectKey(kind, object.metadata)));
  const owned = new Set<DesiredWorkload>();
  const orphaned = new Map<string, WorkloadRecord>();
  for (const replicaSet of replicaSets) {
    const key = objectKey(replicaSet.kind, replicaSet.object.metadata);
    for (const [ownerKey, record] of records) {
      const revision = findRevisionOf(replicaSet, record);
      if (!revision) continue;
      if (wanted.has(ownerKey)) owned.add(replicaSet);
      else if (!records.has(key)) orphaned.set(key, toOrphanRecord(replicaSet, record, revision));
    }
  }
  return { owned, orphaned };
}

/** The revision of a Deployment that a ReplicaSet is; undefined for its own record. */
function findRevisionOf({ object }: DesiredReplicaSet, record: WorkloadRecord): RevisionRecord | undefined {
  const { uid } = object.metadata;
  if (uid === undefined || uid === record.uid) return undefined;
  return Object.values(record.revisions).find((revision) => revision.uid === uid);
}

/** The template of the ReplicaSet is that of the revision with the label `pod-template-hash`. */
const toOrphanRecord = (
  { object }: DesiredReplicaSet,
  owner: WorkloadRecord,
  revision: RevisionRecord,
): WorkloadRecord => ({
  uid: revision.uid,
  createdAt: revision.createdAt,
  generation: 0,
  objectRevision: "",
  revisions: { [revision.hash]: { ...revision, template: object.spec.template } },
  pods: owner.pods.filter((pod) => pod.revision === revision.hash),
});
