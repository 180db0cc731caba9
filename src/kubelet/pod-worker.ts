import type { Pod, PodCondition, PodStatus } from "../base/api/pod.ts";
import { BackOff } from "../base/model/back-off.ts";
import type { Clock } from "../base/model/clock.ts";
import type { NodeInfo } from "../base/model/node.ts";
import { type PodRef, type PodUID, podFullName, statusesOf } from "../base/model/pod.ts";
import { type ContainerId, isRunning, type PodSnapshot } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import { computePodActions, DEADLINE_EXCEEDED, sidecarNames } from "../plan/compute-pod-actions.ts";
import { type DeadContainer, findDeadContainers } from "../plan/dead-container-limit.ts";
import { withImageProbes } from "../plan/image-healthcheck.ts";
import { findMisleadingExits } from "../plan/node-shutdown.ts";
import { changedSources } from "../plan/object-references.ts";
import { dependencyTimeoutMs } from "../plan/pod-dependencies.ts";
import type { PodEnd, PodPlan, WaitingReason } from "../plan/pod-plan.ts";
import { runsOnce } from "../plan/restart-policy.ts";
import type { RolloutProgress } from "../plan/rollout.ts";
import { computeStopActions, orphanGraceSeconds } from "../plan/stop-pod.ts";
import type { KubeletMetrics } from "../stats/metrics/kubelet-metrics.ts";
import { type PodRevision, pendingResizeOf } from "./edit-rules.ts";
import { PodActions, type PodActionsDeps, PodSyncState } from "./pod-actions.ts";
import { PodStatusTracker } from "./pod-status-tracker.ts";
import type { ProbeManager } from "./prober/probe-manager.ts";

export interface PodWorkerDeps extends PodActionsDeps {
  probes: Pick<ProbeManager, "update" | "remove" | "states">;
  node: Pick<NodeInfo, "ip" | "formerNames">;
  metrics: KubeletMetrics;
}

/** All pods together, as one worker sees them: `PodWorkers`. */
interface PodWorkerOwner {
  /** When the desired revision was first seen. Monotonic. */
  desiredSinceMs(uid: PodUID): number;
  /** Why the pod may not start now; undefined when it may. @param waitedMs how long it has waited so far */
  findHold(uid: PodUID, pod: Pod, waitedMs: number): WaitingReason | undefined;
  /** Whether another pod of its controller is Ready. */
  isSubstituted(worker: PodWorker): boolean;
  onStatus(worker: PodWorker): void;
  /** {@link PodWorker.rollout} changed, or there is a new revision. */
  onRollout(worker: PodWorker): void;
  /** Stopped and cleaned up; the worker has no further use. */
  onGone(worker: PodWorker): void;
}

/** When and how a pod was asked to be deleted; metadata of the API. */
export interface DeletionInfo {
  /** End of the grace period. Wall time. */
  timestamp: Date;
  gracePeriodSeconds: number;
}

const PLAN_RETRY_MS = 10_000;
/** Pause after a clean-up that failed, twice as long each time: the disk may stay broken for months. */
const CLEANUP_RETRY_MS = { first: 2_000, longest: 60_000 };
/** A clean-up that goes on failing is logged once in this time. */
const CLEANUP_LOG_MS = 3_600_000;

/**
 * Keeps one pod in its desired state. A sync reads the cache, plans, and starts the actions; it never waits. The results
 * of an action are seen by the next sync, which is triggered by the end of the action, an event of the engine, a probe
 * result, an edit, or the time named by the plan.
 */
export class PodWorker {
  readonly ref: PodRef;
  readonly #deps: PodWorkerDeps;
  readonly #owner: PodWorkerOwner;
  readonly #state: PodSyncState;
  readonly #actions: PodActions;
  readonly #status: PodStatusTracker;
  readonly #timer: PodWorkTimer;
  readonly #stop = new AbortController();
  /** The revision as it was given: {@link revision} has the probes of images, too. */
  #given: PodRevision | undefined;
  #isSyncDue = false;
  #cancelTimer = () => {};
  #end: PodEnd | undefined;
  #halted: { end: PodEnd; atRest: PromiseWithResolvers<void> } | undefined;
  /** Since when it has waited for the pods it depends on. Monotonic. */
  #holdSinceMs: number | undefined;
  #reportedHold: string | undefined;
  deletion: DeletionInfo | undefined;
  /** Upper limit of the pod's own grace period. */
  #maxGraceSeconds = Number.POSITIVE_INFINITY;
  /** In place of the pod's own grace period and the limit. */
  #exactGraceSeconds: number | undefined;
  /** Containers are being removed: the status keeps what they ended with. */
  #isClearing = false;
  #isTearingDown = false;
  #cleanupLoggedMs = Number.NEGATIVE_INFINITY;
  readonly #cleanupBackOff = new BackOff(CLEANUP_RETRY_MS);

  constructor(ref: PodRef, deps: PodWorkerDeps, owner: PodWorkerOwner, status = new PodStatusTracker(deps)) {
    this.ref = ref;
    this.#deps = deps;
    this.#owner = owner;
    this.#state = new PodSyncState(deps.cache.exitedAtMs);
    this.#status = status;
    this.#timer = new PodWorkTimer(deps);
    this.#actions = new PodActions(ref, deps, this.#state, () => this.wake(), this.#stop.signal);
  }

  /** The last computed status; undefined before the first sync and for orphans. */
  get status(): PodStatus | undefined {
    return this.#status.status;
  }

  get revision(): PodRevision | undefined {
    return this.#state.revision;
  }

  /** The pod is being deleted, which cannot be undone. */
  get isRemoving(): boolean {
    return this.deletion !== undefined;
  }

  get rollout(): RolloutProgress {
    if (this.revision?.isToBeReplaced) return "pending";
    return this.#status.progressOf(this.revision, this.snapshot, this.#end !== undefined);
  }

  get snapshot(): PodSnapshot {
    return this.#deps.cache.get(this.ref);
  }

  /** Names of containers whose start cannot succeed without a change from outside, with the reason; "" is the sandbox. */
  get startErrors(): ReadonlyMap<string, { reason: string; message: string }> {
    const { sandboxError, startErrors } = this.#state;
    return sandboxError ? new Map([["", sandboxError]]) : startErrors;
  }

  /**
   * Sets the revision to run. Has no effect on a pod that is being deleted.
   * @param afterMs when the sync may begin: those of many pods would hold the loop in one turn
   * @returns whether it needs a sync
   */
  setRevision(revision: PodRevision, afterMs = 0): boolean {
    if (this.isRemoving) return false;
    const before = this.revision;
    // There is nothing to plan, unless the pod waits for others, which may have changed.
    if (this.#given === revision && this.#holdSinceMs === undefined) return false;
    this.#given = revision;
    this.#state.revision = revision;
    this.#addImageProbes(this.snapshot);
    if (before) this.#recordChanges(before, revision);
    const pending = pendingResizeOf(revision);
    if (pending && pendingResizeOf(before)?.message !== pending.message)
      this.#actions.record("Warning", `Resize${pending.reason}`, pending.message ?? "");
    if (before === undefined) {
      const { clock } = this.#deps;
      this.#timer.added(revision.pod.spec.containers.length, this.#owner.desiredSinceMs(this.ref.uid));
      // Containers that already exist are taken over as they are.
      const { snapshot } = this;
      this.#end = this.#status.adopt(revision, snapshot);
      // Its completion is of an earlier revision: at our next restart this one has begun.
      if (!this.#end) this.#deps.records.completions.delete(this.ref.uid);
      this.#state.recoverBackOff({ ...revision, snapshot, now: clock.now(), nowMs: clock.monotonicMs() });
    } else if (before.runRevision !== revision.runRevision && this.#end) {
      this.#end = undefined;
      delete this.#state.stoppingSinceMs;
      this.#status.restart();
      this.#deps.records.completions.delete(this.ref.uid);
    }
    if (before?.objectsRevision !== revision.objectsRevision || before.runRevision !== revision.runRevision) {
      if (before) this.#timer.edited();
      this.#state.forgetFailures();
    }
    if (afterMs === 0) this.wake();
    else this.#wakeAt(this.#deps.clock.monotonicMs() + afterMs);
    return true;
  }

  /** Containers cannot be moved to the cgroup of another QoS class, so the pod starts again. */
  #recordChanges(before: PodRevision, { pod, objects, hashes, qosClass }: PodRevision): void {
    if (!Bun.deepEquals(before.hashes.containers, hashes.containers)) {
      for (const source of changedSources(pod, before.objects, objects))
        this.#actions.record("Normal", "EnvironmentChanged", `${source} changed, whose values its environment has`);
    }
    if (before.qosClass === qosClass) return;
    const message = `QoS class changes from ${before.qosClass} to ${qosClass}: the pod starts again in a new sandbox`;
    this.#actions.record("Normal", "QOSClassChanged", message);
  }

  /** Stops the pod and removes all of it. Cannot be undone; `onGone` is called when it is done. */
  remove(): void {
    if (this.isRemoving) return;
    this.#setDeletion(this.#graceSeconds(this.snapshot));
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.wake();
  }

  /**
   * Limits the pod's own grace period. To be called before {@link remove}; a shorter exact period counts later, too.
   * @param isExact the pod's own grace period does not count, as with `kubectl delete --grace-period`
   */
  limitGrace(seconds: number, isExact = false): void {
    if (!isExact) this.#maxGraceSeconds = seconds;
    else this.#exactGraceSeconds = seconds;
    if (!isExact || !this.deletion || seconds >= this.deletion.gracePeriodSeconds) return;
    // Containers that are being stopped are stopped again, with the shorter period.
    this.#setDeletion(seconds);
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.#state.killing.clear();
    this.wake();
  }

  #graceSeconds(snapshot: PodSnapshot): number {
    const own = this.revision?.pod.spec.terminationGracePeriodSeconds ?? orphanGraceSeconds(snapshot);
    return this.#exactGraceSeconds ?? Math.min(own, this.#maxGraceSeconds);
  }

  #setDeletion(gracePeriodSeconds: number): void {
    const endsAtMs = this.#deps.clock.now().getTime() + gracePeriodSeconds * 1000;
    this.deletion = { timestamp: new Date(endsAtMs), gracePeriodSeconds };
  }

  /**
   * Stops the pod and shows it as ended, but removes nothing, until {@link resume} or the next start of the kubelet. A
   * pod whose containers are never started twice has terminated by this.
   * @returns a promise that resolves when nothing of it runs any more
   */
  halt(end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#halted ??= { end, atRest: Promise.withResolvers() };
    if (!this.#end) this.#stopFromNow();
    this.#maxGraceSeconds = maxGraceSeconds;
    const hasBegun = this.snapshot.containers.some(({ startedAt }) => startedAt);
    if (!this.#end && this.revision && hasBegun && runsOnce(this.revision.pod.spec)) this.#terminate(end);
    this.wake();
    return this.#halted.atRest.promise;
  }

  resume(): void {
    if (!this.#halted) return;
    this.#halted = undefined;
    if (!this.#end) delete this.#state.stoppingSinceMs;
    this.#maxGraceSeconds = Number.POSITIVE_INFINITY;
    this.wake();
  }

  /**
   * Stops the containers within their grace period and starts them in a new sandbox.
   * @returns why it cannot; undefined: it has begun
   */
  restart(): string | undefined {
    const { restartPolicy = "Always" } = this.revision?.pod.spec ?? {};
    if (restartPolicy !== "Always") {
      return `has restartPolicy ${restartPolicy}: a container that is stopped may count as done; delete the pod and create it again`;
    }
    const sandbox = this.snapshot.sandboxes.find(({ state }) => state === "ready");
    if (!sandbox || this.isRemoving || this.#currentEnd) {
      return `does not run now: kubelet-ts explain ${this.ref.name} says why`;
    }
    this.#state.replacedSandbox = sandbox.id;
    this.wake();
    return undefined;
  }

  /**
   * Ends the pod as a client has written, unless it has ended.
   * @returns whether that is stored, so that the next process knows it; else it was not done
   */
  async setEnd({ phase, reason, message }: PodEnd): Promise<boolean> {
    const { revision, status, ref } = this;
    const hasEnded = () => this.#currentEnd !== undefined || this.isRemoving || this.revision !== revision;
    if (!revision || !status || hasEnded()) return true;
    const end = { phase, ...(reason && { reason }), ...(message && { message }) };
    const { completions } = this.#deps.records;
    completions.set(ref.uid, { runRevision: revision.runRevision, end, status: { ...status, ...end } });
    const isStored = await completions.saved();
    if (hasEnded()) return true;
    if (isStored) this.#terminate(end);
    else completions.delete(ref.uid);
    this.#owner.onStatus(this);
    this.wake();
    return isStored;
  }

  /**
   * Takes the conditions that clients have set in place of those before. Only for a pod that has a status.
   * @returns a promise that resolves when they are stored, or could not be
   */
  setForeign(foreign: readonly PodCondition[]): Promise<unknown> {
    const { completions, conditions } = this.#deps.records;
    const completion = this.#status.setForeign(foreign);
    if (completion) completions.set(this.ref.uid, completion);
    this.#owner.onStatus(this);
    this.wake();
    return Promise.all([completions.saved(), conditions.saved()]);
  }

  /** Dead containers that may be removed when the node has too many: those of a deleted pod tell how it ends, and go with it. */
  deadContainers(): DeadContainer[] {
    if (this.isRemoving) return [];
    return findDeadContainers(this.ref.uid, this.snapshot, this.#state, this.#end === undefined);
  }

  removeDead({ id, name }: DeadContainer): void {
    this.#actions.perform({ kind: "remove-container", id, name }, this.revision);
  }

  /** Schedules a sync. Several calls in one turn of the event loop make one sync. */
  wake(): void {
    if (this.#isSyncDue || this.#stop.signal.aborted) return;
    this.#isSyncDue = true;
    queueMicrotask(() => {
      this.#isSyncDue = false;
      if (!this.#stop.signal.aborted) this.#syncOrRetry();
    });
  }

  /** Replaces the time of the next sync. @param atMs monotonic; undefined: there is none until {@link wake} */
  #wakeAt(atMs: number | undefined): void {
    this.#cancelTimer();
    if (atMs === undefined || this.#stop.signal.aborted) return;
    const { clock } = this.#deps;
    this.#cancelTimer = clock.schedule(Math.max(0, atMs - clock.monotonicMs()), () => this.wake());
  }

  /** Retries failed steps at once: the engine is back, or an image appeared. */
  retryNow(): void {
    this.#state.forgetFailures();
    this.wake();
  }

  /** Starts nothing more; running actions and containers continue. */
  detach(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelTimer();
  }

  #syncOrRetry(): void {
    try {
      const { snapshot } = this;
      this.#addImageProbes(snapshot);
      const { revision } = this;
      this.#state.prune(new Set(snapshot.containers.map(({ id }) => id)));
      if (this.isRemoving) this.#syncRemoval(snapshot, revision);
      else if (revision) this.#sync(revision, snapshot);
    } catch (error) {
      this.#deps.logger.error(`Cannot plan pod "${podFullName(this.ref)}": ${messageOf(error)}`);
      this.#wakeAt(this.#deps.clock.monotonicMs() + PLAN_RETRY_MS);
    }
  }

  /** Images are known when their containers have been created. The revision stays the same object while they say the same. */
  #addImageProbes({ containers }: PodSnapshot): void {
    const pod = this.#given && withImageProbes(this.#given.pod, containers);
    if (!this.#given || !pod || pod === this.revision?.pod || Bun.deepEquals(pod, this.revision?.pod)) return;
    this.#state.revision = { ...this.#given, pod };
  }

  #sync(revision: PodRevision, snapshot: PodSnapshot): void {
    this.#actions.readTerminationMessages(snapshot, revision.pod);
    this.#actions.learnImages(snapshot);
    if (!this.#currentEnd && this.#removeShutdownTerminated(revision, snapshot)) return;
    const hold = this.#findHold(revision.pod, snapshot);
    const plan = this.#plan(revision, snapshot, hold);
    this.#status.notePlanned(revision);
    if (plan.end && !this.#currentEnd) this.#terminate(plan.end);
    for (const action of plan.actions) this.#actions.perform(action, revision);
    if (!this.#currentEnd) {
      this.#deps.probes.update(revision.pod, snapshot, this.#state.postStartPending);
      this.#actions.refreshVolumes(revision, snapshot);
      this.#actions.removeUnusedVolumes(revision, snapshot);
    }
    if (this.#end) this.#actions.releaseVolumes(revision, snapshot);
    this.#updateStatus(revision, snapshot, plan, hold);
    this.#timer.synced(this.#state.isIdle);
    this.#noteAtRest(snapshot);
    if (this.#status.noteProgress(this.rollout)) this.#owner.onRollout(this);
    this.#wakeAt(earliest(plan.recheckAtMs, this.#holdTimeoutAtMs(revision.pod)));
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
      maxGraceSeconds: this.#maxGraceSeconds,
      ...(this.#currentEnd && { end: this.#currentEnd }),
      ...(hold && { hold }),
    });
  }

  /** Why the pod may not start now: it waits for the pods it depends on. */
  #findHold(pod: Pod, { containers }: PodSnapshot): WaitingReason | undefined {
    const nowMs = this.#deps.clock.monotonicMs();
    const isDown = !containers.some(isRunning) && this.#state.starting.size === 0;
    const mayWait = isDown && !this.#currentEnd;
    const hold = mayWait ? this.#owner.findHold(this.ref.uid, pod, nowMs - (this.#holdSinceMs ?? nowMs)) : undefined;
    this.#holdSinceMs = hold && (this.#holdSinceMs ?? nowMs);
    return hold;
  }

  /** When the reason of the hold changes because its time has elapsed; undefined: it does not. */
  #holdTimeoutAtMs(pod: Pod): number | undefined {
    if (this.#holdSinceMs === undefined) return undefined;
    const atMs = this.#holdSinceMs + dependencyTimeoutMs(pod);
    return atMs > this.#deps.clock.monotonicMs() ? atMs : undefined;
  }

  /** Removes containers whose exit says nothing, so that they run again. @returns whether there was one */
  #removeShutdownTerminated(revision: PodRevision, { containers }: PodSnapshot): boolean {
    // Stopped by a shutdown of the machine: their exit codes say nothing about their work.
    const misleading = findMisleadingExits(revision.pod.spec, containers, this.#deps.records.shutdownTerminated);
    for (const { id, name } of misleading) {
      if (!this.#state.removing.has(id)) this.#actions.perform({ kind: "remove-container", id, name }, revision);
    }
    return misleading.length > 0;
  }

  get #currentEnd(): PodEnd | undefined {
    return this.#end ?? this.#halted?.end;
  }

  #terminate(end: PodEnd): void {
    this.#end = end;
    this.#stopFromNow();
    const { phase, reason, message = "" } = end;
    if (reason && reason === DEADLINE_EXCEEDED.reason) this.#actions.record("Normal", reason, message);
    this.#deps.logger.info(`Pod "${podFullName(this.ref)}" ended: ${phase}${reason ? ` (${reason})` : ""}`);
  }

  #stopFromNow(): void {
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.#deps.probes.remove(this.ref.uid);
  }

  /** Events of containers that ended. The end of one that was killed has its reason in `Killing`. */
  #recordExits(before: PodStatus, now: PodStatus): void {
    // An end with a reason, e.g. Evicted, killed the containers.
    if (this.isRemoving || this.#currentEnd?.reason) return;
    const known = new Set(endsOf(before).map(({ containerID }) => containerID));
    for (const { name, containerID = "", exitCode, reason } of endsOf(now)) {
      if (known.has(containerID) || this.#state.killedToRestart.has(containerIdOf(containerID))) continue;
      const why = reason === "OOMKilled" ? ` (${reason})` : "";
      const message = `Container ${name} exited with code ${exitCode}${why}`;
      this.#actions.record(exitCode === 0 ? "Normal" : "Warning", "Exited", message, name);
    }
  }

  /** Resolves the promise of {@link halt} when no container runs. */
  #noteAtRest({ containers, sandboxes }: PodSnapshot): void {
    const isUp = containers.some(isRunning) || sandboxes.some(({ state }) => state === "ready");
    if (this.#state.isIdle && !isUp) this.#halted?.atRest.resolve();
  }

  #syncRemoval(snapshot: PodSnapshot, revision: PodRevision | undefined): void {
    this.#deps.probes.remove(this.ref.uid);
    const actions = computeStopActions({
      snapshot,
      state: this.#state,
      nowMs: this.#deps.clock.monotonicMs(),
      reason: "PodRemoved",
      graceSeconds: this.#graceSeconds(snapshot),
      sidecars: sidecarNames(revision?.pod.spec.initContainers),
      remove: true,
    });
    this.#isClearing ||= actions.some(({ kind }) => kind === "remove-container");
    if (revision && snapshot.containers.length > 0 && !this.#isClearing)
      this.#updateStatus(revision, snapshot, { waiting: new Map() });
    for (const action of actions) this.#actions.perform(action, revision);
    if (snapshot.containers.length + snapshot.sandboxes.length > 0) return;
    if (this.#state.isIdle) this.#tearDown();
    this.#halted?.atRest.resolve();
  }

  /** Removes what the pod has besides its containers: volumes, directories, cgroup, log links. */
  #tearDown(): void {
    if (this.#isTearingDown) return;
    this.#isTearingDown = true;
    const { services, logger, clock } = this.#deps;
    const done = () => {
      this.detach();
      this.#owner.onGone(this);
    };
    services.tearDown(this.ref.uid, this.ref, this.#stop.signal).then(done, (error: Error) => {
      if (this.#stop.signal.aborted) return;
      const nowMs = clock.monotonicMs();
      if (nowMs - this.#cleanupLoggedMs >= CLEANUP_LOG_MS) {
        logger.warn(`Cannot clean up after pod "${podFullName(this.ref)}", retrying: ${error.message}`);
        this.#cleanupLoggedMs = nowMs;
      }
      this.#isTearingDown = false;
      this.#wakeAt(nowMs + this.#cleanupBackOff.next());
    });
  }

  #updateStatus(
    revision: PodRevision,
    snapshot: PodSnapshot,
    plan: Pick<PodPlan, "waiting">,
    hold?: WaitingReason,
  ): void {
    // The end of a container is published together with its termination message, whose reading ends with a sync.
    if (this.status && this.#state.reading.size > 0) return;
    const before = this.status;
    const { isChanged, completion } = this.#status.update({
      revision,
      snapshot,
      plan,
      probes: this.#deps.probes.states(this.ref.uid),
      state: this.#state,
      end: this.#end,
      halt: this.#halted?.end,
      hold,
      isSubstituted: () => this.#owner.isSubstituted(this),
    });
    if (completion) this.#deps.records.completions.set(this.ref.uid, completion);
    if (!isChanged) return;
    // Once for each dependency that is waited for, and once more when its time has elapsed.
    if (hold && hold.message !== this.#reportedHold)
      this.#actions.record(hold.reason === "WaitingForDependency" ? "Normal" : "Warning", hold.reason, hold.message);
    this.#reportedHold = hold?.message;
    this.#timer.showed(this.#status.status?.phase);
    if (before) this.#recordExits(before, this.#status.status!);
    for (const [name, { reason }] of plan.waiting) {
      if (reason === "CrashLoopBackOff") {
        this.#actions.record("Warning", "BackOff", "Back-off restarting failed container", name);
      }
    }
    this.#owner.onStatus(this);
  }
}

/** How the containers of a pod ended, the current ones and those before them. */
const endsOf = (status: PodStatus) =>
  statusesOf(status).flatMap(({ name, state, lastState }) =>
    [lastState?.terminated, state.terminated].flatMap((end) => (end?.containerID ? { name, ...end } : [])),
  );

const containerIdOf = (containerID: string): ContainerId => containerID.replace(/^docker:\/\//, "") as ContainerId;

const earliest = (a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);

/** The trigger of the work: a pod that is new to this process, an edit, or anything else (an exit, a probe, the engine). */
type PodWorkKind = "create" | "update" | "sync";

/**
 * Times the work of one pod worker, for the metrics. A sync never waits, so upstream's "sync" corresponds to a period here:
 * from the edit, or from the first action when there was no edit, to the sync that finds nothing under way. An edit that
 * needs no action takes no time.
 */
class PodWorkTimer {
  readonly #clock: Clock;
  readonly #metrics: KubeletMetrics;
  #open: { kind: PodWorkKind; sinceMs: number } | undefined;
  #desiredSinceMs = 0;
  #phase: string | undefined;

  constructor({ clock, metrics }: Pick<PodWorkerDeps, "clock" | "metrics">) {
    this.#clock = clock;
    this.#metrics = metrics;
  }

  /** A pod was given to its worker. @param desiredSinceMs when it was first desired, monotonic */
  added(containers: number, desiredSinceMs: number): void {
    this.#desiredSinceMs = desiredSinceMs;
    this.#open = { kind: "create", sinceMs: this.#clock.monotonicMs() };
    this.#metrics.containersPerPod.observe(containers);
    this.#metrics.podWorkerStartDuration.observe(this.#secondsSince(desiredSinceMs));
  }

  /** The pod was edited. An edit during the work for another edit extends that period. */
  edited(): void {
    if (this.#open && this.#open.kind !== "sync") return;
    this.#open = { kind: "update", sinceMs: this.#clock.monotonicMs() };
  }

  synced(isIdle: boolean): void {
    if (!isIdle) {
      this.#open ??= { kind: "sync", sinceMs: this.#clock.monotonicMs() };
      return;
    }
    if (this.#open) this.#metrics.podWorkerDuration.observe(this.#secondsSince(this.#open.sinceMs), [this.#open.kind]);
    this.#open = undefined;
  }

  /** The status has this phase now. A pod that was running before this process is not counted as started. */
  showed(phase: string | undefined): void {
    if (this.#phase === "Pending" && phase === "Running") {
      this.#metrics.podStartDuration.observe(this.#secondsSince(this.#desiredSinceMs));
    }
    this.#phase = phase;
  }

  #secondsSince(ms: number): number {
    return (this.#clock.monotonicMs() - ms) / 1000;
  }
}
