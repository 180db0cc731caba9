import { matchesSelector } from "../base/api/selectors.ts";
import type { PodTemplateSpec } from "../base/api/workload.ts";
import { type DesiredWorkload, objectKey } from "../base/model/desired-object.ts";
import { type ControllerWorld, Draft } from "./controller.ts";
import type { RevisionRecord, WorkloadRecord } from "./workload-record.ts";

type DesiredReplicaSet = DesiredWorkload & { kind: "ReplicaSet" };

interface SortedReplicaSets {
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

/** The record of a new Deployment that adopts ReplicaSets again, and their uids. */
interface AdoptedReplicaSets {
  record: WorkloadRecord;
  uids: string[];
}

/**
 * The ReplicaSets that a new Deployment adopts again, with their pods: those that a Deployment of its name left behind and
 * its selector matches; undefined where there are none. Pure. Source: `ReplicaSetControllerRefManager`.
 * @param workloads all of them
 * @param records of all workloads, by key
 */
export function adoptReplicaSets(
  { kind, object }: DesiredWorkload,
  workloads: readonly DesiredWorkload[],
  records: ReadonlyMap<string, WorkloadRecord>,
  world: ControllerWorld,
): AdoptedReplicaSets | undefined {
  if (kind !== "Deployment") return undefined;
  const { selector } = object.spec;
  const { record } = new Draft(world, kind, object.metadata, "", undefined);
  const uids: string[] = [];
  for (const replicaSet of workloads) {
    // Only those of the API have a uid.
    if (replicaSet.kind !== "ReplicaSet" || replicaSet.object.metadata.uid === undefined) continue;
    const { metadata, spec } = replicaSet.object;
    const own = records.get(objectKey("ReplicaSet", metadata));
    const hash = spec.template.metadata.labels?.[HASH_LABEL];
    const revision = own && Object.values(own.revisions).find((it) => it.hash === hash);
    if (!revision || revision.name !== `${object.metadata.name}-${hash}`) continue;
    if ((metadata.namespace ?? "default") !== (object.metadata.namespace ?? "default")) continue;
    if (!selector || !matchesSelector(selector, metadata.labels)) continue;
    const pods = own.pods.filter((pod) => pod.revision === hash);
    const replicas = pods.filter(({ leaving }) => !leaving).length;
    record.revisions[revision.hash] = { ...revision, template: withoutHash(spec.template), replicas };
    record.pods.push(...pods);
    uids.push(own.uid);
  }
  return uids.length > 0 ? { record, uids } : undefined;
}

const HASH_LABEL = "pod-template-hash";

/** The template of the Deployment. */
function withoutHash(template: PodTemplateSpec): PodTemplateSpec {
  const { [HASH_LABEL]: _hash, ...labels } = template.metadata.labels ?? {};
  return { ...template, metadata: { ...template.metadata, labels } };
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
