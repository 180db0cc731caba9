import type { ObjectMeta } from "../api/meta.ts";
import type { Pod, PodStatus } from "../api/pod.ts";
import type { Clock } from "../model/clock.ts";
import { type DesiredObjectOf, type DesiredWorkload, type ObjectKey, objectKey } from "../model/desired-object.ts";
import type { DesiredPod, DesiredState, PodDeletion } from "../model/desired-pod.ts";
import { compareFullNames, type PodUID, podFullName } from "../model/identity.ts";
import type { Logger } from "../model/logger.ts";
import type { EventRecorder } from "../model/pod-event.ts";
import type { WorkloadObject } from "../model/workload-object.ts";
import { type Bindings, bindClaims, resolveClaims } from "./claims.ts";
import type { ControllerWorld, PodFacts, WorkloadEvent } from "./controller.ts";
import { toChildJob } from "./cron-job.ts";
import { sortReplicaSets } from "./orphans.ts";
import { hasObjects, type PreparedState, prepareState } from "./prepare-state.ts";
import { type Memory, reconcileWorkload } from "./reconcile-workload.ts";
import type { RewriteHosts, ServiceHosts } from "./service-hosts.ts";
import { toDesiredPod } from "./to-desired-pod.ts";
import { API_VERSIONS, type JobRecord, objectUid, type PodRecord, type WorkloadRecord } from "./workload-record.ts";
import { computeWorkloadStatus } from "./workload-status.ts";
import { toDerivedObjects } from "./workload-view.ts";

/** The kubelet's view of pods. */
export interface ObservedPods {
  pods(): readonly Pod[];
  /** The worker of a pod; undefined when nothing of it is left, once `isComplete`. */
  worker(uid: PodUID): object | undefined;
  /** The engine was listed, and every source was read. */
  readonly isComplete: boolean;
  onChange(listener: () => void): () => void;
}

/** Records of all workloads, kept across restarts. */
export interface WorkloadFile {
  read(): WorkloadState | undefined;
  write(state: WorkloadState): void;
}

export interface WorkloadState {
  /** Records by {@link ObjectKey}. */
  records: Record<string, WorkloadRecord>;
  claims: Bindings;
}

export interface WorkloadManagerDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder & { objectGone(uid: string): void };
  nodeName: string;
  nodeLabels: Readonly<Record<string, string>>;
  file: WorkloadFile;
  kubelet: ObservedPods;
  services: ServiceHosts;
  rewriteHosts: RewriteHosts;
  /** Gets every new state: that of the sources, with the pods of the workloads in it. */
  publish: (state: DesiredState, isComplete: boolean) => void;
}

type Statuses = ReadonlyMap<PodUID, PodStatus | undefined>;

/** Changes of many pods come together; one look answers them all. */
const GATHER_MS = 20;

interface Entry {
  desired: DesiredWorkload;
  record: WorkloadRecord;
  /** Statuses the last decision was made from. */
  seen: Map<PodUID, PodStatus | undefined>;
  memory: Memory | undefined;
  /** Monotonic; the decision holds no longer than that. */
  wakeAtMs: number;
}

/**
 * Turns workloads into pods: keeps the records of all workloads, asks their controllers when an object, a pod or the time
 * has changed, and hands the outcome on. Without workloads it passes states through and listens to nothing.
 */
export class WorkloadManager {
  readonly #deps: WorkloadManagerDeps;
  readonly #entries = new Map<ObjectKey, Entry>();
  /** Restored records of workloads that no source has reported since the start. */
  readonly #restored: Map<string, WorkloadRecord>;
  readonly #pods = new Map<PodUID, DesiredPod>();
  /** Monotonic; of pods that are Ready. */
  readonly #readySinceMs = new Map<PodUID, number>();
  readonly #knownUids = new Set<PodUID>();
  /** Grace periods of pods that clients deleted. */
  readonly #deletions = new Map<PodUID, PodDeletion>();
  #state: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  #prepared: PreparedState = prepareState(this.#state);
  #bindings: Bindings = {};
  #warned = new Set<string>();
  #isComplete = false;
  #publishedPods = "";
  readonly #onLook: (() => void)[] = [];
  #unsubscribe: (() => void) | undefined;
  #cancelGather: (() => void) | undefined;
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;

  constructor(deps: WorkloadManagerDeps) {
    this.#deps = deps;
    const { claims = {}, records = {} } = deps.file.read() ?? {};
    this.#restored = new Map(Object.entries(records));
    this.#bindings = claims;
  }

  /** The newest state of the sources. Complete: a workload that is not in it is deleted, and its pods with it. */
  setDesired(state: DesiredState, isComplete: boolean): void {
    this.#state = state;
    this.#isComplete = isComplete;
    this.#prepared = prepareState(state);
    this.#warn(this.#prepared.warnings);
    if (hasObjects(state.objects)) this.#unsubscribe ??= this.#deps.kubelet.onChange(() => this.#gather());
    this.#look(true);
  }

  /** Called after each look at the workloads. */
  onLook(listener: () => void): void {
    this.#onLook.push(listener);
  }

  /** Whether a workload made this pod. */
  hasPod(uid: PodUID): boolean {
    return this.#entryOf(uid) !== undefined;
  }

  /** Deletes a pod of a workload for a client; the controller decides what takes its place. */
  deletePod(uid: PodUID, deletion: PodDeletion): void {
    const entry = this.#entryOf(uid);
    if (!entry) return;
    const { record } = entry;
    const mark = (pod: PodRecord): PodRecord => ({ ...pod, ...(pod.ended ? { isDeleted: true } : { leaving: true }) });
    entry.record = { ...record, pods: record.pods.map((pod) => (pod.uid === uid ? mark(pod) : pod)) };
    entry.wakeAtMs = Number.NEGATIVE_INFINITY;
    this.#deletions.set(uid, deletion);
    this.#publishedPods = "";
    this.#save();
    this.#look(false);
  }

  #entryOf(uid: PodUID): Entry | undefined {
    return [...this.#entries.values()].find(({ record }) => record.pods.some((pod) => pod.uid === uid));
  }

  /** The ReplicaSets of Deployments and the Jobs of CronJobs, with their statuses. */
  derivedObjects(): WorkloadObject[] {
    const statuses = new Map(this.#deps.kubelet.pods().map(({ metadata, status }) => [metadata.uid!, status]));
    const nowMs = this.#deps.clock.monotonicMs();
    const pod = (uid: PodUID) => this.#factsOf(uid, statuses, nowMs);
    return [...this.#entries.values()].flatMap(({ desired, record }) => toDerivedObjects({ desired, record, pod }));
  }

  /** Uid of an object of the sources in the API, and the time since which it is known. */
  identityOf(kind: string, metadata: ObjectMeta): { uid: string; creationTimestamp?: string } {
    const key = objectKey(kind, metadata);
    const record = this.#entries.get(key)?.record ?? this.#restored.get(key);
    if (record) return { uid: record.uid, creationTimestamp: record.createdAt };
    const { namespace = "default", name = "" } = metadata;
    return { uid: metadata.uid ?? objectUid(this.#deps.nodeName, kind, namespace, name) };
  }

  /** The status of a workload in the API; undefined while it is unknown. */
  statusOf(kind: string, object: { metadata: ObjectMeta; spec?: unknown }): object | undefined {
    const entry = this.#entries.get(objectKey(kind, object.metadata));
    if (!entry) return undefined;
    const { desired, record } = entry;
    const statuses = new Map(this.#deps.kubelet.pods().map(({ metadata, status }) => [metadata.uid!, status]));
    const { minReadySeconds } = desired.object.spec as { minReadySeconds?: number };
    const nowMs = this.#deps.clock.monotonicMs();
    const pod = (uid: PodUID) => this.#factsOf(uid, statuses, nowMs);
    const isCurrent = Bun.deepEquals(JSON.parse(JSON.stringify(desired.object.spec)), object.spec);
    const generation = isCurrent ? object.metadata.generation : undefined;
    return computeWorkloadStatus({ kind: desired.kind, record, pod, minReadySeconds, generation });
  }

  /** Publishes the state again: settings that pods depend on have changed. */
  refresh(): void {
    this.#look(true);
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe?.();
    this.#cancelGather?.();
    this.#cancelTimer?.();
  }

  #gather(): void {
    this.#cancelGather ??= this.#deps.clock.schedule(GATHER_MS, () => {
      this.#cancelGather = undefined;
      this.#look(false);
    });
  }

  #look(isNewState: boolean): void {
    if (this.#isStopped) return;
    const pods = this.#deps.kubelet.pods();
    const statuses = new Map(pods.map(({ metadata, status }) => [metadata.uid!, status]));
    this.#noteReady(statuses);
    const owned = this.#handOverReplicaSets();
    let isChanged = this.#dropDeleted();
    if (isNewState && this.#bindClaims()) isChanged = true;
    for (const desired of this.#prepared.workloads) {
      if (owned.has(desired)) continue;
      if (this.#lookAt(desired, statuses)) isChanged = true;
      if (desired.kind === "CronJob" && this.#lookAtChildren(desired, statuses)) isChanged = true;
    }
    this.#handOverReplicaSets();
    // Jobs that their CronJob has given up.
    if (this.#dropDeleted()) isChanged = true;
    if (isChanged) this.#save();
    this.#setTimer();
    this.#publish(isNewState);
    // Before all is known, names that are missing may only be unknown.
    if (this.#deps.kubelet.isComplete)
      this.#deps.services.update(this.#prepared.services, pods, this.#deps.rewriteHosts);
    for (const listener of this.#onLook) listener();
  }

  #warn(warnings: readonly string[]): void {
    for (const warning of warnings) if (!this.#warned.has(warning)) this.#deps.logger.warn(warning);
    this.#warned = new Set(warnings);
  }

  /** @returns whether a claim was bound, or is gone */
  #bindClaims(): boolean {
    const { claims, volumes } = this.#prepared;
    const bindings = bindClaims(claims, [...volumes.values()], this.#bindings);
    // A claim that is only unknown keeps its volume.
    const next = this.#isComplete ? bindings : { ...this.#bindings, ...bindings };
    const isChanged = JSON.stringify(next) !== JSON.stringify(this.#bindings);
    this.#bindings = next;
    return isChanged;
  }

  /** @returns whether its record has changed */
  #lookAt(desired: DesiredWorkload, statuses: Statuses): boolean {
    const key = objectKey(desired.kind, desired.object.metadata);
    const entry = this.#entries.get(key);
    return (!entry || this.#isDue(entry, desired, statuses)) && this.#reconcile(key, desired, entry, statuses);
  }

  /** The Jobs of a CronJob. What changes with them may let it start, or forget, another one. */
  #lookAtChildren(cronJob: DesiredObjectOf<"CronJob">, statuses: Statuses): boolean {
    const key = objectKey("CronJob", cronJob.object.metadata);
    const before = this.#childrenOf(cronJob);
    const hasChanged = before.map((job) => this.#lookAt(job, statuses)).includes(true);
    if (!hasChanged) return false;
    this.#reconcile(key, cronJob, this.#entries.get(key), statuses);
    for (const job of this.#childrenOf(cronJob)) this.#lookAt(job, statuses);
    return true;
  }

  #childrenOf({
    object,
    source,
    origin,
    location,
    sourceId,
    asksForClusterDns,
  }: DesiredObjectOf<"CronJob">): DesiredObjectOf<"Job">[] {
    const key = objectKey("CronJob", object.metadata);
    const record = this.#entries.get(key)?.record ?? this.#restored.get(key);
    if (!record?.cron) return [];
    return record.cron.jobs.map((child) => ({
      kind: "Job",
      object: toChildJob(object, record.uid, child),
      source,
      origin,
      ...(location && { location }),
      ...(sourceId !== undefined && { sourceId }),
      ...(asksForClusterDns && { asksForClusterDns }),
      revision: child.name,
    }));
  }

  /** @returns the ReplicaSets that belong to a Deployment */
  #handOverReplicaSets(): ReadonlySet<DesiredWorkload> {
    const records = new Map<string, WorkloadRecord>(this.#restored);
    for (const [key, { record }] of this.#entries) records.set(key, record);
    const { owned, orphaned } = sortReplicaSets(this.#prepared.workloads, records);
    for (const { kind, object } of owned) {
      this.#entries.delete(objectKey(kind, object.metadata));
      this.#restored.delete(objectKey(kind, object.metadata));
    }
    for (const [key, record] of orphaned) this.#restored.set(key, record);
    return owned;
  }

  /** A restored workload is deleted once every source was read and none of them contains it. */
  #dropDeleted(): boolean {
    const objects = this.#prepared.workloads;
    const children = objects.flatMap((desired) => (desired.kind === "CronJob" ? this.#childrenOf(desired) : []));
    const wanted = new Set<string>(
      [...objects, ...children].map(({ kind, object }) => objectKey(kind, object.metadata)),
    );
    const isDeleted = (key: string) => !wanted.has(key);
    const deleted = [...this.#entries.keys()].filter(isDeleted);
    for (const key of deleted) {
      const { uid, revisions } = this.#entries.get(key)!.record;
      for (const gone of new Set([uid, ...Object.values(revisions).map((it) => it.uid)])) {
        this.#deps.recorder.objectGone(gone);
      }
      this.#entries.delete(key);
    }
    const forgotten = this.#isComplete ? [...this.#restored.keys()].filter(isDeleted) : [];
    for (const key of forgotten) this.#restored.delete(key);
    return deleted.length + forgotten.length > 0;
  }

  #isDue(entry: Entry, desired: DesiredWorkload, statuses: Statuses): boolean {
    if (entry.desired.revision !== desired.revision) return true;
    if (entry.desired !== desired) entry.desired = desired;
    if (entry.wakeAtMs <= this.#deps.clock.monotonicMs()) return true;
    return entry.record.pods.some(({ uid, leaving }) =>
      leaving ? this.#isGone(uid) : statuses.get(uid) !== entry.seen.get(uid),
    );
  }

  #isGone(uid: PodUID): boolean {
    const { kubelet } = this.#deps;
    return kubelet.isComplete && kubelet.worker(uid) === undefined;
  }

  /** @returns whether the record is another one now */
  #reconcile(key: ObjectKey, desired: DesiredWorkload, entry: Entry | undefined, statuses: Statuses): boolean {
    const { clock, nodeName, nodeLabels } = this.#deps;
    const nowMs = clock.monotonicMs();
    const known = entry?.record ?? this.#restored.get(key);
    const pod = (uid: PodUID) => this.#factsOf(uid, statuses, nowMs);
    const world: ControllerWorld = { nodeName, nodeLabels, now: clock.now(), nowMs, pod };
    const outcome = reconcileWorkload(desired, known, world, entry?.memory, (name) => this.#jobOf(desired, name));
    this.#restored.delete(key);
    const { record } = outcome;
    this.#entries.set(key, {
      desired,
      record,
      seen: new Map(record.pods.map(({ uid }) => [uid, statuses.get(uid)])),
      memory: outcome.memory,
      wakeAtMs: outcome.wakeInMs === undefined ? Number.POSITIVE_INFINITY : nowMs + outcome.wakeInMs,
    });
    for (const event of outcome.events) this.#tell(desired, record, event);
    return !known || JSON.stringify(known) !== JSON.stringify(record);
  }

  #jobOf({ object }: DesiredWorkload, name: string): JobRecord | undefined {
    const { namespace } = object.metadata;
    const key = objectKey("Job", { namespace, name });
    return (this.#entries.get(key)?.record ?? this.#restored.get(key))?.job;
  }

  #factsOf(uid: PodUID, statuses: Statuses, nowMs: number): PodFacts {
    const readySinceMs = this.#readySinceMs.get(uid);
    const status = statuses.get(uid);
    return {
      ...(status && { status }),
      phase: (status?.phase as PodFacts["phase"] | undefined) ?? "Pending",
      isReady: readySinceMs !== undefined,
      readyForMs: readySinceMs === undefined ? 0 : Math.max(0, nowMs - readySinceMs),
      isGone: this.#isGone(uid),
    };
  }

  /** A pod that was Ready before this process began keeps that time, as far as the wall clock can tell it. */
  #noteReady(statuses: Statuses): void {
    const { clock } = this.#deps;
    for (const uid of this.#readySinceMs.keys()) if (!statuses.has(uid)) this.#readySinceMs.delete(uid);
    for (const uid of this.#knownUids) if (!statuses.has(uid)) this.#knownUids.delete(uid);
    for (const [uid, status] of statuses) {
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      if (ready?.status !== "True") this.#readySinceMs.delete(uid);
      else if (!this.#readySinceMs.has(uid)) {
        const elapsedMs = clock.now().getTime() - Date.parse(ready.lastTransitionTime ?? "");
        const earlierMs = this.#knownUids.has(uid) || !(elapsedMs > 0) ? 0 : elapsedMs;
        this.#readySinceMs.set(uid, clock.monotonicMs() - earlierMs);
      }
      if (status?.phase !== "Pending") this.#knownUids.add(uid);
    }
  }

  #tell({ kind, object }: DesiredWorkload, { uid }: WorkloadRecord, event: WorkloadEvent): void {
    const { name = "", namespace = "default" } = object.metadata;
    const { replicaSet, ...told } = event;
    const own = { kind, apiVersion: API_VERSIONS[kind] ?? "apps/v1", name, uid };
    this.#deps.recorder.record({ ...own, namespace, ...(replicaSet && { kind: "ReplicaSet", ...replicaSet }) }, told);
  }

  /** On disk before any pod is started: what was begun is found again. */
  #save(): void {
    const records: Record<string, WorkloadRecord> = Object.fromEntries(this.#restored);
    for (const [key, { record }] of this.#entries) records[key] = record;
    this.#deps.file.write({ records, claims: this.#bindings });
  }

  #setTimer(): void {
    const { clock } = this.#deps;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const nextMs = Math.min(...[...this.#entries.values()].map(({ wakeAtMs }) => wakeAtMs));
    if (!Number.isFinite(nextMs)) return;
    this.#cancelTimer = clock.schedule(nextMs - clock.monotonicMs(), () => this.#look(false));
  }

  #publish(isNewState: boolean): void {
    const pods: DesiredPod[] = [];
    for (const { desired, record } of this.#entries.values()) {
      for (const pod of record.pods) {
        if (pod.leaving || pod.isDeleted) continue;
        const known = this.#pods.get(pod.uid);
        const made = known ?? toDesiredPod(desired, record, pod, this.#deps.nodeName);
        if (!known) this.#pods.set(pod.uid, made);
        pods.push(made);
      }
    }
    const uids = new Set(pods.map(({ pod }) => pod.metadata.uid!));
    for (const uid of this.#pods.keys()) if (!uids.has(uid)) this.#pods.delete(uid);
    const published = [...uids].join(" ");
    if (!isNewState && published === this.#publishedPods) return;
    this.#publishedPods = published;
    const all = [...this.#prepared.pods, ...pods].map((desired) => {
      const pod = resolveClaims(desired.pod, this.#bindings, this.#prepared.volumes);
      return pod === desired.pod ? desired : { ...desired, pod };
    });
    if (pods.length > 0) {
      all.sort((a, b) => compareFullNames(podFullName(a.pod.metadata), podFullName(b.pod.metadata)));
    }
    for (const uid of this.#deletions.keys()) if (this.#isGone(uid)) this.#deletions.delete(uid);
    const deletions = new Map([...(this.#state.deletions ?? []), ...this.#deletions]);
    const deleted = this.#deletions.size > 0 && { deletions };
    this.#deps.publish({ ...this.#state, pods: all, ...deleted }, this.#isComplete);
  }
}
