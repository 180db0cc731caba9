import type { Pod } from "../api/pod.ts";
import type { ObservedRuntime } from "../model/container-runtime.ts";
import type { DesiredPod, DesiredState, ObjectIndex } from "../model/desired-pod.ts";
import { type PodFullName, type PodUID, podFullName } from "../model/identity.ts";
import type { ContainerId } from "../model/pod-snapshot.ts";
import { computeSurplusDead, type DeadContainerPolicy } from "../plan/dead-container-limit.ts";
import type { PodEnd } from "../plan/pod-plan.ts";
import { type Eviction, Evictions, type EvictionsFile } from "./eviction/evictions.ts";
import { type OomVerdictsFile, PodCache } from "./pod-cache.ts";
import { type PodCleanupFile, PodCleanupStore } from "./pod-cleanup-store.ts";
import type { PodManager } from "./pod-manager.ts";
import type { Completion, PodRevision } from "./pod-revision.ts";
import { type BlockedPod, PodStatusStore } from "./pod-status-store.ts";
import { PodWorker, type PodWorkerDeps } from "./pod-worker.ts";

/** Why the node will not run a pod, in the words of its status. */
export interface Rejection {
  reason: string;
  message: string;
}

export interface KubeletDeps
  extends Pick<
    PodWorkerDeps,
    "clock" | "logger" | "recorder" | "services" | "probes" | "hostIp" | "imageNames" | "learnImage" | "work"
  > {
  runtime: ObservedRuntime;
  /** Holds what {@link Kubelet.setDesired} was told last. */
  podManager: PodManager;
  /** Revision hashes, QoS class and the like of one pod. @throws when the pod cannot be done on this engine */
  toPodRevision: (desired: DesiredPod, objects: ObjectIndex) => PodRevision;
  /**
   * Which of the wanted pods the node refuses. Pure; `running` are the pods that already have their place.
   */
  admit: (pods: readonly DesiredPod[], running: ReadonlySet<PodUID>) => ReadonlyMap<PodUID, Rejection>;
  /** Whether two pods cannot run at the same time (a host port of both): the later one waits for the end of the other. */
  conflict: (a: Pod, b: Pod) => boolean;
  completions: CompletionStore;
  shutdownTerminated: ShutdownTerminatedFile;
  podCleanup: PodCleanupFile;
  evictions: EvictionsFile;
  oomVerdicts: OomVerdictsFile;
  /** A pod was removed, all of it. */
  onPodGone?: (uid: PodUID) => void;
  /** The engine says that a container, or a sandbox, ran out of memory. */
  onOom?: (id: ContainerId) => void;
  /** Called after each list of all containers that succeeded. */
  onRelist?: (durationMs: number) => void;
  /** Longest time between two lists of all containers. Unit: milliseconds. */
  relistPeriodMs: number;
  /** Dead containers on the whole node; absent: no limit. */
  deadContainers?: DeadContainerPolicy;
}

/** Remembers how pods ended, across our restarts and those of the machine. */
export interface CompletionStore {
  get(uid: PodUID): Completion | undefined;
  /** undefined forgets. */
  set(uid: PodUID, completion: Completion | undefined): void;
}

/** Containers that ran when a shutdown of the machine ended them: kept from one process to the next. */
export interface ShutdownTerminatedFile {
  read(): readonly ContainerId[] | undefined;
  write(all: ContainerId[]): void;
}

/** Pause after a list that failed. The event stream reconnects by itself; this is for an engine that answers badly. */
const RETRY_RELIST_MS = 5_000;

/** A look at all containers that takes longer is worth a word: everything else is as slow. */
const SLOW_RELIST_MS = 5_000;

/**
 * The loop: desired state and observations in, pod workers told what is wanted. One worker for each pod; a pod whose
 * name or host port is still held by one that is leaving waits for it [U16].
 */
export class Kubelet {
  readonly #deps: KubeletDeps;
  readonly #cache: PodCache;
  readonly #workers = new Map<PodUID, PodWorker>();
  readonly #blocked = new Map<PodUID, BlockedPod>();
  readonly #cleanup: PodCleanupStore;
  /** Refused though the node admitted them: until an edit, or until they are admitted again. */
  readonly #evictions: Evictions;
  /** Halted pods, those included that have no worker yet. */
  readonly #halts = new Map<PodUID, [end: PodEnd, maxGraceSeconds: number]>();
  readonly #shutdownTerminated: Set<ContainerId>;
  #isShutdownTerminatedWritten = true;
  readonly #stop = new AbortController();
  readonly #listeners = new Set<() => void>();
  #mayRemoveOrphans = false;
  #isSynced = false;
  #runtimeError: Error | undefined;
  #isEngineSlow = false;
  #lastListAtMs: number;
  #cancelRelist: (() => void) | undefined;
  #relisting: Promise<void> | undefined;
  #revision = 0;
  readonly #statusStore: PodStatusStore;
  #podList: readonly Pod[] | undefined;

  constructor(deps: KubeletDeps) {
    this.#deps = deps;
    this.#shutdownTerminated = new Set(deps.shutdownTerminated.read());
    this.#lastListAtMs = deps.clock.monotonicMs();
    this.#statusStore = new PodStatusStore(deps.clock);
    this.#cleanup = new PodCleanupStore(deps.podCleanup);
    this.#evictions = new Evictions(deps.evictions);
    this.#cache = new PodCache({
      runtime: deps.runtime,
      clock: deps.clock,
      oomVerdicts: deps.oomVerdicts,
      onChange: (uid) => this.#onObserved(uid),
    });
  }

  /** Begins to listen to the engine. Nothing is done to any pod before the first complete look. */
  start(): void {
    void this.#deps.runtime.watch({
      onOpen: () => this.#resync(),
      onEvent: (event) => {
        if (event.action === "oom") this.#deps.onOom?.(event.id);
        // A look that fails means a lost engine: the resync after that looks at everything.
        this.#cache.handleEvent(event).catch(() => {});
      },
      onLost: (error) => this.#onRuntimeError(error),
      signal: this.#stop.signal,
    });
  }

  /**
   * What should run from now on. Complete: a pod that is not in it is removed.
   * @param isComplete every source has spoken: containers of ours that belong to no pod are orphans.
   */
  setDesired(desired: DesiredState, isComplete: boolean): void {
    this.#deps.podManager.set(desired);
    this.#statusStore.noteSeen(desired.pods);
    this.#mayRemoveOrphans = isComplete;
    const isOver = ([uid, { revision }]: [PodUID, Eviction]) => {
      const wanted = this.#deps.podManager.get(uid);
      return wanted ? wanted.revision !== revision : isComplete;
    };
    this.#evictions.delete([...this.#evictions.all].filter(isOver).map(([uid]) => uid));
    this.#reconcile();
  }

  /**
   * Stops a pod that is wanted and removes it, down to its volumes; it counts as refused for this reason until it is
   * edited or {@link readmit}ted. Its status says so from now on.
   * @param maxGraceSeconds bounds its own grace period
   */
  evict(uid: PodUID, why: Rejection, maxGraceSeconds: number): void {
    const desired = this.#deps.podManager.get(uid);
    if (!desired) return;
    const since = this.#deps.clock.now();
    this.#evictions.add(uid, { ...why, revision: desired.revision, since });
    this.#blocked.set(uid, { rejection: why, since });
    this.#workers.get(uid)?.limitGrace(maxGraceSeconds);
    this.#reconcile();
  }

  /** Evicted pods may run again, as far as the node admits them. Without any, the node only looks at its refusals again. */
  readmit(uids: Iterable<PodUID>): void {
    this.#evictions.delete(uids);
    this.#reconcile();
  }

  /**
   * Stops a wanted pod without removing anything of it; its status says so until {@link resume}.
   * @returns a promise that resolves when nothing of it runs any more
   */
  async halt(uid: PodUID, end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#halts.set(uid, [end, maxGraceSeconds]);
    this.#noteShutdownTerminated(uid);
    await this.#workers.get(uid)?.halt(end, maxGraceSeconds);
  }

  /** Halted pods run again, and pods the node refused meanwhile are looked at anew. */
  resume(): void {
    this.#halts.clear();
    for (const worker of this.#workers.values()) worker.resume();
    this.#reconcile();
  }

  /** Wanted pods that were evicted, by this process or one before. */
  get evicted(): ReadonlyMap<PodUID, Rejection> {
    return this.#evictions.all;
  }

  /** The kernel, not the engine, says that it killed something in this container for want of memory. */
  noteOom(id: ContainerId): void {
    this.#cache.handleEvent({ id, action: "oom" }).catch(() => {});
  }

  /** Removes dead containers beyond these limits, over all pods. @returns how many go */
  removeSurplusDead(policy: DeadContainerPolicy): number {
    const dead = [...this.#workers.values()].flatMap((worker) => worker.deadContainers());
    const surplus = computeSurplusDead(dead, policy, this.#deps.clock.monotonicMs());
    for (const container of surplus) this.#workers.get(container.podUid)?.removeDead(container);
    return surplus.length;
  }

  /** Everything that is wanted is known, and the engine was looked at. */
  get isComplete(): boolean {
    return this.#mayRemoveOrphans && this.#isSynced;
  }

  /** Lets go of everything; pods go on running. */
  stop(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelRelist?.();
    for (const worker of this.#workers.values()) worker.detach();
  }

  /** What is wanted now, as the sources have it. */
  get desiredPods(): readonly DesiredPod[] {
    return this.#desired.pods;
  }

  /** Grows with every change of what {@link pods} answers. */
  get podsRevision(): number {
    return this.#revision;
  }

  /** Every wanted pod with its status, by namespace and name. An unchanged pod is the same object as before. */
  pods(): readonly Pod[] {
    this.#podList ??= this.#desired.pods.map(({ pod }) => {
      const uid = pod.metadata.uid!;
      const standing = { blocked: this.#blocked.get(uid), workerStatus: this.#workers.get(uid)?.status };
      return this.#statusStore.publish(pod, standing);
    });
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

  /** undefined while all is well; else why the engine cannot be followed. */
  get runtimeError(): string | undefined {
    if (this.#runtimeError) return this.#runtimeError.message;
    const silentMs = this.#deps.clock.monotonicMs() - this.#lastListAtMs;
    if (silentMs <= 3 * this.#deps.relistPeriodMs) return undefined;
    return `containers were last listed ${Math.round(silentMs / 1000)} s ago`;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  /** Calls back after every change of status, of the set of pods, or of the engine's health. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #onObserved(uid: PodUID): void {
    const worker = this.#workers.get(uid);
    if (worker) worker.wake();
    else if (this.#isSynced) this.#sweepOrphans();
  }

  /** After each (re)connection: look at everything, then go on. */
  #resync(): void {
    const attempt = async () => {
      await this.#relist(true);
      if (!this.#isSynced) {
        this.#isSynced = true;
        this.#deps.logger.debug("Containers of this node were looked at");
      }
      for (const worker of this.#workers.values()) worker.retryNow();
      this.#reconcile();
    };
    attempt().catch((error: Error) => this.#onRuntimeError(error));
  }

  async #relist(full: boolean): Promise<void> {
    // One at a time; a full one is never left out because a light one is under way.
    while (this.#relisting) await this.#relisting.catch(() => {});
    this.#cancelRelist?.();
    let nextInMs = RETRY_RELIST_MS;
    const startedAtMs = this.#deps.clock.monotonicMs();
    try {
      this.#relisting = this.#cache.relist(full, this.#stop.signal);
      await this.#relisting;
      this.#lastListAtMs = this.#deps.clock.monotonicMs();
      nextInMs = this.#deps.relistPeriodMs;
      this.#deps.onRelist?.(this.#lastListAtMs - startedAtMs);
      this.#noteSlowness(this.#lastListAtMs - startedAtMs);
      this.#noteRecovery();
    } finally {
      this.#relisting = undefined;
      if (!this.#stop.signal.aborted) {
        this.#cancelRelist = this.#deps.clock.schedule(nextInMs, () => this.#periodicRelist());
      }
    }
  }

  #periodicRelist(): void {
    // After a failure nobody knows what was missed.
    if (!this.#isSynced || this.#runtimeError) return this.#resync();
    this.#relist(false).then(
      () => {
        this.#sweepOrphans();
        if (this.#deps.deadContainers) this.removeSurplusDead(this.#deps.deadContainers);
      },
      (error: Error) => this.#onRuntimeError(error),
    );
  }

  #onRuntimeError(error: Error): void {
    if (this.#stop.signal.aborted) return;
    if (this.#runtimeError?.message !== error.message) this.#deps.logger.error(error.message);
    this.#runtimeError = error;
    this.#changed();
  }

  #noteSlowness(listedInMs: number): void {
    const isSlow = listedInMs > SLOW_RELIST_MS;
    if (isSlow === this.#isEngineSlow) return;
    this.#isEngineSlow = isSlow;
    const { logger } = this.#deps;
    if (isSlow)
      logger.warn(`The Docker engine is slow: a look at all containers took ${Math.round(listedInMs / 1000)} s`);
    else logger.info("The Docker engine is no longer slow");
  }

  #noteRecovery(): void {
    if (!this.#runtimeError) return;
    this.#runtimeError = undefined;
    this.#deps.logger.info("The Docker engine answers again");
    this.#changed();
  }

  get #desired(): DesiredState {
    return this.#deps.podManager.state;
  }

  /** Brings the set of workers in line with what is wanted. */
  #reconcile(): void {
    if (!this.#isSynced || this.#stop.signal.aborted) return;
    const desiredUids = new Set(this.#desired.pods.map(({ pod }) => pod.metadata.uid!));
    for (const [uid, worker] of this.#workers) if (!desiredUids.has(uid)) worker.remove();

    const running = new Set([...this.#workers].filter(([, { isRemoving }]) => !isRemoving).map(([uid]) => uid));
    for (const uid of this.#cache.uids()) if (desiredUids.has(uid)) running.add(uid);
    const evictions = this.#evictions.all;
    for (const uid of evictions.keys()) running.delete(uid);
    const admissible = this.#desired.pods.filter(({ pod }) => !evictions.has(pod.metadata.uid!));
    const rejections = new Map([...this.#deps.admit(admissible, running), ...evictions]);
    const before = new Map(this.#blocked);
    this.#blocked.clear();
    for (const desired of this.#desired.pods)
      this.#syncPodAdmission(desired, rejections.get(desired.pod.metadata.uid!), before);
    this.#sweepOrphans();
    this.#cleanup.save();
    this.#changed();
  }

  /** Upstream's message of the status has `Pod ` before that of the event. */
  #recordRefusal({ pod }: DesiredPod, { reason, message }: Rejection): void {
    const { uid = "", name = "", namespace = "default" } = pod.metadata;
    const event = { type: "Warning" as const, reason, message: message.replace(/^Pod /, "") };
    this.#deps.recorder.record({ uid, name, namespace }, event);
  }

  #syncPodAdmission(
    desired: DesiredPod,
    rejection: Rejection | undefined,
    before: ReadonlyMap<PodUID, BlockedPod>,
  ): void {
    const { clock, logger } = this.#deps;
    const uid = desired.pod.metadata.uid!;
    const fullName = podFullName(desired.pod.metadata);
    const refuse = (why: Rejection) => {
      const known = before.get(uid);
      const isNews = !(known && "rejection" in known && known.rejection.message === why.message);
      if (isNews) {
        logger.error(`Pod "${fullName}" is refused: ${why.reason}: ${why.message}`);
        this.#recordRefusal(desired, why);
      }
      const since = this.#evictions.all.get(uid)?.since ?? clock.now();
      this.#blocked.set(uid, { rejection: why, since: isNews ? since : (known as { since: Date }).since });
      this.#workers.get(uid)?.remove();
    };
    if (rejection) return refuse(rejection);
    const own = this.#workers.get(uid);
    const holder = own?.isRemoving ? own : this.#findHolder(desired.pod, uid, fullName);
    if (holder) {
      this.#blocked.set(uid, { waitsFor: podFullName(holder.ref) });
      return;
    }
    let revision: PodRevision;
    try {
      revision = this.#deps.toPodRevision(desired, this.#desired);
    } catch (error) {
      return refuse({ reason: "Unsupported", message: (error as Error).message });
    }
    const worker = own ?? this.#createWorker(uid, desired.pod);
    worker.setRevision(revision);
    const halt = this.#halts.get(uid);
    if (halt) void worker.halt(...halt);
  }

  /** Who leaves, but still holds the name or a host port. */
  #findHolder(pod: Pod, uid: PodUID, fullName: PodFullName): PodWorker | undefined {
    for (const [otherUid, worker] of this.#workers) {
      if (otherUid === uid || !worker.isRemoving) continue;
      if (podFullName(worker.ref) === fullName) return worker;
      if (worker.revision && this.#deps.conflict(pod, worker.revision.pod)) return worker;
    }
    return undefined;
  }

  #createWorker(uid: PodUID, { metadata }: { metadata: Pod["metadata"] }): PodWorker {
    const { completions } = this.#deps;
    const ref = { uid, name: metadata.name ?? "", namespace: metadata.namespace ?? "default" };
    const worker = new PodWorker(
      ref,
      {
        ...this.#deps,
        cache: this.#cache,
        shutdownTerminated: this.#shutdownTerminated,
        desiredSinceMs: () => this.#statusStore.desiredSinceMs(uid),
        onStatus: () => this.#changed(),
        onCompletion: (_, completion) => completions.set(uid, completion),
        onGone: () => this.#onGone(uid),
      },
      completions.get(uid),
    );
    this.#workers.set(uid, worker);
    this.#cleanup.add(ref);
    return worker;
  }

  /** On disk before any of them can end: many pods that are halted at a time make one file. */
  #noteShutdownTerminated(uid: PodUID): void {
    for (const { id, state } of this.#workers.get(uid)?.snapshot.containers ?? []) {
      if (state === "running") this.#shutdownTerminated.add(id);
    }
    if (!this.#isShutdownTerminatedWritten) return;
    this.#isShutdownTerminatedWritten = false;
    queueMicrotask(() => {
      this.#isShutdownTerminatedWritten = true;
      // Those of earlier shutdowns that the engine no longer has: the file would grow with each.
      if (this.#isSynced)
        for (const id of this.#shutdownTerminated) if (!this.#cache.has(id)) this.#shutdownTerminated.delete(id);
      this.#deps.shutdownTerminated.write([...this.#shutdownTerminated]);
    });
  }

  #onGone(uid: PodUID): void {
    this.#workers.delete(uid);
    this.#cleanup.delete(uid);
    this.#statusStore.forget(uid);
    this.#deps.completions.set(uid, undefined);
    this.#deps.onPodGone?.(uid);
    // Its successor, or one that waited for its port, may start now.
    this.#reconcile();
  }

  /** Containers of ours, and what is left of others, whose pod nobody wants [U17]. */
  #sweepOrphans(): void {
    if (!this.#mayRemoveOrphans || !this.#isSynced) return;
    const wanted = new Set(this.#desired.pods.map(({ pod }) => pod.metadata.uid));
    const seen = [...this.#cache.uids()].flatMap((uid) => this.#cache.refOf(uid) ?? []);
    for (const ref of [...seen, ...this.#cleanup.refs()]) {
      const { uid } = ref;
      if (this.#workers.has(uid) || (wanted.has(uid) && !this.rejection(uid))) continue;
      const why = this.rejection(uid) ? "the node refuses it" : "no manifest describes it";
      this.#deps.logger.info(`Removing pod "${podFullName(ref)}": ${why}`);
      this.#createWorker(uid, { metadata: ref }).remove();
    }
  }

  #changed(): void {
    this.#revision++;
    this.#podList = undefined;
    for (const listener of this.#listeners) listener();
  }
}
