import { createHash } from "node:crypto";
import { REVISION_ANNOTATION } from "../base/api/annotations.ts";
import type { CronJob } from "../base/api/job.ts";
import type { OwnerReference } from "../base/api/meta.ts";
import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { PersistentVolumeClaim, PodTemplateSpec } from "../base/api/workload.ts";
import type { ObjectKey } from "../base/model/desired-state.ts";
import { memoized } from "../base/model/memoized.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { canonicalJson, hex32 } from "../base/text/json.ts";
import type { PreparedWorkload } from "./prepare-state.ts";

/** One pod a workload made. */
export interface PodRecord {
  name: string;
  uid: string;
  /** Key of {@link WorkloadRecord.revisions}. */
  revision: string;
  /** RFC 3339, whole seconds. */
  createdAt: string;
  /** It is being removed: wanted no longer, but not gone. */
  leaving?: true;
  /** A client deleted the pod of a Job after its end: its containers are gone, its end still counts. */
  isDeleted?: true;
  /** Ordinal of a StatefulSet's pod. */
  ordinal?: number;
  /** Completion index of an indexed Job's pod. */
  index?: number;
  /** How a Job's pod ended. */
  ended?: PodEnd;
  /** All its labels and annotations, and its owners besides the controller, after a client has changed some. */
  edited?: {
    labels: Readonly<Record<string, string>>;
    annotations: Readonly<Record<string, string>>;
    owners?: readonly OwnerReference[];
  };
}

/** Label and annotation of a pod of an indexed Job. */
export const COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index";

/** How a pod of a Job ended. */
interface PodEnd {
  phase: "Succeeded" | "Failed";
  at: string;
  /** Effect of a rule of podFailurePolicy on this pod. */
  isIgnored?: true;
  failsJob?: true;
  failsIndex?: true;
}

/** State of a Job. */
export interface JobRecord {
  /** Completions and their mode: others make another run. */
  shape: string;
  startTime?: string;
  isSuspended?: true;
  finished?: {
    type: "Complete" | "Failed";
    reason?: string;
    message?: string;
    at: string;
    /** Pods that still ran; a failure counts them as failed. */
    stopped?: number;
  };
  /** `ttlSecondsAfterFinished` has passed, and its pods were removed. */
  isExpired?: true;
  /** Pods that had succeeded and failed by then. */
  expired?: { succeeded: number; failed: number };
}

/** One Job of a CronJob. */
export interface ChildJobRecord {
  name: string;
  scheduledAt: string;
  /** Its end was recorded as an event. */
  isSeen?: true;
  /** As it was when the Job was created. */
  template: CronJob["spec"]["jobTemplate"];
}

/** State of a CronJob. */
export interface CronRecord {
  /** Runs up to this time are not made up for. */
  notBefore: string;
  lastScheduleTime?: string;
  /** End of the newest Job that completed. */
  lastSuccessfulTime?: string;
  /** Time of a run that was missed or held back, for which an event was recorded. */
  missed?: string;
  /** Time zone and schedule. */
  schedule: string;
  /** Oldest first. */
  jobs: ChildJobRecord[];
}

/** A condition of a workload's status. Times are RFC 3339. */
export interface ConditionRecord {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  lastUpdateTime: string;
  lastTransitionTime: string;
}

/** One pod template a workload had; of a Deployment a ReplicaSet. */
export interface RevisionRecord {
  hash: string;
  /** Name of a Deployment's ReplicaSet, `<deployment>-<hash>`; for other kinds the name of the owner. */
  name: string;
  uid: string;
  /** Counts up with each rollout: `kubectl rollout history`. */
  revision: number;
  template: PodTemplateSpec;
  createdAt: string;
  /** Pods wanted of this revision. */
  replicas: number;
  /** Replicas of the Deployment when this ReplicaSet was scaled last. */
  desiredReplicas: number;
  /** `desiredReplicas` and the surge of that time. */
  maxReplicas: number;
  /** Pods made so far: the next one's name and uid are derived from it. */
  made: number;
  /** Annotations of the workload that the revision inherited. */
  annotations?: Record<string, string>;
  /** The one that a ReplicaSet of a Deployment had as the newest, or before it was adopted. */
  minReadySeconds?: number;
  /** Numbers it had before it became the newest revision again, oldest first. */
  former?: number[];
  /** Pods that a StatefulSet has created so far, by ordinal. */
  incarnations?: Record<number, number>;
}

/** State of one workload that survives restarts and reboots. */
export interface WorkloadRecord {
  uid: string;
  createdAt: string;
  /** Counts the edits. */
  generation: number;
  /** `DesiredObject.revision` at the last reconciliation. */
  objectRevision: string;
  revisions: Record<string, RevisionRecord>;
  pods: PodRecord[];
  /** Hash of the revision of a Deployment's present template; absent while it is paused without one. */
  updateRevision?: string;
  /** Conditions of a Deployment's status. */
  conditions?: ConditionRecord[];
  /** Hash of a StatefulSet's revision after the last complete rollout. */
  currentRevision?: string;
  job?: JobRecord;
  cron?: CronRecord;
  /** The last rollout made no progress in time. */
  progressDeadlineExceeded?: true;
}

/** Letters that form no words, as upstream's generated names have them. */
const SAFE = "bcdfghjklmnpqrstvwxz2456789";

const safeEncode = (codes: Iterable<number>): string => Array.from(codes, (code) => SAFE[code % SAFE.length]).join("");

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/**
 * `pod-template-hash`: up to ten letters and digits, the same for templates that mean the same. Upstream hashes Go's
 * memory layout, so the values differ from a cluster's.
 */
export function computeTemplateHash(template: PodTemplateSpec, collisions = 0): string {
  const seed = collisions === 0 ? "" : `\n${collisions}`;
  const digits = String(sha256(templateText(template) + seed).readUInt32BE(0));
  return safeEncode(Buffer.from(digits, "latin1"));
}

/** Templates are never changed in place. */
const templateText = memoized((template: PodTemplateSpec) => canonicalJson(template));

export const isSameTemplate = (a: PodTemplateSpec, b: PodTemplateSpec): boolean => templateText(a) === templateText(b);

/** The five characters behind the name of the owner; derived, so that lost state yields the same pods again. */
export const podSuffix = (ownerUid: string, hash: string, count: number): string =>
  safeEncode(sha256(`${ownerUid}\n${hash}\n${count}`).subarray(0, 5));

/** Uid of an object; 32 hex digits, fixed by node, kind, namespace and name. */
export const objectUid = (nodeName: string, kind: string, namespace: string, name: string): string =>
  hex32(`${nodeName}\n${kind}\n${namespace}\n${name}`);

/** API versions of the kinds that are not of apps/v1. */
const API_VERSIONS: Readonly<Record<string, string>> = {
  ReplicationController: "v1",
  Service: "v1",
  Endpoints: "v1",
  Job: "batch/v1",
  CronJob: "batch/v1",
};

export const apiVersionOf = (kind: string): string => API_VERSIONS[kind] ?? "apps/v1";

/** The reference of an object to the controller that made it. */
export const controllerReference = (kind: string, name: string | undefined, uid: string): OwnerReference => ({
  apiVersion: apiVersionOf(kind),
  kind,
  name: name ?? "",
  uid,
  controller: true,
  blockOwnerDeletion: true,
});

const REVISION_HISTORY = "deployment.kubernetes.io/revision-history";
const DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas";
const MAX_REPLICAS = "deployment.kubernetes.io/max-replicas";

/** Annotations that a revision does not inherit. Source: `annotationsToSkip` of deployment_util.go. */
const OWN_ANNOTATIONS: ReadonlySet<string> = new Set([
  "kubectl.kubernetes.io/last-applied-configuration",
  "deprecated.deployment.rollback.to",
  REVISION_ANNOTATION,
  REVISION_HISTORY,
  DESIRED_REPLICAS,
  MAX_REPLICAS,
]);

/** Former numbers kept of one revision. */
const MAX_FORMER = 100;

/** The annotations of a workload that its revisions inherit, such as `kubernetes.io/change-cause`. */
export function inheritedAnnotations(annotations: Readonly<Record<string, string>> = {}): Record<string, string> {
  return Object.fromEntries(Object.entries(annotations).filter(([name]) => !OWN_ANNOTATIONS.has(name)));
}

/** The former numbers of a revision that becomes the newest one again. */
export const withFormerRevision = ({ former = [], revision }: RevisionRecord): number[] =>
  (revision > 0 ? [...former, revision] : former).slice(-MAX_FORMER);

/** Annotations of a Deployment's ReplicaSet. Source: `SetNewReplicaSetAnnotations`, `SetReplicasAnnotations`. */
export function replicaSetAnnotations(record: RevisionRecord): Record<string, string> {
  const { annotations, former = [], revision, desiredReplicas, maxReplicas } = record;
  return {
    ...annotations,
    [DESIRED_REPLICAS]: String(desiredReplicas),
    [MAX_REPLICAS]: String(maxReplicas),
    ...(revision > 0 && { [REVISION_ANNOTATION]: String(revision) }),
    ...(former.length > 0 && { [REVISION_HISTORY]: former.join(",") }),
  };
}

/** Name of the PersistentVolume of each claim, by `namespace/name`; "" for a Docker volume. */
export type Bindings = Readonly<Record<string, string>>;

/** A claim that a StatefulSet made. */
export interface ClaimRecord {
  uid: string;
  /** RFC 3339, whole seconds. */
  createdAt: string;
  labels?: Record<string, string>;
  spec: PersistentVolumeClaim["spec"];
}

/** Claims of StatefulSets by `namespace/name`, also of those that are gone or have fewer pods now. */
export type ClaimRecords = Readonly<Record<string, ClaimRecord>>;

/** Counts of `status`, as upstream's DeploymentStatus has them. */
export interface DeploymentCounts {
  replicas: number;
  updatedReplicas: number;
  readyReplicas: number;
  availableReplicas: number;
}

/** The last progress of a rollout; lost with the process. */
export interface ProgressState {
  kind: "Deployment";
  counts: DeploymentCounts;
  generation: number;
  /** Monotonic. */
  sinceMs: number;
}

/** Times of a Job by the monotonic clock of this process. */
export interface JobState {
  kind: "Job";
  startedMs?: number;
  lastFailureMs?: number;
  finishedMs?: number;
}

/** State that a controller keeps between reconciliations, in this process. */
export type ControllerState = ProgressState | JobState;

/** Kept across restarts. */
export interface WorkloadState {
  /** Records by {@link ObjectKey}. */
  records: Record<string, WorkloadRecord>;
  claims: Bindings;
  claimRecords: ClaimRecords;
  /** PersistentVolumes that claims are bound to, by name. */
  volumes: Readonly<Record<string, PersistentVolume>>;
}

/** A workload of the sources, and the outcome of its last reconciliation. */
export interface Entry {
  desired: PreparedWorkload;
  record: WorkloadRecord;
  state: ControllerState | undefined;
  /** While they are the same ones, and for the times below, the decision is the same: nothing changes; undefined: it may. */
  inputs: readonly unknown[] | undefined;
  /** Monotonic; the decision holds no longer than that. */
  wakeAtMs: number;
  /** Times of the wall clock within which the decision holds, `untilMs` excluded; undefined: that clock does not matter. */
  wall: { fromMs: number; untilMs: number } | undefined;
}

const NONE: WorkloadState = { records: {}, claims: {}, claimRecords: {}, volumes: {} };

/** The records of all workloads and the bindings of claims, in one file. */
export class WorkloadRecords {
  readonly #file: Persisted<WorkloadState>;
  readonly #entries = new Map<ObjectKey, Entry>();
  /** Restored records of workloads that no source has reported since the start. */
  readonly #restored: Map<string, WorkloadRecord>;
  bindings: Bindings;
  claims: ClaimRecords;
  /** PersistentVolumes that claims are bound to: they stay mounted when their text is removed. */
  volumes: Readonly<Record<string, PersistentVolume>>;
  /** Records as of the last write. No pod runs, and none stops, for a decision that the end of the process would undo. */
  stored: ReadonlyMap<string, WorkloadRecord>;
  #storedClaims: ClaimRecords;
  #saved: ReadonlyMap<string, WorkloadRecord>;

  constructor(file: Persisted<WorkloadState>) {
    this.#file = file;
    const { claims, records, claimRecords, volumes } = file.read() ?? NONE;
    this.#restored = new Map(Object.entries(records));
    this.bindings = claims;
    this.claims = this.#storedClaims = claimRecords;
    this.volumes = volumes;
    this.stored = this.#saved = this.all();
  }

  /** Nothing waits to be written. */
  get isStored(): boolean {
    return this.stored === this.#saved;
  }

  entry(key: ObjectKey): Entry | undefined {
    return this.#entries.get(key);
  }

  /** Entries of the workloads that sources have reported. */
  entries(): Entry[] {
    return [...this.#entries.values()];
  }

  /** The record of a workload, also of one that no source has reported yet. */
  get(key: ObjectKey): WorkloadRecord | undefined {
    return this.#entries.get(key)?.record ?? this.#restored.get(key);
  }

  all(): Map<string, WorkloadRecord> {
    const records = new Map<string, WorkloadRecord>(this.#restored);
    for (const [key, { record }] of this.#entries) records.set(key, record);
    return records;
  }

  set(key: ObjectKey, entry: Entry): void {
    this.#restored.delete(key);
    this.#entries.set(key, entry);
  }

  /** Keeps a record of a workload that the next reconciliation takes over. */
  restore(key: string, record: WorkloadRecord): void {
    this.#restored.set(key, record);
  }

  delete(key: ObjectKey): void {
    this.#entries.delete(key);
    this.#restored.delete(key);
  }

  /**
   * Deletes the records of workloads that are not wanted any more.
   * @param mayForget a restored record of this key may be deleted: every source was read, or another object has the name
   * @returns whether there was one, and the records that had an entry
   */
  retain(
    isKept: (key: string, record: WorkloadRecord) => boolean,
    mayForget: (key: string) => boolean,
  ): { isChanged: boolean; deleted: WorkloadRecord[] } {
    const deleted = [...this.#entries].filter(([key, { record }]) => !isKept(key, record));
    for (const [key] of deleted) this.#entries.delete(key);
    const forgotten = [...this.#restored].filter(([key, record]) => mayForget(key) && !isKept(key, record));
    for (const [key] of forgotten) this.#restored.delete(key);
    return { isChanged: deleted.length + forgotten.length > 0, deleted: deleted.map(([, { record }]) => record) };
  }

  /** Forgets what was not stored. */
  takeBack(): void {
    for (const [key, entry] of this.#entries) entry.record = this.stored.get(key) ?? entry.record;
    this.claims = this.#storedClaims;
  }

  /**
   * @param onStored called when {@link stored} has changed, unless that is at once
   * @returns whether it could be written; if not it is tried again
   */
  save(onStored: () => void): boolean | Promise<boolean> {
    const { bindings: claims, claims: claimRecords, volumes } = this;
    const records = this.all();
    this.#saved = records;
    const end = () => {
      this.stored = records;
      this.#storedClaims = claimRecords;
    };
    const content = { records: Object.fromEntries(records), claims, claimRecords, volumes };
    const written = this.#file.write(content, () => {
      end();
      onStored();
    });
    if (written instanceof Promise) return written;
    end();
    return true;
  }
}
