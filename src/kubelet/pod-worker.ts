import type { Pod, PodStatus } from "../api/pod.ts";
import { podFullName } from "../model/identity.ts";
import type { PodRef } from "../model/pod-ref.ts";
import type { ContainerId, PodSnapshot } from "../model/pod-snapshot.ts";
import {
  computePodActions,
  DEADLINE_EXCEEDED,
  isRevisionLive,
  type RolloutProgress,
  sidecarNames,
} from "../plan/compute-pod-actions.ts";
import { isRunning, isTerminated } from "../plan/container-history.ts";
import { type DeadContainer, findDeadContainers } from "../plan/dead-container-limit.ts";
import type { ContainerProbeState, PodEnd, PodPlan, WaitingReason } from "../plan/pod-plan.ts";
import { endsOnlyOnSuccess, runsOnce } from "../plan/restart-policy.ts";
import { computeStopActions } from "../plan/stop-pod.ts";
import { recoverBackOff } from "../plan/sync-state.ts";
import type { Completion } from "./completion-store.ts";
import { DependencyHold } from "./dependency-hold.ts";
import type { PodRevision } from "./edit-rules.ts";
import { PodActionRunner, type PodActionRunnerDeps } from "./pod-action-runner.ts";
import { type DeletionInfo, PodRemoval } from "./pod-removal.ts";
import { PodStatusTracker } from "./pod-status-tracker.ts";
import { PodSyncState } from "./pod-sync-state.ts";
import { PodVolumeSync } from "./pod-volume-sync.ts";
import { type PodWorkCounter, PodWorkTimer } from "./pod-work-timer.ts";

/** The probe manager as a worker sees it. */
export interface PodProbes {
  /** @param heldBack containers whose postStart hook has not ended: they are not probed yet */
  update(pod: Pod, snapshot: PodSnapshot, heldBack: ReadonlySet<string>): void;
  remove(uid: string): void;
  states(uid: string): ReadonlyMap<string, ContainerProbeState>;
}

export interface PodWorkerDeps extends PodActionRunnerDeps {
  probes: PodProbes;
  /** Containers stopped by a shutdown of the machine: their exit code says nothing about their work. */
  shutdownTerminated: ReadonlySet<ContainerId>;
  /** Address of the node, "" while unknown. */
  hostIp: () => string;
  /** When the desired revision was first seen. Monotonic. */
  desiredSinceMs: () => number;
  work?: PodWorkCounter;
  /**
   * Why the pod may not start now; undefined when it may.
   * @param waitedMs how long it has waited so far
   */
  findHold?: (pod: Pod, waitedMs: number) => WaitingReason | undefined;
  /** The status changed (compare by identity). */
  onStatus: (worker: PodWorker) => void;
  /** {@link PodWorker.rollout} changed. */
  onRollout?: (worker: PodWorker) => void;
  /** The pod ended, or runs again after an edit (undefined). */
  onCompletion: (worker: PodWorker, completion: Completion | undefined) => void;
  /** Stopped and cleaned up; the worker has no further use. */
  onGone: (worker: PodWorker) => void;
}

const PLAN_RETRY_MS = 10_000;
const CLEANUP_RETRY_MS = 2_000;

/**
 * Keeps one pod in its desired state. A pass reads the cache, plans, and starts the actions; it never waits. The results
 * of an action are seen by the next pass, which is triggered by the end of the action, an event of the engine, a probe
 * result, an edit, or the time named by the plan.
 */
export class PodWorker {
  readonly ref: PodRef;
  readonly #deps: PodWorkerDeps;
  readonly #state: PodSyncState;
  readonly #actions: PodActionRunner;
  readonly #volumes: PodVolumeSync;
  readonly #status: PodStatusTracker;
  readonly #timer: PodWorkTimer;
  readonly #stop = new AbortController();
  #revision: PodRevision | undefined;
  /** Revision of the last pass. */
  #plannedRevision: PodRevision | undefined;
  #lastRollout: RolloutProgress = "pending";
  #lastPins: PodRevision["imagePins"];
  readonly #hold: DependencyHold;
  readonly #removal: PodRemoval;
  /** Containers of the deleted pod are being removed. */
  #isClearing = false;
  #isScheduled = false;
  #cancelRecheck: (() => void) | undefined;
  #end: PodEnd | undefined;
  #halt: { end: PodEnd; atRest: PromiseWithResolvers<void> } | undefined;

  /** @param completion how the pod ended in an earlier process */
  constructor(ref: PodRef, deps: PodWorkerDeps, completion?: Completion) {
    this.ref = ref;
    this.#deps = deps;
    this.#state = new PodSyncState(deps.cache.exitedAtMs);
    this.#status = new PodStatusTracker(deps, completion);
    this.#timer = new PodWorkTimer(deps.clock, deps.work);
    this.#actions = new PodActionRunner(ref, this.#state, deps, {
      revision: () => this.#revision,
      mayStart: () => !this.isRemoving && !this.#currentEnd,
      wake: () => this.wake(),
      signal: this.#stop.signal,
    });
    this.#hold = new DependencyHold(deps.findHold);
    this.#removal = new PodRemoval(deps, {
      ref,
      signal: this.#stop.signal,
      onDone: () => {
        this.detach();
        deps.onGone(this);
      },
      onFailed: () => this.#recheckAt(deps.clock.monotonicMs() + CLEANUP_RETRY_MS),
    });
    this.#volumes = new PodVolumeSync(this.#actions, this.#state, deps);
  }

  /** The last computed status; undefined before the first pass and for orphans. */
  get status(): PodStatus | undefined {
    return this.#status.status;
  }

  get revision(): PodRevision | undefined {
    return this.#revision;
  }

  /** The pod is being deleted, which cannot be undone. */
  get isRemoving(): boolean {
    return this.deletion !== undefined;
  }

  get deletion(): DeletionInfo | undefined {
    return this.#removal.deletion;
  }

  get rollout(): RolloutProgress {
    const revision = this.#revision;
    if (!revision || this.#plannedRevision !== revision) return "pending";
    const isLive = this.#end !== undefined || isRevisionLive({ ...revision, snapshot: this.snapshot });
    return isLive ? "live" : "progressing";
  }

  get snapshot(): PodSnapshot {
    return this.#deps.cache.get(this.ref);
  }

  /** Names of containers whose start cannot succeed without a change from outside, with the reason; "" is the sandbox. */
  get startErrors(): ReadonlyMap<string, { reason: string; message: string }> {
    const { sandboxError, startErrors } = this.#state;
    return sandboxError ? new Map([["", sandboxError]]) : startErrors;
  }

  /** Sets the revision to run. Has no effect on a pod that is being deleted. */
  setRevision(revision: PodRevision): void {
    if (this.isRemoving) return;
    const before = this.#revision;
    this.#revision = revision;
    if (before && before.qosClass !== revision.qosClass) this.#recordQosChange(before, revision);
    if (before === undefined) {
      this.#timer.added(revision.pod.spec.containers.length, this.#deps.desiredSinceMs());
      this.#adopt(revision);
    } else if (before.runRevision !== revision.runRevision && this.#end) {
      this.#end = undefined;
      this.#status.forgetCompletion();
      this.#status.setStartTime(this.#deps.clock.now());
      delete this.#state.stoppingSinceMs;
      this.#deps.onCompletion(this, undefined);
    }
    if (before?.objectsRevision !== revision.objectsRevision || before.runRevision !== revision.runRevision) {
      if (before) this.#timer.edited();
      this.#state.forgetFailures();
    }
    this.wake();
  }

  /** Containers cannot be moved to the cgroup of another QoS class, so the pod starts again. */
  #recordQosChange(before: PodRevision, { qosClass }: PodRevision): void {
    const message = `QoS class changes from ${before.qosClass} to ${qosClass}: the pod starts again in a new sandbox`;
    this.#actions.record("Normal", "QOSClassChanged", message);
  }

  /** Stops the pod and removes all of it. Cannot be undone; `onGone` is called when it is done. */
  remove(): void {
    if (this.isRemoving) return;
    this.#removal.begin(this.#revision, this.snapshot);
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.wake();
  }

  /** The period of a deletion under way became shorter: containers that are being stopped are stopped again with it. */
  #hasten(): void {
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.#state.killing.clear();
    this.wake();
  }

  /**
   * Limits the pod's own grace period. To be called before {@link remove}; a shorter exact period counts later, too.
   * @param isExact the pod's own grace period does not count, as with `kubectl delete --grace-period`
   */
  limitGrace(seconds: number, isExact = false): void {
    if (!isExact) this.#removal.maxGraceSeconds = seconds;
    else if (this.#removal.setExactGrace(seconds)) this.#hasten();
  }

  /**
   * Stops the pod and shows it as ended, but removes nothing, until {@link resume} or the next start of the kubelet. A
   * pod whose containers are never started twice has ended for good by this.
   * @returns a promise that resolves when nothing of it runs any more
   */
  halt(end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#halt ??= { end, atRest: Promise.withResolvers() };
    this.#removal.maxGraceSeconds = maxGraceSeconds;
    if (!this.#end) {
      this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
      this.#deps.probes.remove(this.ref.uid);
      const hasBegun = this.snapshot.containers.some(({ startedAt }) => startedAt);
      if (this.#revision && hasBegun && runsOnce(this.#revision.pod.spec)) this.#noteEnd(end);
    }
    this.wake();
    return this.#halt.atRest.promise;
  }

  /** Undoes {@link halt}. */
  resume(): void {
    if (!this.#halt) return;
    this.#halt = undefined;
    this.#removal.maxGraceSeconds = Number.POSITIVE_INFINITY;
    if (!this.#end) delete this.#state.stoppingSinceMs;
    this.wake();
  }

  /** Dead containers that may be removed when the node has too many. */
  deadContainers(): DeadContainer[] {
    const mayRestart = this.#end === undefined && !this.isRemoving;
    return findDeadContainers(this.ref.uid, this.snapshot, this.#state, mayRestart);
  }

  removeDead({ id, name }: DeadContainer): void {
    this.#actions.perform({ kind: "remove-container", id, name }, this.#revision);
  }

  /** Schedules a pass. Several calls in a row make one pass. */
  wake(): void {
    if (this.#isScheduled || this.#stop.signal.aborted) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#stop.signal.aborted) return;
      try {
        this.#pass();
      } catch (error) {
        this.#deps.logger.error(`Cannot plan pod "${podFullName(this.ref)}": ${(error as Error).message}`);
        this.#recheckAt(this.#deps.clock.monotonicMs() + PLAN_RETRY_MS);
      }
    });
  }

  /** Retries failed steps at once: the engine is back, or an image appeared. */
  retryNow(): void {
    this.#state.forgetFailures();
    this.wake();
  }

  /** Starts nothing more and leaves what runs alone. */
  detach(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelRecheck?.();
  }

  /** How the pod ended, for good or for as long as it is halted. */
  get #currentEnd(): PodEnd | undefined {
    return this.#end ?? this.#halt?.end;
  }

  #pass(): void {
    const snapshot = this.snapshot;
    this.#state.prune(new Set(snapshot.containers.map(({ id }) => id)));
    const revision = this.#revision;
    if (this.isRemoving) return this.#passRemoval(snapshot, revision);
    if (!revision) return;
    this.#actions.readTerminationMessages(snapshot, revision.pod);
    this.#actions.learnImages(snapshot);

    if (!this.#currentEnd && this.#removeShutdownTerminated(revision, snapshot)) return;
    const nowMs = this.#deps.clock.monotonicMs();
    const isDown = !snapshot.containers.some(isRunning) && this.#state.starting.size === 0;
    const hold = this.#hold.check(revision.pod, isDown && !this.#currentEnd, nowMs);
    const plan = this.#plan(revision, snapshot, hold);
    this.#plannedRevision = revision;
    if (plan.end && !this.#currentEnd) this.#noteEnd(plan.end);
    for (const action of plan.actions) this.#actions.perform(action, revision);
    if (!this.#currentEnd) {
      this.#deps.probes.update(revision.pod, snapshot, this.#state.postStartPending);
      this.#volumes.refresh(revision, snapshot);
      this.#volumes.removeUnused(revision, snapshot);
    }
    if (this.#end) this.#volumes.release(revision, snapshot);
    this.#updateStatus(revision, snapshot, plan, hold);
    this.#timer.passed(this.#state.isIdle);
    this.#noteHalted(snapshot);
    this.#noteRollout();
    this.#recheckAt(earliest(plan.recheckAtMs, this.#hold.timeoutAtMs(revision.pod, nowMs)));
  }

  #noteRollout(): void {
    const { rollout } = this;
    // Images that are only pinned change no container, and so no progress.
    const pins = this.#revision?.imagePins;
    if (rollout === this.#lastRollout && pins === this.#lastPins) return;
    this.#lastRollout = rollout;
    this.#lastPins = pins;
    this.#deps.onRollout?.(this);
  }

  #plan(revision: PodRevision, snapshot: PodSnapshot, hold: WaitingReason | undefined): PodPlan {
    const deadlineSeconds = revision.pod.spec.activeDeadlineSeconds;
    return computePodActions({
      pod: revision.pod,
      hashes: revision.hashes,
      snapshot,
      probes: this.#deps.probes.states(this.ref.uid),
      state: this.#state,
      nowMs: this.#deps.clock.monotonicMs(),
      options: revision.options,
      ...(deadlineSeconds !== undefined && { deadlineAtMs: this.#status.startedAtMs + deadlineSeconds * 1000 }),
      maxGraceSeconds: this.#removal.maxGraceSeconds,
      ...(this.#currentEnd && { end: this.#currentEnd }),
      ...(hold && { hold }),
    });
  }

  #noteHalted({ containers, sandboxes }: PodSnapshot): void {
    if (!this.#state.isIdle || containers.some(isRunning)) return;
    if (sandboxes.every(({ state }) => state !== "ready")) this.#halt?.atRest.resolve();
  }

  /**
   * A container that exited with 0 because a shutdown stopped it would count as done: it is removed, so that it runs
   * again.
   * @returns whether there is one left
   */
  #removeShutdownTerminated({ pod: { spec } }: PodRevision, { containers }: PodSnapshot): boolean {
    const { shutdownTerminated } = this.#deps;
    const misleading = containers.filter(
      (it) =>
        shutdownTerminated.has(it.id) && isTerminated(it) && it.exitCode === 0 && endsOnlyOnSuccess(spec, it.name),
    );
    for (const { id, name } of misleading) {
      if (!this.#state.removing.has(id)) this.#actions.perform({ kind: "remove-container", id, name }, this.#revision);
    }
    return misleading.length > 0;
  }

  #passRemoval(snapshot: PodSnapshot, revision: PodRevision | undefined): void {
    this.#deps.probes.remove(this.ref.uid);
    const actions = computeStopActions({
      snapshot,
      state: this.#state,
      nowMs: this.#deps.clock.monotonicMs(),
      reason: "PodRemoved",
      graceSeconds: this.#removal.graceSeconds(revision, snapshot),
      sidecars: sidecarNames(revision?.pod.spec.initContainers),
      remove: true,
    });
    // While containers are removed the status keeps what they ended with.
    this.#isClearing ||= actions.some(({ kind }) => kind === "remove-container");
    if (revision && snapshot.containers.length > 0 && !this.#isClearing)
      this.#updateStatus(revision, snapshot, { waiting: new Map() });
    for (const action of actions) this.#actions.perform(action, revision);
    const isEmpty = snapshot.containers.length + snapshot.sandboxes.length === 0;
    if (isEmpty) this.#halt?.atRest.resolve();
    if (isEmpty && this.#state.isIdle) this.#removal.tearDown();
  }

  #noteEnd(end: PodEnd): void {
    this.#end = end;
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.#deps.probes.remove(this.ref.uid);
    if (end.reason && end.reason === DEADLINE_EXCEEDED.reason) {
      this.#actions.record("Normal", end.reason, end.message ?? "");
    }
    this.#deps.logger.info(`Pod "${podFullName(this.ref)}" ended: ${end.phase}${end.reason ? ` (${end.reason})` : ""}`);
  }

  #updateStatus(
    revision: PodRevision,
    snapshot: PodSnapshot,
    plan: Pick<PodPlan, "waiting">,
    hold?: WaitingReason,
  ): void {
    const { isChanged, completion } = this.#status.update({
      revision,
      snapshot,
      plan,
      probes: this.#deps.probes.states(this.ref.uid),
      state: this.#state,
      end: this.#end,
      halt: this.#halt?.end,
      hold,
    });
    if (completion) this.#deps.onCompletion(this, completion);
    if (!isChanged) return;
    if (this.#hold.isNews(hold)) {
      const type = hold.reason === "WaitingForDependency" ? "Normal" : "Warning";
      this.#actions.record(type, hold.reason, hold.message);
    }
    this.#timer.showed(this.#status.status?.phase);
    for (const [name, { reason }] of plan.waiting) {
      if (reason === "CrashLoopBackOff") {
        this.#actions.record("Warning", "BackOff", "Back-off restarting failed container", name);
      }
    }
    this.#deps.onStatus(this);
  }

  /** The first revision of this worker: containers that already exist are taken over as they are. */
  #adopt(revision: PodRevision): void {
    const { clock } = this.#deps;
    const snapshot = this.snapshot;
    // Time before this revision does not count if an earlier revision ended.
    const known = this.#status.completion;
    const isOver = known && known.runRevision !== revision.runRevision;
    this.#status.setStartTime((!isOver && snapshot.sandboxes.at(-1)?.createdAt) || clock.now());
    this.#end = this.#status.restoreEnd(revision);
    const backOff = recoverBackOff({
      ...revision,
      snapshot,
      exitedAtMs: this.#state.exitedAtMs,
      now: clock.now(),
      nowMs: clock.monotonicMs(),
    });
    for (const [key, entry] of backOff) this.#state.backOff.set(key, entry);
  }

  #recheckAt(atMs: number | undefined): void {
    this.#cancelRecheck?.();
    this.#cancelRecheck = undefined;
    if (atMs === undefined || this.#stop.signal.aborted) return;
    const delayMs = Math.max(0, atMs - this.#deps.clock.monotonicMs());
    this.#cancelRecheck = this.#deps.clock.schedule(delayMs, () => this.wake());
  }
}

const earliest = (a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
