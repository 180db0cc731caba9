import { REVISION_ANNOTATION } from "../base/api/annotations.ts";
import type { LabelSelector } from "../base/api/meta.ts";
import { matchesSelector } from "../base/api/selectors.ts";
import type { PodTemplateSpec } from "../base/api/workload.ts";
import { type DesiredWorkload, objectKey } from "../base/model/desired-object.ts";
import type { DesiredPod } from "../base/model/desired-pod.ts";
import { type ControllerWorld, Draft, podUid } from "./controller.ts";
import { computeTemplateHash, type PodRecord, type RevisionRecord, type WorkloadRecord } from "./workload-records.ts";

/** Incarnations of one pod of a StatefulSet that are distinguished; a pod has few. */
const MAX_INCARNATIONS = 1000;

/**
 * The record of a new workload that takes over the pods its selector matches and no controller owns, as those of
 * `kubectl delete --cascade=orphan`; undefined where there are none. Pods of manifests stay those of their text.
 * Pure. Source: `PodControllerRefManager`; Jobs have a selector of their own, and Deployments take ReplicaSets.
 */
export function adoptPods(
  desired: DesiredWorkload,
  pods: readonly DesiredPod[],
  world: ControllerWorld,
): WorkloadRecord | undefined {
  const selector = selectorOf(desired);
  if (!selector) return undefined;
  const adopted = pods.filter((pod) => isAdoptable(pod, desired, selector));
  if (adopted.length === 0) return undefined;
  const { metadata, spec } = desired.object as { metadata: object; spec: { template: PodTemplateSpec } };
  const draft = new Draft(world, desired.kind, metadata, "", undefined);
  for (const { pod } of adopted) {
    const template = templateOf(desired, pod, spec.template);
    const revision = draft.findRevision(template) ?? draft.addRevision(template, "as-owner");
    const { uid = "", name = "", creationTimestamp } = pod.metadata;
    const record: PodRecord = {
      name,
      uid,
      revision: revision.hash,
      createdAt: creationTimestamp ?? draft.nowText,
    };
    const ordinal = desired.kind === "StatefulSet" ? ordinalOf(desired, name) : undefined;
    if (ordinal !== undefined) {
      record.ordinal = ordinal;
      const count = countIncarnations(
        uid,
        (incarnation) => podUid(world.nodeName, draft.namespace, name, incarnation),
        revision.hash,
      );
      revision.incarnations = { ...revision.incarnations, [ordinal]: count };
    }
    revision.replicas++;
    draft.record.pods.push(record);
  }
  return draft.record;
}

function selectorOf({ kind, object }: DesiredWorkload): LabelSelector | undefined {
  switch (kind) {
    case "ReplicaSet":
    case "StatefulSet":
    case "DaemonSet":
      return object.spec.selector;
    case "ReplicationController":
      return { matchLabels: object.spec.selector ?? {} };
    default:
      return undefined;
  }
}

function isAdoptable({ pod, source }: DesiredPod, desired: DesiredWorkload, selector: LabelSelector): boolean {
  const { metadata } = pod;
  return (
    source === "api" &&
    metadata.deletionTimestamp === undefined &&
    !metadata.ownerReferences?.some(({ controller }) => controller) &&
    (metadata.namespace ?? "default") === (desired.object.metadata.namespace ?? "default") &&
    matchesSelector(selector, metadata.labels) &&
    (desired.kind !== "StatefulSet" || ordinalOf(desired, metadata.name ?? "") !== undefined)
  );
}

/** The ordinal in `<name>-<ordinal>`. */
function ordinalOf({ object }: DesiredWorkload, name: string): number | undefined {
  const prefix = `${object.metadata.name}-`;
  const rest = name.startsWith(prefix) ? name.slice(prefix.length) : "";
  return /^(?:0|[1-9]\d{0,8})$/.test(rest) ? Number(rest) : undefined;
}

/**
 * The template of the workload where the pod has its revision: it keeps running unchanged. Otherwise what the pod was made of,
 * which the controller replaces by its rules.
 */
function templateOf(desired: DesiredWorkload, pod: DesiredPod["pod"], template: PodTemplateSpec): PodTemplateSpec {
  const label = pod.metadata.labels?.["controller-revision-hash"];
  const hash = computeTemplateHash(template);
  if (label === undefined || label === hash || label === `${desired.object.metadata.name}-${hash}`) return template;
  const { labels = {}, annotations } = pod.metadata;
  const { nodeName: _nodeName, ...spec } = pod.spec;
  return { metadata: { labels, ...(annotations && { annotations }) }, spec } as PodTemplateSpec;
}

/** Incarnations up to the one with this uid: the next pod of the name gets another uid. */
function countIncarnations(uid: string, uidOf: (incarnation: string) => string, hash: string): number {
  for (let count = 0; count < MAX_INCARNATIONS; count++) if (uidOf(`${hash}/${count}`) === uid) return count + 1;
  return 0;
}

type DesiredReplicaSet = DesiredWorkload & { kind: "ReplicaSet" };

interface SortedReplicaSets {
  /** They belong to a Deployment: the API stores a ReplicaSet before it deletes its Deployment. */
  owned: ReadonlySet<DesiredWorkload>;
  /** Records of ReplicaSets whose Deployment was deleted with `--cascade=orphan`, by key: they keep its pods. */
  orphaned: ReadonlyMap<string, WorkloadRecord>;
}

/** Uids of workloads by key; undefined for those of manifests. */
type WantedWorkloads = ReadonlyMap<string, string | undefined>;

export const wantedWorkloads = (workloads: readonly DesiredWorkload[]): WantedWorkloads =>
  new Map(workloads.map(({ kind, object: { metadata } }) => [objectKey(kind, metadata), metadata.uid]));

/** Whether a record is that of a wanted workload: one that was deleted and created again has another uid. */
export const isWanted = (wanted: WantedWorkloads, key: string, { uid }: Pick<WorkloadRecord, "uid">): boolean =>
  wanted.has(key) && (wanted.get(key) ?? uid) === uid;

/**
 * Separates the ReplicaSets that a Deployment owns or adopts (by name and template) from those it orphaned. Pure.
 * @param records of all workloads, by key
 */
export function sortReplicaSets(
  workloads: readonly DesiredWorkload[],
  records: ReadonlyMap<string, WorkloadRecord>,
): SortedReplicaSets {
  const replicaSets = workloads.filter((desired): desired is DesiredReplicaSet => desired.kind === "ReplicaSet");
  const wanted = wantedWorkloads(workloads);
  const owned = new Set<DesiredWorkload>();
  const orphaned = new Map<string, WorkloadRecord>();
  for (const replicaSet of replicaSets) {
    const key = objectKey(replicaSet.kind, replicaSet.object.metadata);
    for (const [ownerKey, record] of records) {
      const revision = findRevisionOf(replicaSet, record);
      if (!revision) continue;
      if (isWanted(wanted, ownerKey, record)) owned.add(replicaSet);
      else if (!records.has(key)) orphaned.set(key, toOrphanRecord(replicaSet, record, revision));
    }
  }
  return { owned, orphaned };
}

/** The record of a new Deployment that adopts ReplicaSets, and their uids. */
interface AdoptedReplicaSets {
  record: WorkloadRecord;
  uids: string[];
}

/**
 * The ReplicaSets of the API that a new Deployment adopts, with their pods: those that its selector matches and no
 * controller owns; undefined where there are none. Pure. Source: `ReplicaSetControllerRefManager`.
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
    const [newest] = Object.values(own?.revisions ?? {}).sort((a, b) => b.revision - a.revision);
    const hash = spec.template.metadata.labels?.[HASH_LABEL] ?? newest?.hash;
    const revision = own && Object.values(own.revisions).find((it) => it.hash === hash);
    if (!revision || metadata.ownerReferences?.some(({ controller }) => controller)) continue;
    if ((metadata.namespace ?? "default") !== (object.metadata.namespace ?? "default")) continue;
    if (!selector || !matchesSelector(selector, metadata.labels)) continue;
    const pods = own.pods.filter((pod) => pod.revision === hash);
    const replicas = pods.filter(({ leaving }) => !leaving).length;
    // One that no Deployment had is older than any of its own.
    const number = Number(metadata.annotations?.[REVISION_ANNOTATION]) || 0;
    record.revisions[revision.hash] = { ...revision, template: withoutHash(spec.template), replicas, revision: number };
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
