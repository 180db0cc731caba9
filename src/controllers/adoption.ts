import { REVISION_ANNOTATION, withoutSource } from "../base/api/annotations.ts";
import { matchesSelector, type ObjectMeta } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";
import type { PodTemplateSpec } from "../base/api/workload.ts";
import { type DesiredPod, type DesiredWorkload, type ObjectKey, objectKey } from "../base/model/desired-state.ts";
import { canonicalJson } from "../base/text/json.ts";
import { type ControllerWorld, Draft, podUid } from "./controller.ts";
import {
  COMPLETION_INDEX,
  computeTemplateHash,
  type PodRecord,
  type RevisionRecord,
  type WorkloadRecord,
} from "./workload-records.ts";

/** Incarnations of one pod of a StatefulSet that are distinguished; a pod has few. */
const MAX_INCARNATIONS = 1000;

/**
 * The record of a workload after what the API says of pods. Those that its selector matches and no controller owns are its
 * own, as those of `kubectl delete --cascade=orphan`; those that it does not match any more are released; labels and
 * annotations that a client has changed stay. Pods of manifests stay those of their text. Pure. Source:
 * `PodControllerRefManager`.
 * @param known undefined for a new workload
 * @returns `known` where nothing changes
 */
export function claimPods(
  desired: DesiredWorkload,
  known: WorkloadRecord | undefined,
  pods: readonly DesiredPod[],
  world: ControllerWorld,
): WorkloadRecord | undefined {
  const { metadata, spec } = desired.object as { metadata: ObjectMeta; spec: { template: PodTemplateSpec } };
  const namespace = metadata.namespace ?? "default";
  const ofApi = pods.filter(
    ({ pod, source }) => source === "api" && (pod.metadata.namespace ?? "default") === namespace,
  );
  if (ofApi.length === 0) return known;
  const draft = new Draft(world, desired.kind, metadata, known?.objectRevision ?? "", known);
  const { record } = draft;
  const own = new Map(record.pods.map((pod) => [pod.uid, pod]));
  let isChanged = false;
  for (const { pod } of ofApi) {
    const { uid = "", name = "", creationTimestamp, labels = {}, annotations = {}, ownerReferences } = pod.metadata;
    const mine = own.get(uid);
    const isSelected = selectsLabels(desired, record, labels);
    const owners = ownerReferences?.filter(({ controller }) => !controller) ?? [];
    const edited = {
      labels: { ...labels },
      annotations: withoutSource(annotations),
      ...(owners.length > 0 && { owners }),
    };
    if (mine && !mine.leaving) {
      if (isSelected && Bun.deepEquals(edited, mine.edited)) continue;
      isChanged = true;
      if (isSelected) mine.edited = edited;
      else record.pods = record.pods.filter((it) => it !== mine);
    }
    const ordinal = desired.kind === "StatefulSet" ? ordinalOf(desired, name) : undefined;
    if (mine || !isSelected || !isAdoptable(pod) || (desired.kind === "StatefulSet" && ordinal === undefined)) continue;
    isChanged = true;
    const template = templateOf(desired, pod, spec.template);
    const revision =
      record.revisions[labels[HASH_LABEL] ?? ""] ??
      draft.findRevision(template) ??
      draft.addRevision(template, "as-owner");
    const adopted: PodRecord = {
      name,
      uid,
      revision: revision.hash,
      createdAt: creationTimestamp ?? draft.nowText,
      edited,
      ...(labels[COMPLETION_INDEX] !== undefined && { index: Number(labels[COMPLETION_INDEX]) }),
    };
    if (ordinal !== undefined) {
      adopted.ordinal = ordinal;
      const count = countIncarnations(
        uid,
        (incarnation) => podUid(world.node.name, draft.namespace, name, incarnation),
        revision.hash,
      );
      revision.incarnations = { ...revision.incarnations, [ordinal]: count };
    }
    if (desired.kind !== "Deployment") revision.replicas++;
    // One that waits for the name takes the place of none.
    record.pods = [...record.pods.filter((it) => it.name !== name || it.leaving), adopted];
  }
  return isChanged ? record : known;
}

/** Whether pods with these labels are those of a workload: of a Deployment those of its ReplicaSets. */
export function selectsLabels(
  { kind, object }: DesiredWorkload,
  { uid, revisions }: WorkloadRecord,
  labels: Readonly<Record<string, string>>,
): boolean {
  switch (kind) {
    case "ReplicaSet":
    case "StatefulSet":
    case "DaemonSet":
      return matchesSelector(object.spec.selector ?? {}, labels);
    case "Deployment":
      return matchesSelector(object.spec.selector ?? {}, labels) && Object.hasOwn(revisions, labels[HASH_LABEL] ?? "");
    case "ReplicationController":
      return matchesSelector({ matchLabels: object.spec.selector ?? {} }, labels);
    case "Job":
      return matchesSelector(object.spec.selector ?? { matchLabels: { "controller-uid": uid } }, labels);
    case "CronJob":
      return false;
    default:
      return kind satisfies never;
  }
}

const isAdoptable = ({ metadata }: Pod): boolean =>
  metadata.deletionTimestamp === undefined && !metadata.ownerReferences?.some(({ controller }) => controller);

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
  const { nodeName: _nodeName, ...spec } = pod.spec;
  // Kinds without this label do not replace pods of another template.
  const isKept = desired.kind !== "StatefulSet" && desired.kind !== "DaemonSet" && !isSameSpec(spec, template.spec);
  const isOfTemplate =
    label === undefined ? !isKept : label === hash || label === `${desired.object.metadata.name}-${hash}`;
  if (isOfTemplate) return template;
  const { labels = {}, annotations } = pod.metadata;
  return { metadata: { labels, ...(annotations && { annotations }) }, spec } as PodTemplateSpec;
}

const isSameSpec = (a: object, b: object): boolean => canonicalJson(a) === canonicalJson(b);

/** Incarnations up to the one with this uid: the next pod of the name gets another uid. */
function countIncarnations(uid: string, uidOf: (incarnation: string) => string, hash: string): number {
  for (let count = 0; count < MAX_INCARNATIONS; count++) if (uidOf(`${hash}/${count}`) === uid) return count + 1;
  return 0;
}

type DesiredReplicaSet = DesiredWorkload & { kind: "ReplicaSet" };

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
export function sortReplicaSets(workloads: readonly DesiredWorkload[], records: ReadonlyMap<string, WorkloadRecord>) {
  const replicaSets = workloads.filter((desired): desired is DesiredReplicaSet => desired.kind === "ReplicaSet");
  const wanted = wantedWorkloads(workloads);
  /** They belong to a Deployment: the API stores a ReplicaSet before it deletes its Deployment. */
  const owned = new Set<DesiredWorkload>();
  /** Records of ReplicaSets whose Deployment was deleted with `--cascade=orphan`, by key: they keep its pods. */
  const orphaned = new Map<string, WorkloadRecord>();
  for (const replicaSet of replicaSets) {
    const key = objectKey(replicaSet.kind, replicaSet.object.metadata);
    for (const [ownerKey, record] of records) {
      const revision = findRevisionOf(replicaSet, record);
      if (!revision) continue;
      if (isWanted(wanted, ownerKey, record)) owned.add(replicaSet);
      else if (!records.has(key)) {
        const { uid, createdAt, hash } = revision;
        // The template of the ReplicaSet is that of the revision with the label `pod-template-hash`.
        const revisions = { [hash]: { ...revision, template: replicaSet.object.spec.template } };
        const pods = record.pods.filter((pod) => pod.revision === hash);
        orphaned.set(key, { uid, createdAt, generation: 0, objectRevision: "", revisions, pods });
      }
    }
  }
  return { owned, orphaned };
}

/**
 * The ReplicaSets of the API that a Deployment adopts, with their pods: those that its selector matches and no controller
 * owns, with the next record; undefined where there are none. Pure. Source: `ReplicaSetControllerRefManager`.
 * @param known undefined for a new Deployment
 * @param workloads all of them
 * @param records of all workloads, by key
 */
export function adoptReplicaSets(
  { kind, object }: DesiredWorkload,
  known: WorkloadRecord | undefined,
  workloads: readonly DesiredWorkload[],
  records: Pick<ReadonlyMap<ObjectKey, WorkloadRecord>, "get">,
  world: ControllerWorld,
): { record: WorkloadRecord; uids: string[] } | undefined {
  if (kind !== "Deployment") return undefined;
  const { selector } = object.spec;
  let record: WorkloadRecord | undefined;
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
    record ??= new Draft(world, kind, object.metadata, known?.objectRevision ?? "", known).record;
    // A second one of a template is an old one: the first that was made is the present one.
    let key = revision.hash;
    for (let count = 1; record.revisions[key]; count++) key = computeTemplateHash(spec.template, count);
    const pods = own.pods.filter((pod) => pod.revision === hash).map((pod) => ({ ...pod, revision: key }));
    const replicas = pods.filter(({ leaving }) => !leaving).length;
    // One that no Deployment had is older than any of its own. Source: `Revision`, for numbers that can be counted on from.
    const written = metadata.annotations?.[REVISION_ANNOTATION] ?? "";
    const number = /^\d{1,15}$/.test(written) ? Number(written) : 0;
    const { minReadySeconds = 0 } = spec;
    const kept = { template: withoutHash(spec.template), replicas, revision: number, minReadySeconds };
    record.revisions[key] = { ...revision, hash: key, ...kept };
    record.pods.push(...pods);
    uids.push(own.uid);
  }
  return record && uids.length > 0 ? { record, uids } : undefined;
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
