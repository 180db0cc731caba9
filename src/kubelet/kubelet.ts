import type { EphemeralContainer, Pod } from "../api/pod.ts";
import type { ObservedRuntime } from "../model/container-runtime.ts";
import type { DesiredPod, DesiredState, ObjectIndex, PodDeletion } from "../model/desired-pod.ts";
import { type PodFullName, type PodUID, podFullName } from "../model/identity.ts";
import type { Persisted } from "../model/persisted.ts";
import { type PodRef, podRefOf } from "../model/pod-ref.ts";
import type { ContainerId } from "../model/pod-snapshot.ts";
import type { Rejection } from "../plan/admission.ts";
import { computeSurplusDead, type DeadContainerPolicy } from "../plan/dead-container-limit.ts";
import {
  type DependencyState,
  dependenciesOf,
  findDependencyProblems,
  findHold,
  findStopsBefore,
  isDependencyOn,
} from "../plan/pod-dependencies.ts";
import type { PodEnd, WaitingReason } from "../plan/pod-plan.ts";
import type { CompletionStore } from "./completion-store.ts";
import type { PodRevision } from "./edit-rules.ts";
import { EphemeralContainerStore, type StoredEphemeralContainers } from "./ephemeral-container-store.ts";
import { type Eviction, EvictionStore, type StoredEvictions } from "./eviction/eviction-store.ts";
import { PodCache } from "./pod-cache.ts";
import { PodCleanupStore } from "./pod-cleanup-store.ts";
import type { PodManager } from "./pod-manager.ts";
import { type BlockedPod, PodStatusStore } from "./pod-status-store.ts";
import { PodWorker, type PodWorkerDeps } from "./pod-worker.ts";
import { RolloutManager, type StoredRollouts } from "./rollout-manager.ts";
import { RuntimeWatcher } from "./runtime-watcher.ts";
import { ShutdownTerminatedStore } from "./shutdown/shutdown-terminated-store.ts";

export interface KubeletDeps
  extends Pick<
    PodWorkerDeps,
    "clock" | "logger" | "recorder" | "services" | "probes" | "hostIp" | "imageNames" | "learnImage" | "work"
  > {
  runtime: ObservedRuntime;
  podManager: PodManager;
  /** Revision hashes, QoS class and the like of one pod. @throws Error when the pod cannot run on this engine */
  toPodRevision: (desired: DesiredPod, objects: ObjectIndex) => PodRevision;
  /** Which of the desired pods the node refuses. Pure. @param running pods that already have their place */
  admit: (pods: readonly DesiredPod[], running: ReadonlySet<PodUID>) => ReadonlyMap<PodUID, Rejection>;
  /** Whether two pods cannot run at the same time, e.g. by a common host port: the later one waits for the end of the other. */
  conflict: (a: Pod, b: Pod) => boolean;
  completions: CompletionStore;
  shutdownTerminated: Persisted<ContainerId[]>;
  podCleanup: Persisted<readonly PodRef[]>;
  evictions: Persisted<StoredEvictions>;
  oomVerdicts: Persisted<readonly ContainerId[]>;
  rollouts: Persisted<StoredRollouts>;
  ephemeralContainers: Persisted<StoredEphemeralContainers>;
  /** Edited pods are changed one at a time. */
  isSerialRollout?: boolean;
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

/** `DesiredPod.source` of pods of the local API server, which are known as soon as anything is. */
const API_SOURCE = "api";

/**
 * The sync loop: turns the desired state and what the engine reports into orders for pod workers, one worker per pod. A
 * pod whose name or host port is still held by a terminating pod waits for it.
 */
export class Kubelet {
  readonly #deps: KubeletDeps;
  readonly #cache: PodCache;
  readonly #watcher: RuntimeWatcher;
  readonly #workers = new Map<PodUID, PodWorker>();
  readonly #blocked = new Map<PodUID, BlockedPod>();
  readonly #cleanup: PodCleanupStore;
  /** Pods of unknown sources that were reported. */
  readonly #unclaimed = new Set<PodUID>();
  /** Refused although admitted: until an edit, or until they are readmitted. */
  readonly #evictions: EvictionStore;
  /** Halted pods, including those that have no worker yet. */
  readonly #halts = new Map<PodUID, [end: PodEnd, maxGraceSeconds: number]>();
  #dependencyProblems: ReadonlyMap<PodUID, WaitingReason> = new Map();
  readonly #halting = new Map<PodWorker, Promise<void>>();
  readonly #shutdownTerminated: ShutdownTerminatedStore;
  readonly #statusStore: PodStatusStore;
  readonly #rollouts: RolloutManager;
  readonly #ephemeral: EphemeralContainerStore;
  /** Arguments of the last {@link setDesired}. */
  #submitted: [state: DesiredState, isComplete: boolean] | undefined;
  readonly #listeners = new Set<() => void>();
  #isStopped = false;
  #mayRemoveOrphans = false;
  #revision = 0;
  #podList: readonly Pod[] | undefined;

  constructor(deps: KubeletDeps) {
    const { clock, logger, runtime, relistPeriodMs } = deps;
    this.#deps = deps;
    this.#shutdownTerminated = new ShutdownTerminatedStore(deps.shutdownTerminated);
    this.#statusStore = new PodStatusStore(clock);
    this.#rollouts = new RolloutManager({
      clock,
      logger,
      recorder: deps.recorder,
      file: deps.rollouts,
      isSerial: deps.isSerialRollout ?? false,
      onChange: () => this.#submitted && !this.#isStopped && this.setDesired(...this.#submitted),
    });
    this.#ephemeral = new EphemeralContainerStore(deps.ephemeralContainers);
    this.#cleanup = new PodCleanupStore(deps.podCleanup);
    this.#evictions = new EvictionStore(deps.evictions);
    this.#cache = new PodCache({
      runtime,
      clock,
      oomVerdicts: deps.oomVerdicts,
      onChange: (uid) => this.#onObserved(uid),
    });
    this.#watcher = new RuntimeWatcher({
      clock,
      logger,
      runtime,
      cache: this.#cache,
      relistPeriodMs,
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
      onHealthChange: () => this.#changed(),
    });
  }

  /** Follows the engine from now on. No pod is touched before all containers were inspected once. */
  start(): void {
    this.#watcher.start();
  }

  /**
   * Sets what this node should run from now on. The state is complete: a pod that is not in it is removed, within the
   * grace period of `state.deletions` if it has an entry there, else within its own.
   * @param isComplete every source has answered: our containers that belong to no pod are orphans and are removed
   */
  setDesired(submitted: DesiredState, isComplete: boolean): void {
    this.#submitted = [submitted, isComplete];
    if (isComplete) {
      const desired = new Set(submitted.pods.map(({ pod }) => pod.metadata.uid));
      this.#ephemeral.keep((uid) => desired.has(uid) || this.#workers.has(uid));
    }
    const state = this.#ephemeral.apply(this.#rollouts.apply(submitted, isComplete));
    this.#deps.podManager.set(state);
    this.#podList = undefined;
    this.#statusStore.noteSeen(state.pods, (uid) => this.#workers.has(uid));
    this.#mayRemoveOrphans = isComplete;
    // Before every source has answered a missing pod may only be late.
    this.#dependencyProblems = isComplete ? findDependencyProblems(state.pods.map(({ pod }) => pod)) : new Map();
    const isOver = ([uid, { revision }]: [PodUID, Eviction]) => {
      const desired = this.#desiredOf(uid);
      return desired ? desired.revision !== revision : isComplete;
    };
    this.#evictions.delete([...this.#evictions.all].filter(isOver).map(([uid]) => uid));
    this.#reconcile();
  }

  /**
   * Stops a desired pod and removes it with its volumes. It counts as refused for this reason, with that status, until
   * until it is edited or {@link readmit}ted.
   * @param maxGraceSeconds limits its own grace period
   */
  evict(uid: PodUID, why: Rejection, maxGraceSeconds: number): void {
    const desired = this.#desiredOf(uid);
    if (!desired) return;
    const since = this.#deps.clock.now();
    this.#evictions.add(uid, { ...why, revision: desired.revision, since });
    this.#blocked.set(uid, { rejection: why, since });
    this.#workers.get(uid)?.limitGrace(maxGraceSeconds);
    this.#reconcile();
  }

  /** Evicted pods may run again if the node admits them. Without any UID the node only reconsiders its refusals. */
  readmit(uids: Iterable<PodUID>): void {
    this.#evictions.delete(uids);
    this.#reconcile();
  }

  /**
   * Stops a desired pod without removing anything of it; its status is `end` until {@link resume}.
   * @returns a promise that resolves when nothing of it runs any more
   */
  async halt(uid: PodUID, end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#halts.set(uid, [end, maxGraceSeconds]);
    const worker = this.#workers.get(uid);
    const running = (worker?.snapshot.containers ?? []).filter(({ state }) => state === "running");
    this.#shutdownTerminated.add(
      running.map(({ id }) => id),
      (id) => !this.isSynced || this.#cache.has(id),
    );
    if (!worker) return;
    // Pods halted in the same turn stop in the reverse order of their dependencies.
    const halting = Promise.resolve().then(async () => {
      await Promise.all(this.#haltsBefore(worker));
      if (this.#halts.has(uid)) await worker.halt(end, maxGraceSeconds);
    });
    this.#halting.set(worker, halting);
    await halting.finally(() => this.#halting.delete(worker));
  }

  #haltsBefore({ revision }: PodWorker): Promise<void>[] {
    if (!revision) return [];
    const halting = [...this.#halting];
    const pods = halting.flatMap(([worker]) => worker.revision?.pod ?? []);
    const before = findStopsBefore(revision.pod, pods);
    return halting.filter(([worker]) => worker.revision && before.includes(worker.revision.pod)).map(([, end]) => end);
  }

  /** Halted pods run again, and pods refused in the meantime are reconsidered. */
  resume(): void {
    this.#halts.clear();
    for (const worker of this.#workers.values()) worker.resume();
    this.#reconcile();
  }

  /** Desired pods that were evicted, by this process or an earlier one. */
  get evicted(): ReadonlyMap<PodUID, Rejection> {
    return this.#evictions.all;
  }

  /** The kernel, not the engine, reports that it killed a process of this container for lack of memory. */
  noteOom(id: ContainerId): void {
    this.#cache.handleEvent({ id, action: "oom" }).catch(() => {});
  }

  /** Removes dead containers beyond these limits, over all pods. @returns how many are removed */
  removeSurplusDead(policy: DeadContainerPolicy): number {
    const dead = [...this.#workers.values()].flatMap((worker) => worker.deadContainers());
    const surplus = computeSurplusDead(dead, policy, this.#deps.clock.monotonicMs());
    for (const container of surplus) this.#workers.get(container.podUid)?.removeDead(container);
    return surplus.length;
  }

  /**
   * Gives a desired pod these ephemeral containers: new ones are started in its namespaces, once.
   * @param containers all of them, those it already has included
   */
  setEphemeralContainers(uid: PodUID, containers: readonly EphemeralContainer[]): void {
    this.#ephemeral.set(uid, containers);
    if (this.#submitted) this.setDesired(...this.#submitted);
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

  /** Desired pods as the sources have them. */
  get desiredPods(): readonly DesiredPod[] {
    return this.#desired.pods;
  }

  /** Grows with every change of what {@link pods} returns. */
  get podsRevision(): number {
    return this.#revision;
  }

  /**
   * Every desired pod and every pod that still terminates, with its status, by namespace and name. An unchanged pod is
   * the same object as before.
   */
  pods(): readonly Pod[] {
    this.#podList ??= this.#listPods();
    return this.#podList;
  }

  worker(uid: PodUID): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  workers(): Iterable<PodWorker> {
    return this.#workers.values();
  }

  rejection(uid: PodUID): Rejection | undefined {
    const blocked = this.#blocked.get(uid);
    return blocked && "rejection" in blocked ? blocked.rejection : undefined;
  }

  /** Why the engine cannot be followed; undefined while it can. */
  get runtimeError(): string | undefined {
    return this.#watcher.runtimeError;
  }

  /** All containers were inspected at least once. */
  get isSynced(): boolean {
    return this.#watcher.isSynced;
  }

  /** Calls back after every change of a status, of the set of pods, or of the engine's health. @returns unsubscribes */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get #desired(): DesiredState {
    return this.#deps.podManager.state;
  }

  #desiredOf(uid: PodUID): DesiredPod | undefined {
    return this.#deps.podManager.get(uid);
  }

  #listPods(): Pod[] {
    const desired = this.#desired.pods.map(({ pod }) => {
      const uid = pod.metadata.uid!;
      return this.#statusStore.publish(pod, {
        blocked: this.#blocked.get(uid),
        workerStatus: this.#workers.get(uid)?.status,
      });
    });
    const uids = new Set(desired.map(({ metadata }) => metadata.uid!));
    const terminating = [...this.#workers].flatMap(([uid, { revision, status, deletion }]) =>
      revision && !uids.has(uid)
        ? this.#statusStore.publish(revision.pod, { blocked: undefined, workerStatus: status, deletion })
        : [],
    );
    return terminating.length === 0 ? desired : [...desired, ...terminating].sort(byNamespaceAndName);
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
    this.#removeUndesired(desiredUids);
    const running = new Set([...this.#workers].filter(([, { isRemoving }]) => !isRemoving).map(([uid]) => uid));
    for (const uid of this.#cache.uids()) if (desiredUids.has(uid)) running.add(uid);
    const evictions = this.#evictions.all;
    for (const uid of evictions.keys()) running.delete(uid);
    const admissible = this.#desired.pods.filter(({ pod }) => !evictions.has(pod.metadata.uid!));
    const rejections = new Map([...this.#deps.admit(admissible, running), ...evictions]);
    const before = new Map(this.#blocked);
    this.#blocked.clear();
    for (const desired of this.#desired.pods) {
      const rejection = rejections.get(desired.pod.metadata.uid!);
      if (rejection) this.#reject(desired, rejection, before.get(desired.pod.metadata.uid!));
      else this.#syncPod(desired, before.get(desired.pod.metadata.uid!));
    }
    this.#removeOrphans();
    this.#cleanup.save();
    this.#changed();
  }

  /** Removes pods that are no longer desired; a pod that others depend on goes after them. */
  #removeUndesired(desiredUids: ReadonlySet<PodUID>): void {
    const undesired = [...this.#workers].filter(([uid]) => !desiredUids.has(uid));
    const stopping = undesired.flatMap(([, { revision }]) => revision?.pod ?? []);
    for (const [uid, worker] of undesired) {
      const pod = worker.revision?.pod;
      if (pod && findStopsBefore(pod, stopping).length > 0) continue;
      this.#remove(worker, this.#desired.deletions?.get(uid));
    }
  }

  #remove(worker: PodWorker, deletion?: PodDeletion): void {
    if (deletion?.graceSeconds !== undefined) worker.limitGrace(deletion.graceSeconds, true);
    worker.remove();
  }

  /** Gives an admitted pod its revision, unless it has to wait for a terminating pod. */
  #syncPod(desired: DesiredPod, before: BlockedPod | undefined): void {
    const uid = desired.pod.metadata.uid!;
    const own = this.#workers.get(uid);
    const holder = own?.isRemoving ? own : this.#findHolder(desired.pod, uid, podFullName(desired.pod.metadata));
    if (holder) {
      this.#blocked.set(uid, { waitsFor: podFullName(holder.ref) });
      return;
    }
    let revision: PodRevision;
    try {
      revision = this.#deps.toPodRevision(desired, this.#desired);
    } catch (error) {
      return this.#reject(desired, { reason: "Unsupported", message: (error as Error).message }, before);
    }
    const ref = podRefOf(desired.pod);
    const worker = own ?? this.#createWorker(ref);
    this.#cleanup.add(ref, desired.sourceId ?? desired.source);
    worker.setRevision(revision);
    const halt = this.#halts.get(uid);
    if (halt && !this.#halting.has(worker)) void worker.halt(...halt);
  }

  #reject(desired: DesiredPod, why: Rejection, before: BlockedPod | undefined): void {
    const { clock, logger, recorder } = this.#deps;
    const ref = podRefOf(desired.pod);
    const isKnown = before && "rejection" in before && before.rejection.message === why.message;
    if (!isKnown) {
      logger.error(`Pod "${podFullName(ref)}" is refused: ${why.reason}: ${why.message}`);
      // The status has "Pod " before the message of the event. Source: the kubelet's rejectPod.
      recorder.record(ref, { type: "Warning", reason: why.reason, message: why.message.replace(/^Pod /, "") });
    }
    const since = isKnown ? before.since : (this.#evictions.all.get(ref.uid)?.since ?? clock.now());
    this.#blocked.set(ref.uid, { rejection: why, since });
    this.#workers.get(ref.uid)?.remove();
  }

  /** The terminating pod that still holds the name or a host port of this one. */
  #findHolder(pod: Pod, uid: PodUID, fullName: PodFullName): PodWorker | undefined {
    for (const [otherUid, worker] of this.#workers) {
      if (otherUid === uid || !worker.isRemoving) continue;
      if (podFullName(worker.ref) === fullName) return worker;
      if (worker.revision && this.#deps.conflict(pod, worker.revision.pod)) return worker;
    }
    return undefined;
  }

  #createWorker(ref: PodRef): PodWorker {
    const { completions } = this.#deps;
    const { uid } = ref;
    const worker = new PodWorker(
      ref,
      {
        ...this.#deps,
        cache: this.#cache,
        shutdownTerminated: this.#shutdownTerminated.ids,
        desiredSinceMs: () => this.#statusStore.desiredSinceMs(uid),
        findHold: (pod, waitedMs) =>
          this.#dependencyProblems.get(uid) ?? findHold(pod, () => this.#dependencyStates(), waitedMs),
        onStatus: (changed) => {
          this.#changed();
          this.#onProgress(changed);
        },
        onRollout: (changed) => this.#onProgress(changed),
        onCompletion: (_, completion) => completions.set(uid, completion),
        onGone: () => this.#onGone(uid),
      },
      completions.get(uid),
    );
    this.#workers.set(uid, worker);
    this.#cleanup.add(ref);
    return worker;
  }

  #dependencyStates(): DependencyState[] {
    return this.#desired.pods.map(({ pod }) => {
      const worker = this.#workers.get(pod.metadata.uid!);
      return { pod, status: worker?.status, rollout: worker?.rollout ?? "pending" };
    });
  }

  #onProgress({ revision, status, rollout }: PodWorker): void {
    if (!revision) return;
    this.#rollouts.observe({ pod: revision.pod, status, rollout });
    for (const worker of this.#workers.values()) {
      const dependencies = worker.revision ? dependenciesOf(worker.revision.pod) : [];
      if (dependencies.some((dependency) => isDependencyOn(dependency, revision.pod))) worker.wake();
    }
  }

  #onGone(uid: PodUID): void {
    this.#workers.delete(uid);
    this.#cleanup.delete(uid);
    this.#statusStore.forget(uid);
    this.#statusStore.noteSeen(this.#desired.pods, (other) => this.#workers.has(other));
    this.#deps.completions.set(uid, undefined);
    this.#deps.onPodGone?.(uid);
    // A successor, or a pod that waited for its host port, may start now.
    this.#reconcile();
  }

  /** Removes our containers, and what is left of pods without containers, that belong to no desired pod. */
  #removeOrphans(): void {
    if (!this.#mayRemoveOrphans || !this.isSynced) return;
    const desiredUids = new Set(this.#desired.pods.map(({ pod }) => pod.metadata.uid));
    const seen = [...this.#cache.uids()].flatMap((uid) => this.#cache.refOf(uid) ?? []);
    for (const ref of [...seen, ...this.#cleanup.refs()]) {
      const { uid } = ref;
      if (this.#workers.has(uid) || (desiredUids.has(uid) && !this.rejection(uid))) continue;
      const isRejected = this.rejection(uid) !== undefined;
      if (!isRejected && !this.#isDeleted(uid)) {
        this.#reportUnclaimed(ref);
        continue;
      }
      const why = isRejected ? "the node refuses it" : "no manifest describes it";
      this.#deps.logger.info(`Removing pod "${podFullName(ref)}": ${why}`);
      this.#remove(this.#createWorker(ref), this.#desired.deletions?.get(uid));
    }
  }

  /** Whether the source of a pod that is not desired was read: only then its absence is known. */
  #isDeleted(uid: PodUID): boolean {
    const { completeSources, deletions } = this.#desired;
    if (completeSources === undefined || deletions?.has(uid)) return true;
    const sourceId = this.#cleanup.sourceOf(uid);
    return sourceId === API_SOURCE || (sourceId !== undefined && completeSources.has(sourceId));
  }

  #reportUnclaimed(ref: PodRef): void {
    if (this.#unclaimed.has(ref.uid)) return;
    this.#unclaimed.add(ref.uid);
    const name = podFullName(ref);
    this.#deps.logger.warn(
      `Pod "${name}" keeps running unsupervised: its manifest and its source are not known; ` +
        `to remove it, stop this kubelet and run "kubelet-ts delete pod ${ref.name} --namespace=${ref.namespace}"`,
    );
  }

  #changed(): void {
    this.#revision++;
    this.#podList = undefined;
    for (const listener of this.#listeners) listener();
  }
}

function byNamespaceAndName({ metadata: a }: Pod, { metadata: b }: Pod): number {
  const [left, right] = [podFullName(a), podFullName(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
