import type { Pod, PodStatus } from "../base/api/pod.ts";
import { podFullName } from "../base/model/identity.ts";
import type { PodRef } from "../base/model/pod-ref.ts";
import type { ContainerId, PodSnapshot } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import { computePodActions } from "../plan/compute-pod-actions.ts";
import { isRunning } from "../plan/container-history.ts";
import { type DeadContainer, findDeadContainers } from "../plan/dead-container-limit.ts";
import { findMisleadingExits } from "../plan/node-shutdown.ts";
import type { PodEnd, PodPlan, WaitingReason } from "../plan/pod-plan.ts";
import { runsOnce } from "../plan/restart-policy.ts";
import type { RolloutProgress } from "../plan/rollout.ts";
import type { Completion } from "./completion-store.ts";
import { DependencyHold } from "./dependency-hold.ts";
import { type PodRevision, pendingResizeOf } from "./edit-rules.ts";
import { PassScheduler } from "./pass-scheduler.ts";
import { PodActionRunner, type PodActionRunnerDeps } from "./pod-action-runner.ts";
import { PodBackgroundWork } from "./pod-background-work.ts";
import type { PodProbes } from "./pod-effects.ts";
import { PodEnding } from "./pod-ending.ts";
import { type DeletionInfo, PodRemoval } from "./pod-removal.ts";
import { PodStatusTracker } from "./pod-status-tracker.ts";
import { PodSyncState } from "./pod-sync-state.ts";
import { PodVolumeSync } from "./pod-volume-sync.ts";
import { type PodWorkCounter, PodWorkTimer } from "./pod-work-timer.ts";

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
  readonly #passes: PassScheduler;
  readonly #work: PodBackgroundWork;
  readonly #actions: PodActionRunner;
  readonly #ending: PodEnding;
  readonly #volumes: PodVolumeSync;
  readonly #status: PodStatusTracker;
  readonly #timer: PodWorkTimer;
  readonly #stop = new AbortController();
  #revision: PodRevision | undefined;
  readonly #hold: DependencyHold;
  readonly #removal: PodRemoval;

  /** @param completion how the pod ended in an earlier process */
  constructor(ref: PodRef, deps: PodWorkerDeps, completion?: Completion) {
    this.ref = ref;
    this.#deps = deps;
    this.#state = new PodSyncState(deps.cache.exitedAtMs);
    this.#status = new PodStatusTracker(deps, completion);
    this.#timer = new PodWorkTimer(deps.clock, deps.work);
    this.#passes = new PassScheduler(deps.clock, () => this.#passOrRetry());
    this.#work = new PodBackgroundWork(ref, deps, {
      revision: () => this.#revision,
      wake: () => this.wake(),
      signal: this.#stop.signal,
    });
    this.#ending = new PodEnding(ref, this.#state, this.#work, deps);
    this.#actions = new PodActionRunner(this.#work, this.#state, deps, {
      revision: () => this.#revision,
      mayStart: () => !this.isRemoving && !this.#ending.current,
    });
    this.#hold = new DependencyHold(deps.findHold);
    this.#removal = new PodRemoval(deps, {
      ref,
      signal: this.#stop.signal,
      onDone: () => {
        this.detach();
        deps.onGone(this);
      },
      onFailed: () => this.#passes.wakeAt(deps.clock.monotonicMs() + CLEANUP_RETRY_MS),
    });
    this.#volumes = new PodVolumeSync(this.#work, this.#state, deps);
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
    return this.#status.progressOf(this.#revision, this.snapshot, this.#ending.final !== undefined);
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
    const pending = pendingResizeOf(revision);
    if (pending && pendingResizeOf(before)?.message !== pending.message)
      this.#work.record("Warning", `Resize${pending.reason}`, pending.message ?? "");
    if (before === undefined) {
      const { clock, desiredSinceMs } = this.#deps;
      this.#timer.added(revision.pod.spec.containers.length, desiredSinceMs());
      // Containers that already exist are taken over as they are.
      const { snapshot } = this;
      this.#ending.restore(this.#status.adopt(revision, snapshot));
      this.#state.recoverBackOff({ ...revision, snapshot, now: clock.now(), nowMs: clock.monotonicMs() });
    } else if (before.runRevision !== revision.runRevision && this.#ending.final) {
      this.#ending.revoke();
      this.#status.restart();
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
    this.#work.record("Normal", "QOSClassChanged", message);
  }

  /** Stops the pod and removes all of it. Cannot be undone; `onGone` is called when it is done. */
  remove(): void {
    if (this.isRemoving) return;
    this.#removal.begin(this.#revision, this.snapshot);
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.wake();
  }

  /** The period of a deletion under way became shorter: containers that are being stopped are stopped again with it. */
  #shortenGrace(): void {
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
    else if (this.#removal.setExactGrace(seconds)) this.#shortenGrace();
  }

  /**
   * Stops the pod and shows it as ended, but removes nothing, until {@link resume} or the next start of the kubelet. A
   * pod whose containers are never started twice has terminated by this.
   * @returns a promise that resolves when nothing of it runs any more
   */
  halt(end: PodEnd, maxGraceSeconds: number): Promise<void> {
    const atRest = this.#ending.halt(end);
    this.#removal.maxGraceSeconds = maxGraceSeconds;
    const hasBegun = this.snapshot.containers.some(({ startedAt }) => startedAt);
    if (!this.#ending.final && this.#revision && hasBegun && runsOnce(this.#revision.pod.spec)) this.#ending.end(end);
    this.wake();
    return atRest;
  }

  /** Undoes {@link halt}. */
  resume(): void {
    if (!this.#ending.resume()) return;
    this.#removal.maxGraceSeconds = Number.POSITIVE_INFINITY;
    this.wake();
  }

  /**
   * Stops the containers within their grace period and starts them in a new sandbox.
   * @returns why it cannot; undefined: it has begun
   */
  restart(): string | undefined {
    const { restartPolicy = "Always" } = this.#revision?.pod.spec ?? {};
    if (restartPolicy !== "Always") {
      return `has restartPolicy ${restartPolicy}: a container that is stopped may count as done; delete the pod and create it again`;
    }
    const sandbox = this.snapshot.sandboxes.find(({ state }) => state === "ready");
    if (!sandbox || this.isRemoving || this.#ending.current) {
      return `does not run now: kubelet-ts explain ${this.ref.name} says why`;
    }
    this.#state.replacedSandbox = sandbox.id;
    this.wake();
    return undefined;
  }

  /** Dead containers that may be removed when the node has too many. */
  deadContainers(): DeadContainer[] {
    const mayRestart = this.#ending.final === undefined && !this.isRemoving;
    return findDeadContainers(this.ref.uid, this.snapshot, this.#state, mayRestart);
  }

  removeDead({ id, name }: DeadContainer): void {
    this.#actions.perform({ kind: "remove-container", id, name }, this.#revision);
  }

  /** Schedules a pass. Several calls in a row make one pass. */
  wake(): void {
    this.#passes.wake();
  }

  /** Retries failed steps at once: the engine is back, or an image appeared. */
  retryNow(): void {
    this.#state.forgetFailures();
    this.wake();
  }

  /** Starts nothing more; running actions and containers continue. */
  detach(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#passes.stop();
  }

  #passOrRetry(): void {
    try {
      this.#pass();
    } catch (error) {
      this.#deps.logger.error(`Cannot plan pod "${podFullName(this.ref)}": ${messageOf(error)}`);
      this.#passes.wakeAt(this.#deps.clock.monotonicMs() + PLAN_RETRY_MS);
    }
  }

  #pass(): void {
    const snapshot = this.snapshot;
    this.#state.prune(new Set(snapshot.containers.map(({ id }) => id)));
    const revision = this.#revision;
    if (this.isRemoving) return this.#passRemoval(snapshot, revision);
    if (!revision) return;
    this.#actions.readTerminationMessages(snapshot, revision.pod);
    this.#actions.learnImages(snapshot);

    const ending = this.#ending;
    if (!ending.current && this.#removeShutdownTerminated(revision, snapshot)) return;
    const nowMs = this.#deps.clock.monotonicMs();
    const isDown = !snapshot.containers.some(isRunning) && this.#state.starting.size === 0;
    const hold = this.#hold.check(revision.pod, isDown && !ending.current, nowMs);
    const plan = this.#plan(revision, snapshot, hold);
    this.#status.notePlanned(revision);
    if (plan.end && !ending.current) ending.end(plan.end);
    for (const action of plan.actions) this.#actions.perform(action, revision);
    if (!ending.current) {
      this.#deps.probes.update(revision.pod, snapshot, this.#state.postStartPending);
      this.#volumes.refresh(revision, snapshot);
      this.#volumes.removeUnused(revision, snapshot);
    }
    if (ending.final) this.#volumes.release(revision, snapshot);
    this.#updateStatus(revision, snapshot, plan, hold);
    this.#timer.passed(this.#state.isIdle);
    ending.noteAtRest(snapshot);
    if (this.#status.noteProgress(this.rollout)) this.#deps.onRollout?.(this);
    this.#passes.wakeAt(earliest(plan.recheckAtMs, this.#hold.timeoutAtMs(revision.pod, nowMs)));
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
      ...(this.#ending.current && { end: this.#ending.current }),
      ...(hold && { hold }),
    });
  }

  /** Removes containers whose exit says nothing, so that they run again. @returns whether there was one */
  #removeShutdownTerminated(revision: PodRevision, { containers }: PodSnapshot): boolean {
    const misleading = findMisleadingExits(revision.pod.spec, containers, this.#deps.shutdownTerminated);
    for (const { id, name } of misleading) {
      if (!this.#state.removing.has(id)) this.#actions.perform({ kind: "remove-container", id, name }, revision);
    }
    return misleading.length > 0;
  }

  #passRemoval(snapshot: PodSnapshot, revision: PodRevision | undefined): void {
    this.#deps.probes.remove(this.ref.uid);
    const actions = this.#removal.plan(revision, snapshot, this.#state);
    if (revision && snapshot.containers.length > 0 && !this.#removal.isClearing)
      this.#updateStatus(revision, snapshot, { waiting: new Map() });
    for (const action of actions) this.#actions.perform(action, revision);
    const isEmpty = snapshot.containers.length + snapshot.sandboxes.length === 0;
    if (isEmpty && this.#state.isIdle) this.#removal.tearDown();
    if (isEmpty) this.#ending.noteGone();
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
      end: this.#ending.final,
      halt: this.#ending.halted,
      hold,
    });
    if (completion) this.#deps.onCompletion(this, completion);
    if (!isChanged) return;
    this.#hold.report(hold, this.#work);
    this.#timer.showed(this.#status.status?.phase);
    for (const [name, { reason }] of plan.waiting) {
      if (reason === "CrashLoopBackOff") {
        this.#work.record("Warning", "BackOff", "Back-off restarting failed container", name);
      }
    }
    this.#deps.onStatus(this);
  }
}

const earliest = (a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
