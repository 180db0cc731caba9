import type { EphemeralContainer, Pod } from "../base/api/pod.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import type { DesiredPod, DesiredState } from "../base/model/desired-state.ts";
import { type PodUID, podFullName, podRefOf } from "../base/model/pod.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import type { Rejection } from "../plan/admission.ts";
import type { DeadContainerPolicy } from "../plan/dead-container-limit.ts";
import type { PodEnd } from "../plan/pod-plan.ts";
import type { PendingResize } from "../plan/pod-resources.ts";
import { BlockedPods, decideAdmission } from "./blocked-pods.ts";
import { mayLackObjects, type PodRevision, toTentativeRevision, withPendingResize } from "./edit-rules.ts";
import { PendingEdits } from "./pending-edits.ts";
import type { PodCache } from "./pod-cache.ts";
import { PodStatusStore } from "./pod-status-store.ts";
import type { PodWorker } from "./pod-worker.ts";
import { PodWorkers, type PodWorkersDeps } from "./pod-workers.ts";
import type { RevisionSelector } from "./rollout-manager.ts";
import type { RuntimeWatcher } from "./runtime-watcher.ts";

interface KubeletDeps extends Omit<PodWorkersDeps, "statuses"> {
  /** Follows the engine; its cache is that of the workers. */
  watcher: RuntimeWatcher;
  revisions: RevisionSelector;
  /** Dead containers on the whole node; absent: no limit. */
  deadContainers?: DeadContainerPolicy;
}

/** The state of every pod until all containers were inspected: it may run since before this process. */
const ENGINE_AWAITED = {
  reason: "EngineUnavailable",
  message: "waits for the Docker engine: whether it runs is not known before that has answered",
};

/** So many pods whose revision has changed are synced together, the others after them in intervals. */
const SYNCS_AT_ONCE = 5;
const SYNC_INTERVAL_MS = 20;

/**
 * The sync loop: turns the desired state and what the engine reports into orders for pod workers, one worker per pod. A
 * pod whose name or host port is still held by a terminating pod waits for it.
 */
export class Kubelet {
  /** Pods that were removed completely. */
  readonly podsGone = new Listeners<PodUID>();
  readonly workers: ReadonlyMap<PodUID, PodWorker>;
  readonly #deps: KubeletDeps;
  readonly #cache: PodCache;
  readonly #podWorkers: PodWorkers;
  readonly #blocked: BlockedPods;
  readonly #statusStore: PodStatusStore;
  readonly #edits: PendingEdits;
  /** Arguments of the last {@link setDesired}. */
  #submitted: [state: DesiredState, isComplete: boolean] | undefined;
  /** Pods with another revision in this pass of {@link #reconcile}. */
  #changed = 0;
  #isStopped = false;
  #mayRemoveOrphans = false;

  constructor(deps: KubeletDeps) {
    const { worker, watcher, revisions, deadContainers } = deps;
    this.#deps = deps;
    this.#cache = worker.cache;
    this.#statusStore = new PodStatusStore(worker.clock);
    this.#blocked = new BlockedPods(worker);
    this.#podWorkers = new PodWorkers({ ...deps, statuses: this.#statusStore });
    this.workers = this.#podWorkers.byUid;
    this.#edits = new PendingEdits({ ...worker, workers: this.workers });
    revisions.changes.add(() => this.refresh());
    this.#edits.changes.add(() => this.#reconcile());
    this.#cache.changes.add((uid) => this.#onObserved(uid));
    this.#cache.removals.add((container) => worker.services.containerGone(container));
    this.#podWorkers.gone.add((uid) => this.#onGone(uid));
    this.#podWorkers.progress.add((one) => revisions.observe(one));
    this.#podWorkers.progress.add((one) => this.#edits.observe(one));
    watcher.resyncs.add(() => {
      for (const one of this.workers.values()) one.retryNow();
      this.#reconcile();
    });
    watcher.periodicLists.add(() => {
      this.#removeOrphans();
      this.#podWorkers.forgetRemoved();
      if (deadContainers) this.removeSurplusDead(deadContainers);
    });
    watcher.healthChanges.add(() => this.#statusStore.changed());
  }

  /** Follows the engine from now on. No pod is touched before all containers were inspected once. */
  start(): void {
    this.#deps.watcher.start();
  }

  /**
   * Sets what this node should run from now on. The state is complete: a pod that is not in it is removed, within the
   * grace period of `state.deletions` if it has an entry there, else within its own.
   * @param isComplete every source was read: our containers that belong to no pod are orphans and are removed
   */
  setDesired(submitted: DesiredState, isComplete: boolean): void {
    this.#submitted = [submitted, isComplete];
    const state = this.#deps.revisions.select(submitted, isComplete, (uid) => this.workers.has(uid));
    this.#deps.podManager.state = state;
    this.#statusStore.noteSeen(state.pods, (uid) => this.workers.has(uid));
    this.#mayRemoveOrphans = isComplete;
    this.#podWorkers.dependencies.check(isComplete);
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
    const worker = this.workers.get(uid);
    void this.#blocked.evict(desired, why, worker?.status?.startTime).then(() => {
      if (this.#blocked.evictions.has(uid)) worker?.limitGrace(maxGraceSeconds);
      this.#reconcile();
    });
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
    await this.#podWorkers.halts.halt(uid, this.workers.get(uid), end, maxGraceSeconds);
  }

  /** Halted pods run again, and pods refused in the meantime are reconsidered. */
  resume(): void {
    this.#podWorkers.halts.clear();
    for (const worker of this.workers.values()) worker.resume();
    this.#reconcile();
  }

  /**
   * Stops the containers of a pod within their grace period and starts them in a new sandbox.
   * @returns why it cannot, behind the name of the pod; undefined: it has begun
   */
  restartPod(uid: PodUID): string | undefined {
    const worker = this.workers.get(uid);
    return worker ? worker.restart() : "is not started on this node";
  }

  /** Desired pods that were evicted, by this process or an earlier one. */
  get evicted(): ReadonlyMap<PodUID, Rejection> {
    return this.#deps.worker.records.evictions;
  }

  /** The kernel, not the engine, reports that it killed a process of this container for lack of memory. */
  noteOom(id: ContainerId): void {
    this.#cache.handleEvent({ id, action: "oom" }).catch(() => {});
  }

  /** Removes dead containers beyond these limits, over all pods. @returns how many are removed */
  removeSurplusDead(policy: DeadContainerPolicy): number {
    return this.#podWorkers.removeSurplusDead(policy);
  }

  /**
   * Gives a desired pod these ephemeral containers: new ones are started in its namespaces, once.
   * @param containers all of them, those it already has included
   * @returns a promise that resolves when that is stored, or could not be
   */
  setEphemeralContainers(uid: PodUID, containers: readonly EphemeralContainer[]): Promise<void> {
    return this.#deps.revisions.setEphemeralContainers(uid, containers);
  }

  /** It was told what to run. */
  get hasDesired(): boolean {
    return this.#submitted !== undefined;
  }

  /** Every desired pod is known, and all containers were inspected. */
  get isComplete(): boolean {
    return this.#mayRemoveOrphans && this.isSynced;
  }

  /** Releases everything; pods keep running. */
  stop(): void {
    this.#isStopped = true;
    this.#deps.watcher.stop();
    for (const worker of this.workers.values()) worker.detach();
    this.#edits.stop();
  }

  get desiredPods(): readonly DesiredPod[] {
    return this.#desired.pods;
  }

  /**
   * Every desired pod and every pod that still terminates, with its status, by namespace and name. An unchanged pod is
   * the same object as before. How a pod ended in an earlier process, or that it was ready there, is known before the engine
   * has answered: its phase does not go back.
   */
  pods(): readonly Pod[] {
    const { completions, conditions, evictions } = this.#deps.worker.records;
    const awaited = (uid: PodUID) => {
      const evicted = evictions.get(uid);
      if (evicted) return { rejection: evicted, since: new Date(evicted.since) };
      const last = conditions.get(uid) ?? [];
      const wasReady = last.some(({ type, status }) => type === "ContainersReady" && status === "True");
      const unknown = last.map((it) => (it.type.endsWith("Ready") ? { ...it, status: "Unknown" as const } : it));
      const running = wasReady && { phase: "Running" as const, conditions: unknown };
      return { waits: completions.get(uid)?.status ?? { ...ENGINE_AWAITED, ...running } };
    };
    const blockedOf = (uid: PodUID) => (this.isSynced ? this.#blocked.get(uid) : awaited(uid));
    return this.#statusStore.list(this.desiredPods, blockedOf, this.workers);
  }

  /** All containers were inspected, and nothing is left of this pod: no container, volume or cgroup. */
  isGone(uid: PodUID): boolean {
    return this.isSynced && !this.workers.has(uid) && !this.#podWorkers.hasLeftovers(uid) && !this.#cache.refOf(uid);
  }

  /** It ran, or was about to, and no list of containers has shown that it is gone. */
  mayRun({ namespace, name }: { namespace?: string | undefined; name: string }): boolean {
    const left = [...this.#deps.worker.records.cleanup.values()].filter(({ isRemoved }) => !isRemoved);
    return !this.isSynced && left.some((pod) => pod.namespace === namespace && pod.name === name);
  }

  /** The status of this pod tells what the engine has of it: that of a pod which runs since before is not yet Pending. */
  isObserved(uid: PodUID): boolean {
    return this.#blocked.get(uid) !== undefined || this.workers.get(uid)?.status !== undefined;
  }

  rejection(uid: PodUID): Rejection | undefined {
    return this.#blocked.rejection(uid);
  }

  /** It is not assigned to the node, and uses nothing of it. */
  isHeld(uid: PodUID): boolean {
    return "unschedulable" in (this.#blocked.get(uid) ?? {});
  }

  /** Why the engine cannot be followed; undefined while it can. */
  get runtimeError(): string | undefined {
    return this.#deps.watcher.runtimeError;
  }

  /** All containers were inspected at least once. */
  get isSynced(): boolean {
    return this.#deps.watcher.isSynced;
  }

  /**
   * Calls back after every change of a status, of the set of pods, or of the engine's health.
   * @param listener gets the UID of the only pod that changed; undefined: anything may have
   * @returns unsubscribes
   */
  onChange(listener: (uid: PodUID | undefined) => void): () => void {
    return this.#statusStore.changes.add(listener);
  }

  get #desired(): DesiredState {
    return this.#deps.podManager.state;
  }

  #onObserved(uid: PodUID): void {
    const worker = this.workers.get(uid);
    if (this.#edits.isAssumed(uid)) this.#reconcile();
    if (worker) worker.wake();
    else if (this.isSynced) this.#removeOrphans();
  }

  /** Brings the set of workers in line with the desired state. */
  #reconcile(): void {
    if (this.#isStopped) return;
    if (!this.isSynced) return this.#statusStore.changed();
    const desiredUids = new Set(this.#desired.pods.map(({ pod }) => pod.metadata.uid!));
    const undesired = [...this.workers.values()].filter(({ ref }) => !desiredUids.has(ref.uid));
    for (const worker of this.#podWorkers.dependencies.removable(undesired))
      this.#podWorkers.remove(worker, this.#desired);
    this.#podWorkers.removePredecessors(this.#desired.pods);
    if (this.#mayRemoveOrphans) this.#edits.prune(desiredUids);
    const { held, rejections, resizes, refusedEdits } = decideAdmission({
      desired: this.#desired,
      workers: this.workers,
      observed: this.#cache.uids(),
      evictions: this.#blocked.evictions,
      earlierOf: (desired) => this.#earlierOf(desired),
      isComplete: this.#mayRemoveOrphans,
      rules: this.#deps.rules,
    });
    this.#blocked.begin();
    this.#changed = 0;
    const removing = this.#podWorkers.removing();
    for (const desired of this.#desired.pods) {
      const uid = desired.pod.metadata.uid!;
      const rejection = rejections.get(uid);
      const hold = held.get(uid);
      if (hold !== undefined) this.#blocked.hold(desired, hold);
      else if (rejection) this.#reject(desired, rejection, removing);
      else if (refusedEdits.has(uid)) this.#keep(desired, refusedEdits.get(uid)!);
      else this.#syncPod(desired, resizes.get(uid), removing);
    }
    this.#podWorkers.removeDescribed(this.#desired);
    this.#removeOrphans();
    this.#statusStore.changed();
  }

  /** A pod whose edit the node refuses keeps running with its earlier manifest. */
  #keep(desired: DesiredPod, why: Rejection): void {
    const worker = this.#podWorkers.ensure(podRefOf(desired.pod), desired.sourceId ?? desired.source);
    const before = this.#earlierOf(desired) ?? desired;
    this.#setRevision(worker, this.#edits.refuse(worker, this.#deps.rules.toPodRevision(before, this.#desired), why));
  }

  #earlierOf(desired: DesiredPod): DesiredPod | undefined {
    const ref = podRefOf(desired.pod);
    return this.#edits.earlierOf(desired, this.workers.get(ref.uid), this.#cache.get(ref));
  }

  /** Gives an admitted pod its revision, unless it has to wait for a terminating pod. */
  #syncPod(desired: DesiredPod, pending: PendingResize | undefined, removing: PodWorker[]): void {
    const uid = desired.pod.metadata.uid!;
    const own = this.workers.get(uid);
    const holder = own?.isRemoving ? own : this.#podWorkers.findHolder(desired.pod, removing);
    if (holder) return this.#blocked.wait(uid, podFullName(holder.ref));
    const isTentative =
      (!own || own.revision?.isTentative) &&
      this.#cache.refOf(uid) !== undefined &&
      mayLackObjects(desired, this.#desired, this.#mayRemoveOrphans);
    // An edit that waited before this process started waits on until it can be judged.
    const before = isTentative ? this.#earlierOf(desired) : undefined;
    let revision: PodRevision;
    try {
      const manifest = before ?? (pending ? { ...desired, pod: pending.pod } : desired);
      revision = this.#deps.rules.toPodRevision(manifest, this.#desired);
      if (pending) revision = withPendingResize(revision, pending);
    } catch (error) {
      const why = { reason: "Unsupported", message: (error as Error).message };
      return this.#earlierOf(desired) ? this.#keep(desired, why) : this.#reject(desired, why, removing);
    }
    if (!this.#podWorkers.hasLeftovers(uid)) this.#blocked.assign(desired);
    const worker = this.#podWorkers.ensure(podRefOf(desired.pod), desired.sourceId ?? desired.source);
    const next = isTentative ? toTentativeRevision(revision, worker.snapshot) : revision;
    const toRevision = (kept: DesiredPod) => this.#deps.rules.toPodRevision(kept, this.#desired);
    this.#setRevision(worker, this.#edits.select(worker, next, toRevision));
  }

  #setRevision(worker: PodWorker, revision: PodRevision): void {
    const afterMs = SYNC_INTERVAL_MS * Math.floor(this.#changed / SYNCS_AT_ONCE);
    if (worker.setRevision(revision, afterMs)) this.#changed++;
    this.#podWorkers.halts.apply(worker);
  }

  /** @param removing gets the worker of the pod, so that later pods of the same sync wait for its end */
  #reject(desired: DesiredPod, why: Rejection, removing: PodWorker[]): void {
    const uid = desired.pod.metadata.uid!;
    this.#blocked.reject(desired, why);
    const worker = this.workers.get(uid);
    if (!worker || worker.isRemoving) return;
    worker.remove();
    removing.push(worker);
  }

  #onGone(uid: PodUID): void {
    this.#statusStore.forget(uid);
    this.#statusStore.noteSeen(this.#desired.pods, (other) => this.workers.has(other));
    this.podsGone.emit(uid);
    // A successor, or a pod that waited for its host port, may start now.
    this.#reconcile();
  }

  #removeOrphans(): void {
    if (!this.#mayRemoveOrphans || !this.isSynced) return;
    this.#podWorkers.removeOrphans(this.#desired, (uid) => this.rejection(uid) !== undefined);
  }
}
