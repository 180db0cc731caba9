import type { Pod, PodStatus } from "../base/api/pod.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import type { DesiredPod, DesiredState, DesiredStateStage, PodDeletion } from "../base/model/desired-state.ts";
import { type DesiredObjectOf, type DesiredWorkload, type ObjectKey, objectKey } from "../base/model/desired-state.ts";
import { isSameList, memoized } from "../base/model/memoized.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { compareFullNames, type PodUID, podFullName } from "../base/model/pod.ts";
import { adoptReplicaSets, claimPods, isWanted, selectsLabels, sortReplicaSets, wantedWorkloads } from "./adoption.ts";
import { ClaimBinder, replacedClaims, resolveClaims } from "./claims.ts";
import {
  type ControllerContext,
  type ObservedPods,
  PodObserver,
  type Statuses,
  type WorkloadEvent,
} from "./controller.ts";
import type { IngressManager } from "./ingress-manager.ts";
import { type PreparedState, prepareState } from "./prepare-state.ts";
import { reconcileWorkload, toDesiredPod } from "./reconcile-workload.ts";
import type { ServiceManager } from "./service-manager.ts";
import { WorkloadReader, type WorkloadReaderDeps } from "./workload-reader.ts";
import {
  apiVersionOf,
  type ChildJobRecord,
  controllerReference,
  type Entry,
  type PodRecord,
  type WorkloadRecord,
  WorkloadRecords,
  type WorkloadState,
} from "./workload-records.ts";

interface WorkloadManagerDeps {
  context: ControllerContext;
  file: Persisted<WorkloadState>;
  kubelet: ObservedPods;
  services: ServiceManager;
  /** Absent: Ingresses have no effect. */
  ingresses?: IngressManager | undefined;
  /** Gets every new state: that of the sources, with the pods of the workloads in it. */
  next: DesiredStateStage;
}

/** Changes of many pods within this time are handled together. */
const DEBOUNCE_MS = 20;
/** Changes of the wall clock are not reported: it is looked at this often while a decision depends on it. */
const CLOCK_CHECK_MS = 60_000;

/**
 * Turns workloads into pods: keeps the records of all workloads, asks their controllers when an object, a pod or the time
 * has changed, and hands the outcome on. Without workloads it passes states through and listens to nothing.
 */
export class WorkloadManager {
  /** For the API. */
  readonly reader: WorkloadReader;
  /** Reconciliations of the workloads. */
  readonly syncs = new Listeners();
  /** States that are handed on, just before. */
  readonly states = new Listeners<DesiredState>();
  readonly claims: ClaimBinder;
  /** Leads to the pods. */
  readonly services: ServiceManager;
  readonly #deps: WorkloadManagerDeps;
  readonly #context: ControllerContext;
  readonly #records: WorkloadRecords;
  readonly #observer: PodObserver;
  readonly #pods: WorkloadPods;
  #state: DesiredState = { pods: [], configMaps: new Map(), secrets: new Map() };
  #prepared: PreparedState = prepareState(this.#state);
  /** Those of the prepared state: a Deployment may own or adopt them. */
  #replicaSets: readonly DesiredWorkload[] = [];
  /** Pods of the API that are in the prepared state: only they are claimed. */
  #podsOfApi: readonly DesiredPod[] = [];
  #warned = new Set<string>();
  #isComplete = false;
  /** Pods of the newest state of the sources; undefined until they are published. */
  #published: readonly DesiredPod[] | undefined;
  #isSettled = false;
  /** Uids of ReplicaSets that a Deployment has adopted again. */
  readonly #takenOver = new Set<string>();
  /** The pod of a Job has ended: the node may take one that it refused. */
  #hasFreedSlot = false;
  #unsubscribe: (() => void) | undefined;
  #cancelDebounce: (() => void) | undefined;
  /** Those of the last sync. */
  #seenPods: readonly Pod[] = [];
  #isSyncNeeded = false;
  #cancelTimer: (() => void) | undefined;
  #isStopped = false;

  constructor(deps: WorkloadManagerDeps) {
    this.#deps = deps;
    this.services = deps.services;
    this.#context = deps.context;
    const { clock, node } = deps.context;
    const { services, ingresses } = deps;
    const isAwaited = (status: PodStatus) => services.isAwaited(status) || (ingresses?.isAwaited(status) ?? false);
    this.#observer = new PodObserver(deps.kubelet, clock, isAwaited);
    this.#records = new WorkloadRecords(deps.file);
    this.claims = new ClaimBinder(this.#records);
    const parts = { nodeName: node.name, records: this.#records, observer: this.#observer, claims: this.claims };
    this.#pods = new WorkloadPods(parts);
    this.reader = new WorkloadReader({ ...parts, services: deps.services, ingresses: deps.ingresses });
    this.services.onChange(() => this.#requestSync(true));
  }

  /**
   * The newest state of the sources.
   * @param isComplete a workload that is not in it is deleted, and its pods with it
   * @param isRead every source was read, though a text that was never right may be unknown
   */
  setDesired(state: DesiredState, isComplete: boolean, isRead = isComplete): void {
    this.#state = state;
    this.#isComplete = isComplete;
    this.#observer.isRead = isRead;
    const { services } = this;
    const { node, logger } = this.#context;
    this.#prepared = prepareState(state, node.comparesAllLabels ? undefined : node, !services.hasAddresses);
    const { warnings, pods, workloads } = this.#prepared;
    this.#replicaSets = workloads.filter(({ kind }) => kind === "ReplicaSet");
    this.#podsOfApi = pods.filter(({ source }) => source === "api");
    for (const warning of warnings) if (!this.#warned.has(warning)) logger.warn(warning);
    this.#warned = new Set(warnings);
    const known = new Set(workloads.map(({ object }) => object.metadata.uid));
    // The API has released it. If it is stored again, the Deployment is about to be deleted.
    for (const uid of this.#takenOver) if (!known.has(uid)) this.#takenOver.delete(uid);
    if ((state.objects ?? []).length > 0 || services.hasRules) {
      this.#unsubscribe ??= this.#deps.kubelet.onChange(() => this.#requestSync(false));
    }
    this.#sync(true);
  }

  /**
   * Every source was read, though a text that was never right may be unknown, and each pod found there was observed. Before,
   * pods that run would be missing in what leads to them.
   */
  get isSettled(): boolean {
    const { kubelet } = this.#deps;
    this.#isSettled ||=
      this.#observer.isRead && !!this.#published?.every(({ pod }) => kubelet.isObserved(pod.metadata.uid!));
    return this.#isSettled;
  }

  /** Whether a workload made this pod. */
  hasPod(uid: PodUID): boolean {
    return this.#entryOf(uid) !== undefined;
  }

  /** Whether the workload that made this pod selects these labels; undefined where none has it, or it is being removed. */
  selectsPod(uid: PodUID, labels: Readonly<Record<string, string>>): boolean | undefined {
    const entry = this.#entryOf(uid);
    const isLeaving = entry?.record.pods.some((pod) => pod.uid === uid && (pod.leaving || pod.isDeleted));
    return entry && !isLeaving ? selectsLabels(entry.desired, entry.record, labels) : undefined;
  }

  /**
   * Whether a workload has taken over this ReplicaSet or pod of a client, and that is stored. One that was orphaned a moment
   * ago is not yet in the state of the sources, and not taken over.
   */
  hasTakenOver(uid: string): boolean {
    const isOwn = () => this.#prepared.pods.some(({ pod }) => pod.metadata.uid === uid);
    return this.#records.isStored && (this.#takenOver.has(uid) || (this.hasPod(uid) && isOwn()));
  }

  /** Whether all is decided for the pods as they are, and stored, and so has taken effect. */
  get isAtRest(): boolean {
    return this.#records.isStored && this.#cancelDebounce === undefined;
  }

  /** Whether `ttlSecondsAfterFinished` of the Job with this uid has passed. */
  isExpired(uid: string): boolean {
    return this.#records.entries().some(({ record }) => record.uid === uid && record.job?.isExpired === true);
  }

  /**
   * Deletes a pod of a workload for a client; the controller decides what takes its place.
   * @returns whether that is stored; else it was not done
   */
  async deletePod(uid: PodUID, deletion: PodDeletion): Promise<boolean> {
    const entry = this.#entryOf(uid);
    if (!entry) return true;
    const { record } = entry;
    const mark = (pod: PodRecord): PodRecord => ({ ...pod, ...(pod.ended ? { isDeleted: true } : { leaving: true }) });
    entry.record = { ...record, pods: record.pods.map((pod) => (pod.uid === uid ? mark(pod) : pod)) };
    this.#pods.setDeletion(uid, deletion);
    const keeping = this.#keep();
    this.#sync(false);
    const isStored = await keeping;
    if (!isStored) this.#pods.setDeletion(uid, undefined);
    if (!isStored) this.#sync(false);
    return isStored;
  }

  /** Stores what a client asked for. @returns whether it is stored; else it is forgotten, and what follows is decided again */
  async #keep(): Promise<boolean> {
    const isStored = await this.#save();
    if (!isStored) {
      this.#records.takeBack();
      void this.#save();
    }
    return isStored;
  }

  #entryOf(uid: PodUID): Entry | undefined {
    return this.#records.entries().find(({ record }) => record.pods.some((pod) => pod.uid === uid));
  }

  /** Deletes a claim that a StatefulSet made and no pod uses, whose data stays; undefined for every other claim. */
  removalOfClaim(fullName: string): (() => Promise<boolean>) | undefined {
    if (!this.claims.isFree(fullName)) return undefined;
    return async () => {
      const { [fullName]: _claim, ...others } = this.#records.claims;
      this.#records.claims = others;
      const isStored = await this.#keep();
      this.#sync(true);
      return isStored;
    };
  }

  /**
   * Deletes a Job that a CronJob made, with its pods, for a client: its run is not repeated; undefined for every other
   * Job. It goes with the next state, which has the pods that another owner keeps.
   */
  removalOfJob(fullName: string): (() => Promise<boolean>) | undefined {
    for (const entry of this.#records.entries()) {
      const { desired, record } = entry;
      const { cron } = record;
      const job = cron?.jobs.find(({ name }) => podFullName({ ...desired.object.metadata, name }) === fullName);
      if (!cron || !job) continue;
      return async () => {
        entry.record = { ...record, cron: { ...cron, jobs: cron.jobs.filter((other) => other !== job) } };
        const isStored = await this.#keep();
        const message = `Active job went missing: ${job.name}`;
        const missing: WorkloadEvent = { type: "Warning", reason: "MissingJob", message };
        if (isStored && !job.isSeen) this.#record(desired, record, missing);
        return isStored;
      };
    }
    return undefined;
  }

  /** Decides and publishes again: settings, or labels of the node, have changed. */
  refresh(): void {
    if (this.#published) this.setDesired(this.#state, this.#isComplete, this.#observer.isRead);
  }

  stop(): void {
    this.#isStopped = true;
    this.#unsubscribe?.();
    this.services.stop();
    this.#cancelDebounce?.();
    this.#cancelTimer?.();
  }

  /** @param isNeeded though no pod may have changed */
  #requestSync(isNeeded: boolean): void {
    this.#isSyncNeeded ||= isNeeded || !this.#isSettled;
    this.#cancelDebounce ??= this.#context.clock.schedule(DEBOUNCE_MS, () => {
      this.#cancelDebounce = undefined;
      const hasLeaving = () => this.#records.entries().some(({ record }) => record.pods.some(({ leaving }) => leaving));
      if (this.#isSyncNeeded || this.#deps.kubelet.pods() !== this.#seenPods || hasLeaving()) this.#sync(false);
    });
  }

  #sync(isNewState: boolean): void {
    if (this.#isStopped) return;
    const { services } = this;
    const { kubelet, next } = this.#deps;
    if (isNewState) this.#published = undefined;
    const wasSettled = this.isSettled;
    const pods = kubelet.pods();
    this.#seenPods = pods;
    this.#isSyncNeeded = false;
    const statuses = this.#observer.update(pods);
    if (isNewState && this.#observer.isRead) services.setServices(this.#prepared.services);
    // A pod is replaced when connections reach the one in its place.
    if (wasSettled) services.update(this.#prepared.services, pods, this.#prepared.endpoints);
    const owned = this.#handOverReplicaSets();
    let isChanged = isNewState && this.#dropDeleted();
    for (const desired of this.#prepared.workloads) {
      if (owned.has(desired)) continue;
      if (this.#syncWorkload(desired, statuses)) isChanged = true;
      if (desired.kind === "CronJob" && this.#syncChildJobs(desired, statuses)) isChanged = true;
    }
    this.#handOverReplicaSets();
    // Jobs that their CronJob no longer has, and what was handed over.
    const mayDrop = this.#prepared.workloads.some(({ kind }) => kind === "CronJob" || kind === "ReplicaSet");
    if (mayDrop && this.#dropDeleted()) isChanged = true;
    if (this.claims.update(this.#prepared, this.#isComplete, isNewState)) isChanged = true;
    if (isChanged) void this.#save();
    this.#setTimer();
    const state = this.#pods.merge(this.#state, this.#prepared, isNewState || this.#hasFreedSlot);
    if (state) {
      this.#published = state.pods;
      this.states.emit(state);
      next.setDesired(state, this.#isComplete);
    }
    this.#hasFreedSlot = false;
    if (!wasSettled && this.isSettled && this.#prepared.services.length > 0) this.#requestSync(true);
    this.syncs.emit();
  }

  /** Stores the records: what they want takes effect then. @returns whether they could be stored */
  #save(): boolean | Promise<boolean> {
    return this.#records.save(() => this.#sync(false));
  }

  /** @returns whether its record has changed */
  #syncWorkload(desired: DesiredWorkload, statuses: Statuses): boolean {
    const key = objectKey(desired.kind, desired.object.metadata);
    const entry = this.#records.entry(key);
    const isSettled = entry?.inputs && isSameList(entry.inputs, this.#inputsOf(desired, entry.record, statuses));
    return isSettled && this.#leftMs(entry) > 0 ? false : this.#reconcile(key, desired, entry, statuses);
  }

  /** All that a decision depends on besides the time. */
  #inputsOf(desired: DesiredWorkload, record: WorkloadRecord, statuses: Statuses): unknown[] {
    const { namespace } = desired.object.metadata;
    return [
      ...[this.#prepared, desired, record],
      ...record.pods.flatMap(({ uid }) => [statuses.get(uid), this.#observer.isGone(uid)]),
      ...(record.cron?.jobs ?? []).map(({ name }) => this.#records.get(objectKey("Job", { namespace, name }))?.job),
      ...this.#replicaSets.map(({ object }) => this.#records.get(objectKey("ReplicaSet", object.metadata))),
    ];
  }

  /** The Jobs of a CronJob. What changes with them may let it start, or forget, another one. */
  #syncChildJobs(cronJob: DesiredObjectOf<"CronJob">, statuses: Statuses): boolean {
    const hasChanged = this.#childrenOf(cronJob).map((job) => this.#syncWorkload(job, statuses));
    if (!hasChanged.includes(true)) return false;
    this.#syncWorkload(cronJob, statuses);
    for (const job of this.#childrenOf(cronJob)) this.#syncWorkload(job, statuses);
    return true;
  }

  #childrenOf(
    cronJob: DesiredObjectOf<"CronJob">,
    records: Pick<ReadonlyMap<ObjectKey, WorkloadRecord>, "get"> = this.#records,
  ): DesiredObjectOf<"Job">[] {
    const record = records.get(objectKey("CronJob", cronJob.object.metadata));
    return record?.cron?.jobs.map((child) => toDesiredJob(child, cronJob, record.uid)) ?? [];
  }

  /** @returns the ReplicaSets that belong to a Deployment */
  #handOverReplicaSets(): ReadonlySet<DesiredWorkload> {
    if (this.#replicaSets.length === 0) return new Set();
    const { owned, orphaned } = sortReplicaSets(this.#prepared.workloads, this.#records.all());
    for (const { kind, object } of owned) this.#records.delete(objectKey(kind, object.metadata));
    for (const [key, record] of orphaned) this.#records.restore(key, record);
    return owned;
  }

  /** A restored workload is deleted once every source was read and none of them contains it. */
  #dropDeleted(): boolean {
    const objects = this.#prepared.workloads;
    // A Job that its CronJob has given up stays until that is stored.
    const children = objects.flatMap((desired) =>
      desired.kind === "CronJob"
        ? [this.#records, this.#records.stored].flatMap((it) => this.#childrenOf(desired, it))
        : [],
    );
    const wanted = wantedWorkloads([...objects, ...children]);
    const { isChanged, deleted } = this.#records.retain(
      (key, record) => isWanted(wanted, key, record),
      (key) => this.#isComplete || wanted.has(key),
    );
    for (const { uid, revisions } of deleted) {
      for (const gone of new Set([uid, ...Object.values(revisions).map((it) => it.uid)])) {
        this.#context.recorder.objectGone(gone);
      }
    }
    return isChanged;
  }

  /** @returns whether the record is another one now */
  #reconcile(key: ObjectKey, desired: DesiredWorkload, entry: Entry | undefined, statuses: Statuses): boolean {
    const { clock, node } = this.#context;
    const nowMs = clock.monotonicMs();
    const world = { node, now: clock.now(), nowMs, pod: this.#observer.reader(statuses) };
    const before = this.#records.get(key);
    const adopted = adoptReplicaSets(desired, before, this.#replicaSets, this.#records, world);
    for (const uid of adopted?.uids ?? []) this.#takenOver.add(uid);
    const known = claimPods(desired, adopted?.record ?? before, this.#podsOfApi, world);
    const { namespace } = desired.object.metadata;
    const jobOf = (name: string) => this.#records.get(objectKey("Job", { namespace, name }))?.job;
    const outcome = reconcileWorkload(desired, known, world, entry?.state, jobOf);
    const isChanged = !before || !Bun.deepEquals(before, outcome.record);
    const record = isChanged ? outcome.record : before;
    // A decision that changed nothing changes nothing the next time either.
    const isSettled = !isChanged && outcome.events.length === 0 && Bun.deepEquals(entry?.state, outcome.state);
    this.#records.set(key, {
      desired,
      record,
      inputs: isSettled ? this.#inputsOf(desired, record, statuses) : undefined,
      state: outcome.state,
      wakeAtMs: outcome.wakeInMs === undefined ? Number.POSITIVE_INFINITY : nowMs + outcome.wakeInMs,
      wall:
        outcome.holdsUntilMs === undefined ? undefined : { fromMs: world.now.getTime(), untilMs: outcome.holdsUntilMs },
    });
    for (const event of outcome.events) this.#record(desired, record, event);
    if (countEnded(record) > countEnded(before)) this.#hasFreedSlot = true;
    return isChanged;
  }

  #record({ kind, object }: DesiredWorkload, { uid }: WorkloadRecord, event: WorkloadEvent): void {
    const { name = "", namespace = "default" } = object.metadata;
    const { replicaSet, ...rest } = event;
    const own = { kind, apiVersion: apiVersionOf(kind), name, uid, namespace };
    this.#context.recorder.record(replicaSet ? { ...own, kind: "ReplicaSet", ...replicaSet } : own, rest);
  }

  #setTimer(): void {
    this.#cancelTimer?.();
    const { clock } = this.#context;
    const entries = this.#records.entries();
    const syncIfDue = () => {
      if (this.#records.entries().some((entry) => this.#leftMs(entry) <= 0)) this.#sync(false);
      else this.#setTimer();
    };
    const sleepMs = Math.min(...entries.map((entry) => this.#leftMs(entry)));
    const cancelDue = Number.isFinite(sleepMs) ? clock.schedule(sleepMs, syncIfDue) : undefined;
    const cancelCheck = entries.some(({ wall }) => wall) ? clock.schedule(CLOCK_CHECK_MS, syncIfDue) : undefined;
    this.#cancelTimer = () => {
      cancelDue?.();
      cancelCheck?.();
    };
  }

  /** How much longer a decision holds unless the clock is set; 0 or less: no longer. */
  #leftMs({ wakeAtMs, wall }: Entry): number {
    const { clock } = this.#context;
    const leftMs = wakeAtMs - clock.monotonicMs();
    if (!wall) return leftMs;
    const wallMs = clock.now().getTime();
    return wallMs < wall.fromMs ? 0 : Math.min(leftMs, wall.untilMs - wallMs);
  }
}

/** The Job of a CronJob as an object. */
const toDesiredJob = memoized(
  (child: ChildJobRecord, cronJob: DesiredObjectOf<"CronJob">, uid: string): DesiredObjectOf<"Job"> => {
    const { name, namespace = "default" } = cronJob.object.metadata;
    const { labels, annotations } = child.template.metadata;
    const metadata = {
      name: child.name,
      namespace,
      ...(labels && { labels }),
      annotations: { ...annotations, "batch.kubernetes.io/cronjob-scheduled-timestamp": child.scheduledAt },
      ownerReferences: [controllerReference("CronJob", name, uid)],
    };
    return { ...cronJob, kind: "Job", object: { metadata, spec: child.template.spec }, revision: child.name };
  },
);

const countEnded = (record: WorkloadRecord | undefined): number =>
  record?.pods.filter(({ ended }) => ended !== undefined).length ?? 0;

/** The pods of the workloads, merged with those of the sources. A pod that did not change is the same object as before. */
class WorkloadPods {
  readonly #deps: Pick<WorkloadReaderDeps, "nodeName" | "records" | "claims" | "observer">;
  readonly #pods = new Map<PodUID, { edited: PodRecord["edited"]; made: DesiredPod }>();
  /** Grace periods of pods that clients deleted. */
  readonly #deletions = new Map<PodUID, PodDeletion>();
  /** UIDs of the last {@link merge}; undefined: another one is due. */
  #merged: string | undefined = "";

  constructor(deps: Pick<WorkloadReaderDeps, "nodeName" | "records" | "claims" | "observer">) {
    this.#deps = deps;
  }

  /** @param deletion by a client; undefined: it was not deleted after all */
  setDeletion(uid: PodUID, deletion: PodDeletion | undefined): void {
    if (deletion) this.#deletions.set(uid, deletion);
    else this.#deletions.delete(uid);
    this.#merged = undefined;
  }

  /**
   * @param state of the sources
   * @param isNewState it is another one than at the last call
   * @returns the state to run; undefined when it is that of the last call
   */
  merge(state: DesiredState, prepared: PreparedState, isNewState: boolean): DesiredState | undefined {
    const all = this.#make();
    // A pod that a client has released keeps its name until it is deleted.
    const allUids = new Set(all.map(({ pod }) => pod.metadata.uid));
    const released = prepared.pods.filter(({ pod, source }) => source === "api" && !allUids.has(pod.metadata.uid));
    const taken = new Set(released.map(({ pod }) => podFullName(pod.metadata)));
    const made = taken.size === 0 ? all : all.filter(({ pod }) => !taken.has(podFullName(pod.metadata)));
    const merged = made.map(({ pod }) => pod.metadata.uid).join(" ");
    if (!isNewState && merged === this.#merged) return undefined;
    this.#merged = merged;
    const uids = new Set(made.map(({ pod }) => pod.metadata.uid));
    // A pod that a workload took over is in the API as a pod of its own until that has noticed.
    const own = prepared.pods.filter(({ pod }) => !uids.has(pod.metadata.uid));
    const pods = [...own, ...made].map((desired) => {
      const pod = resolveClaims(desired.pod, (claim) => this.#deps.claims.volumeOf(claim));
      return pod === desired.pod ? desired : { ...desired, pod, claims: replacedClaims(desired.pod, pod) };
    });
    if (made.length > 0) {
      pods.sort((a, b) => compareFullNames(podFullName(a.pod.metadata), podFullName(b.pod.metadata)));
    }
    for (const uid of this.#deletions.keys()) if (this.#deps.observer.isGone(uid)) this.#deletions.delete(uid);
    const deletions = new Map([...(state.deletions ?? []), ...this.#deletions]);
    const { problems } = this.#deps.claims;
    return {
      ...state,
      pods,
      ...(this.#deletions.size > 0 && { deletions }),
      ...(problems.size > 0 && { claimProblems: problems }),
    };
  }

  /** Those that are wanted as stored. What they are made of may be newer. */
  #make(): DesiredPod[] {
    const { records, nodeName } = this.#deps;
    const present = new Map<PodUID, { entry: Entry; now: PodRecord }>();
    for (const entry of records.entries()) for (const now of entry.record.pods) present.set(now.uid, { entry, now });
    const pods: DesiredPod[] = [];
    for (const [key, stored] of records.stored) {
      for (const pod of stored.pods) {
        const { entry, now } = present.get(pod.uid) ?? { entry: records.entry(key as ObjectKey), now: undefined };
        // Otherwise its workload is in no source any more.
        const isOwned = now !== undefined || entry?.record.uid === stored.uid;
        if (!entry || !isOwned || pod.leaving || pod.isDeleted) continue;
        const record = now ? entry.record : stored;
        const { edited } = now ?? pod;
        const known = this.#pods.get(pod.uid);
        const isSame = known !== undefined && known.edited === edited;
        const made = isSame ? known.made : toDesiredPod(entry.desired, record, now ?? pod, nodeName);
        this.#pods.set(pod.uid, { edited, made });
        pods.push(made);
      }
    }
    const uids = new Set(pods.map(({ pod }) => pod.metadata.uid!));
    for (const uid of this.#pods.keys()) if (!uids.has(uid)) this.#pods.delete(uid);
    return pods;
  }
}
