import type { EphemeralContainer, Pod } from "../base/api/pod.ts";
import type { ObservedRuntime } from "../base/model/container-engine.ts";
import type { DesiredPod, DesiredState, ObjectIndex } from "../base/model/desired-pod.ts";
import { type PodUID, podFullName } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { podRefOf } from "../base/model/pod-ref.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import type { Rejection } from "../plan/admission.ts";
import { isRunning } from "../plan/container-history.ts";
import type { DeadContainerPolicy } from "../plan/dead-container-limit.ts";
import {
  type DependencyState,
  dependenciesOf,
  findDependencyProblems,
  findHold,
  findStopsBefore,
  isDependencyOn,
} from "../plan/pod-dependencies.ts";
import type { PodEnd, WaitingReason } from "../plan/pod-plan.ts";
import type { PendingResize } from "../plan/pod-resize.ts";
import { type AdmissionInput, BlockedPods, decideAdmission, type StoredEvictions } from "./blocked-pods.ts";
import { mayLackObjects, type PodRevision, toTentativeRevision, withPendingResize } from "./edit-rules.ts";
import { PodCache } from "./pod-cache.ts";
import type { PodManager } from "./pod-manager.ts";
import { PodStatusStore } from "./pod-status-store.ts";
import type { PodWorker } from "./pod-worker.ts";
import { PodWorkers, type SharedWorkerDeps } from "./pod-workers.ts";
import { RevisionSelector, type RevisionSelectorDeps } from "./revision-selector.ts";
import { RuntimeWatcher } from "./runtime-watcher.ts";
import { StoredMap } from "./stored-map.ts";

interface KubeletDeps extends SharedWorkerDeps, RevisionSelectorDeps {
  runtime: ObservedRuntime;
  podManager: PodManager;
  /** Revision hashes, QoS class and the like of one pod. @throws Error when the pod cannot run on this engine */
  toPodRevision: (desired: DesiredPod, objects: ObjectIndex) => PodRevision;
  admit: AdmissionInput["admit"];
  /** Why a pod that has no place yet is not assigned to the node; undefined: it is. Absent: every pod is. */
  holdOf?: AdmissionInput["holdOf"];
  shutdownTerminated: Persisted<ContainerId[]>;
  evictions: Persisted<StoredEvictions>;
  oomVerdicts: Persisted<readonly ContainerId[]>;
  /** A pod was removed completely. */
  onPodGone?: (uid: PodUID) => void;
  /** The engine reports that a container, or a sandbox, ran out of memory. */
  onOom?: (id: ContainerId) => void;
  /** Called after each list of all containers that succeeded. */
  onRelist?: (durationMs: number) => void;
  /** Longest time between two lists of all containers. Unit: milliseconds. */
  relistPeriodMs: number;
  /** Dead containers on the whole node; absent: no limit. */
  deadContainers?: DeadContainerPolicy;
}

/**
 * The sync loop: turns the desired state and what the engine reports into orders for pod workers, one worker per pod. A
 * pod whose name or host port is still held by a terminating pod waits for it.
 */
export class Kubelet {
  readonly #deps: KubeletDeps;
  readonly #cache: PodCache;
  readonly #watcher: RuntimeWatcher;
  readonly #workers: PodWorkers;
  readonly #blocked: BlockedPods;
  readonly #dependencies: DependencyOrder;
  readonly #halts: HaltedPods;
  readonly #statusStore: PodStatusStore;
  readonly #revisions: RevisionSelector;
  /** Arguments of the last {@link setDesired}. */
  #submitted: [state: DesiredState, isComplete: boolean] | undefined;
  #isStopped = false;
  #mayRemoveOrphans = false;

  constructor(deps: KubeletDeps) {
    const { clock, logger, runtime } = deps;
    this.#deps = deps;
    this.#halts = new HaltedPods(deps.shutdownTerminated, (id) => !this.isSynced || this.#cache.has(id));
    this.#statusStore = new PodStatusStore(clock);
    this.#blocked = new BlockedPods({ clock, logger, recorder: deps.recorder, evictions: deps.evictions });
    this.#revisions = new RevisionSelector(deps, () => this.refresh());
    this.#cache = new PodCache({
      runtime,
      clock,
      oomVerdicts: deps.oomVerdicts,
      onChange: (uid) => this.#onObserved(uid),
    });
    this.#workers = new PodWorkers({
      ...deps,
      cache: this.#cache,
      shutdownTerminated: this.#halts.terminated,
      desiredSinceMs: (uid) => this.#statusStore.desiredSinceMs(uid),
      findHold: (uid, pod, waitedMs) => this.#dependencies.findHold(uid, pod, waitedMs),
      onStatus: (worker) => {
        this.#statusStore.changed(worker.ref.uid);
        this.#onProgress(worker);
      },
      onRollout: (worker) => this.#onProgress(worker),
      onGone: (uid) => this.#onGone(uid),
    });
    this.#dependencies = new DependencyOrder(() => this.desiredPods, this.#workers.byUid);
    this.#watcher = new RuntimeWatcher({
      ...deps,
      cache: this.#cache,
      onOom: (id) => deps.onOom?.(id),
      onRelist: (durationMs) => deps.onRelist?.(durationMs),
      onResync: () => {
        for (const worker of this.#workers.values()) worker.retryNow();
        this.#reconcile();
      },
      onPeriodicRelist: () => {
        this.#removeOrphans();
        if (deps.deadContainers) this.removeSurplusDead(deps.deadContainers);
      },
      onHealthChange: () => this.#statusStore.changed(),
    });
  }

  /** Follows the engine from now on. No pod is touched before all containers were inspected once. */
  start(): void {
    this.#watcher.start();
  }

  /**
   * Sets what this node should run from now on. The state is complete: a pod that is not in it is removed, within the
   * grace period of `state.deletions` if it has an entry there, else within its own.
   * @param isComplete every source was read: our containers that belong to no pod are orphans and are removed
   */
  setDesired(submitted: DesiredState, isComplete: boolean): void {
    this.#submitted = [submitted, isComplete];
    const state = this.#revisions.select(submitted, isComplete, (uid) => this.#workers.has(uid));
    this.#deps.podManager.set(state);
    this.#statusStore.noteSeen(state.pods, (uid) => this.#workers.has(uid));
    this.#mayRemoveOrphans = isComplete;
    this.#dependencies.check(isComplete);
    this.#blocked.forgetEdited((uid) => this.#deps.podManager.get(uid)?.revision, isComplete);
    this.#reconcile();
  }

  /** Considers the last desired state again: the revisions or images that pods run have changed. */
  refresh(): void {
    if (this.#submitted && !this.#isStopped) this.setDesired(...this.#submitted);
  }

  /**
   * Stops a desired pod and removes it with its volumes. It counts as refused for this reason, with that status, until
   * it is edited or {@link readmit}ted.
   * @param maxGraceSeconds limits its own grace period
   */
  evict(uid: PodUID, why: Rejection, maxGraceSeconds: number): void {
    const desired = this.#deps.podManager.get(uid);
    if (!desired) return;
    this.#blocked.evict(desired, why);
    this.#workers.get(uid)?.limitGrace(maxGraceSeconds);
    this.#reconcile();
  }

  /** Evicted pods may run again if the node admits them. Without any UID the node only reconsiders its refusals. */
  readmit(uids: Iterable<PodUID>): void {
    this.#blocked.readmit(uids);
    this.#reconcile();
  }

  /**
   * Stops a desired pod without removing anything of it; its status is `end` until {@link resume}.
   * @returns a promise that resolves when nothing of it runs any more
   */
  async halt(uid: PodUID, end: PodEnd, maxGraceSeconds: number): Promise<void> {
    await this.#halts.halt(uid, this.#workers.get(uid), end, maxGraceSeconds);
  }

  /** Halted pods run again, and pods refused in the meantime are reconsidered. */
  resume(): void {
    this.#halts.clear();
    for (const worker of this.#workers.values()) worker.resume();
    this.#reconcile();
  }

  /**
   * Stops the containers of a pod within their grace period and starts them in a new sandbox.
   * @returns why it cannot, behind the name of the pod; undefined: it has begun
   */
  restartPod(uid: PodUID): string | undefined {
    const worker = this.#workers.get(uid);
    return worker ? worker.restart() : "is not started on this node";
  }

  /** Desired pods that were evicted, by this process or an earlier one. */
  get evicted(): ReadonlyMap<PodUID, Rejection> {
    return this.#blocked.evictions;
  }

  /** The kernel, not the engine, reports that it killed a process of this container for lack of memory. */
  noteOom(id: ContainerId): void {
    this.#cache.handleEvent({ id, action: "oom" }).catch(() => {});
  }

  /** Removes dead containers beyond these limits, over all pods. @returns how many are removed */
  removeSurplusDead(policy: DeadContainerPolicy): number {
    return this.#workers.removeSurplusDead(policy);
  }

  /**
   * Gives a desired pod these ephemeral containers: new ones are started in its namespaces, once.
   * @param containers all of them, those it already has included
   */
  setEphemeralContainers(uid: PodUID, containers: readonly EphemeralContainer[]): void {
    this.#revisions.setEphemeralContainers(uid, containers);
  }

  /** Every desired pod is known, and all containers were inspected. */
  get isComplete(): boolean {
    return this.#mayRemoveOrphans && this.isSynced;
  }

  /** Releases everything; pods keep running. */
  stop(): void {
    this.#isStopped = true;
    this.#watcher.stop();
    for (const worker of this.#workers.values()) worker.detach();
  }

  get desiredPods(): readonly DesiredPod[] {
    return this.#desired.pods;
  }

  /** Grows with every change of what {@link pods} returns. */
  get podsRevision(): number {
    return this.#statusStore.revision;
  }

  /**
   * Every desired pod and every pod that still terminates, with its status, by namespace and name. An unchanged pod is
   * the same object as before.
   */
  pods(): readonly Pod[] {
    return this.#statusStore.list(this.desiredPods, (uid) => this.#blocked.get(uid), this.#workers.byUid);
  }

  /** One of {@link pods}. */
  pod(uid: PodUID): Pod | undefined {
    this.pods();
    return this.#statusStore.get(uid);
  }

  worker(uid: PodUID): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  workers(): Iterable<PodWorker> {
    return this.#workers.values();
  }

  /** All containers were inspected, and nothing is left of this pod: no container, volume or cgroup. */
  isGone(uid: PodUID): boolean {
    return this.isSynced && !this.#workers.has(uid) && !this.#workers.hasLeftovers(uid) && !this.#cache.refOf(uid);
  }

  rejection(uid: PodUID): Rejection | undefined {
    return this.#blocked.rejection(uid);
  }

  /** Why the engine cannot be followed; undefined while it can. */
  get runtimeError(): string | undefined {
    return this.#watcher.runtimeError;
  }

  /** All containers were inspected at least once. */
  get isSynced(): boolean {
    return this.#watcher.isSynced;
  }

  /**
   * Calls back after every change of a status, of the set of pods, or of the engine's health.
   * @param listener gets the UID of the only pod that changed; undefined: anything may have
   * @returns unsubscribes
   */
  onChange(listener: (uid: PodUID | undefined) => void): () => void {
    return this.#statusStore.onChange(listener);
  }

  get #desired(): DesiredState {
    return this.#deps.podManager.state;
  }

  #onObserved(uid: PodUID): void {
    const worker = this.#workers.get(uid);
    if (worker) worker.wake();
    else if (this.isSynced) this.#removeOrphans();
  }

  /** Brings the set of workers in line with the desired state. */
  #reconcile(): void {
    if (!this.isSynced || this.#isStopped) return;
    const desiredUids = new Set(this.#desired.pods.map(({ pod }) => pod.metadata.uid!));
    const undesired = [...this.#workers.values()].filter(({ ref }) => !desiredUids.has(ref.uid));
    for (const worker of this.#dependencies.removable(undesired)) this.#workers.remove(worker, this.#desired);
    const { admit, holdOf } = this.#deps;
    const { held, rejections, resizes } = decideAdmission({
      desired: this.#desired.pods,
      workers: this.#workers.byUid,
      observed: this.#cache.uids(),
      evictions: this.#blocked.evictions,
      isComplete: this.#mayRemoveOrphans,
      admit,
      holdOf,
    });
    this.#blocked.begin();
    const removing = this.#workers.removing();
    for (const desired of this.#desired.pods) {
      const uid = desired.pod.metadata.uid!;
      const rejection = rejections.get(uid);
      const hold = held.get(uid);
      if (hold !== undefined) this.#blocked.hold(desired, hold);
      else if (rejection) this.#reject(desired, rejection, removing);
      else this.#syncPod(desired, resizes.get(uid), removing);
    }
    this.#workers.removeDescribed(this.#desired, this.#deps.toPodRevision);
    this.#removeOrphans();
    this.#statusStore.changed();
  }

  /** Gives an admitted pod its revision, unless it has to wait for a terminating pod. */
  #syncPod(desired: DesiredPod, pending: PendingResize | undefined, removing: PodWorker[]): void {
    const uid = desired.pod.metadata.uid!;
    const own = this.#workers.get(uid);
    const holder = own?.isRemoving ? own : this.#workers.findHolder(desired.pod, removing);
    if (holder) return this.#blocked.wait(uid, podFullName(holder.ref));
    const isTentative =
      (!own || own.revision?.isTentative) &&
      this.#cache.refOf(uid) !== undefined &&
      mayLackObjects(desired, this.#desired, this.#mayRemoveOrphans);
    let revision: PodRevision;
    try {
      revision = this.#deps.toPodRevision(pending ? { ...desired, pod: pending.pod } : desired, this.#desired);
      if (pending) revision = withPendingResize(revision, pending);
    } catch (error) {
      return this.#reject(desired, { reason: "Unsupported", message: (error as Error).message }, removing);
    }
    const worker = this.#workers.ensure(podRefOf(desired.pod), desired.sourceId ?? desired.source);
    worker.setRevision(isTentative ? toTentativeRevision(revision, worker.snapshot) : revision);
    this.#halts.apply(worker);
  }

  /** @param removing gets the worker of the pod, so that later pods of the same sync wait for its end */
  #reject(desired: DesiredPod, why: Rejection, removing: PodWorker[]): void {
    const uid = desired.pod.metadata.uid!;
    this.#blocked.reject(desired, why);
    const worker = this.#workers.get(uid);
    if (!worker || worker.isRemoving) return;
    worker.remove();
    removing.push(worker);
  }

  #onProgress(worker: PodWorker): void {
    if (!worker.revision) return;
    this.#revisions.observe(worker);
    this.#dependencies.wakeDependents(worker.revision.pod);
  }

  #onGone(uid: PodUID): void {
    this.#statusStore.forget(uid);
    this.#statusStore.noteSeen(this.#desired.pods, (other) => this.#workers.has(other));
    this.#deps.onPodGone?.(uid);
    // A successor, or a pod that waited for its host port, may start now.
    this.#reconcile();
  }

  #removeOrphans(): void {
    if (!this.#mayRemoveOrphans || !this.isSynced) return;
    this.#workers.removeOrphans(this.#desired, (uid) => this.rejection(uid) !== undefined);
  }
}

/** Order among pods that depend on each other: what holds a start, which workers a change concerns, what stops first. */
class DependencyOrder {
  readonly #desired: () => readonly DesiredPod[];
  readonly #workers: ReadonlyMap<PodUID, PodWorker>;
  #problems: ReadonlyMap<PodUID, WaitingReason> = new Map();
  /** Desired pods that have dependencies: few or none. */
  #dependents: readonly PodUID[] = [];

  constructor(desired: () => readonly DesiredPod[], workers: ReadonlyMap<PodUID, PodWorker>) {
    this.#desired = desired;
    this.#workers = workers;
  }

  /** To be called after each change of the desired pods. @param isComplete else a missing pod may only be late */
  check(isComplete: boolean): void {
    this.#dependents = this.#desired().flatMap(({ pod }) =>
      dependenciesOf(pod).length > 0 ? [pod.metadata.uid!] : [],
    );
    this.#problems = isComplete ? findDependencyProblems(this.#desired().map(({ pod }) => pod)) : new Map();
  }

  /** Why the pod may not start now. */
  findHold(uid: PodUID, pod: Pod, waitedMs: number): WaitingReason | undefined {
    return this.#problems.get(uid) ?? findHold(pod, () => this.#states(), waitedMs);
  }

  wakeDependents(pod: Pod): void {
    for (const uid of this.#dependents) {
      const worker = this.#workers.get(uid);
      const dependencies = worker?.revision ? dependenciesOf(worker.revision.pod) : [];
      if (dependencies.some((dependency) => isDependencyOn(dependency, pod))) worker?.wake();
    }
  }

  /** Workers of undesired pods that may stop now: a pod that others depend on goes after them. */
  removable(undesired: readonly PodWorker[]): PodWorker[] {
    const stopping = undesired.flatMap(({ revision }) => revision?.pod ?? []);
    return undesired.filter(({ revision }) => !revision || findStopsBefore(revision.pod, stopping).length === 0);
  }

  #states(): DependencyState[] {
    return this.#desired().map(({ pod }) => {
      const worker = this.#workers.get(pod.metadata.uid!);
      return { pod, status: worker?.status, rollout: worker?.rollout ?? "pending" };
    });
  }
}

/**
 * Halted pods: stopped, but not removed. Pods that are halted in the same turn stop in the reverse order of their
 * dependencies.
 */
class HaltedPods {
  /** Includes pods that have no worker yet. */
  readonly #requests = new Map<PodUID, [end: PodEnd, maxGraceSeconds: number]>();
  readonly #halting = new Map<PodWorker, Promise<void>>();
  /**
   * Containers that were running when their pod was halted. Their exit code says nothing about their work, so the next
   * start of the kubelet does not count it. Written before any of them can end.
   */
  readonly terminated: StoredMap<ContainerId, true, ContainerId[]>;
  readonly #exists: (id: ContainerId) => boolean;

  /** @param exists false drops a container of an earlier shutdown, so that the file does not grow */
  constructor(file: Persisted<ContainerId[]>, exists: (id: ContainerId) => boolean) {
    this.terminated = new StoredMap(
      file,
      (ids) => ids.map((id) => [id, true]),
      (ids) => [...ids.keys()],
    );
    this.#exists = exists;
  }

  /** @returns a promise that resolves when no container of the pod runs */
  async halt(uid: PodUID, worker: PodWorker | undefined, end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#requests.set(uid, [end, maxGraceSeconds]);
    if (!worker) return;
    for (const id of this.terminated.keys()) if (!this.#exists(id)) this.terminated.delete(id);
    for (const { id } of worker.snapshot.containers.filter(isRunning)) this.terminated.set(id, true);
    const halting = Promise.resolve().then(async () => {
      await Promise.all(this.#stopsBefore(worker));
      if (this.#requests.has(uid)) await worker.halt(end, maxGraceSeconds);
    });
    this.#halting.set(worker, halting);
    await halting.finally(() => this.#halting.delete(worker));
  }

  /** Halts a worker that was created after its pod was halted. */
  apply(worker: PodWorker): void {
    const request = this.#requests.get(worker.ref.uid);
    if (request && !this.#halting.has(worker)) void worker.halt(...request);
  }

  clear(): void {
    this.#requests.clear();
  }

  #stopsBefore({ revision }: PodWorker): Promise<void>[] {
    if (!revision) return [];
    const halting = [...this.#halting];
    const pods = halting.flatMap(([worker]) => worker.revision?.pod ?? []);
    const before = findStopsBefore(revision.pod, pods);
    return halting.filter(([worker]) => worker.revision && before.includes(worker.revision.pod)).map(([, end]) => end);
  }
}
