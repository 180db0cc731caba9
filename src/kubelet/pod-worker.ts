import type { Pod, PodSpec, PodStatus } from "../api/pod.ts";
import type { PodRef } from "../model/container-runtime.ts";
import { containersOf, findContainer } from "../model/pod-containers.ts";
import type { ContainerId, ContainerSnapshot, PodSnapshot } from "../model/pod-snapshot.ts";
import { computePodActions, DEADLINE_EXCEEDED, sidecarNames } from "../plan/compute-pod-actions.ts";
import { attemptsOf, isRunning, isTerminated } from "../plan/container-history.ts";
import type { DeadContainer } from "../plan/dead-container-limit.ts";
import { ENDED_BY_SHUTDOWN } from "../plan/node-shutdown.ts";
import type { ContainerProbeState, PodEnd, PodPlan } from "../plan/pod-plan.ts";
import { decideRestart, restartsOnFailure } from "../plan/restart-policy.ts";
import { computeStopActions } from "../plan/stop-pod.ts";
import { backOffKey } from "../plan/sync-state.ts";
import { computePodStatus } from "../status/compute-pod-status.ts";
import { PodActionRunner, type PodActionRunnerDeps } from "./pod-action-runner.ts";
import type { Completion, PodRevision } from "./pod-revision.ts";
import { PodSyncState } from "./pod-sync-state.ts";
import { type PodWorkCounter, PodWorkTimer } from "./pod-work-timer.ts";

/** The prober as a worker sees it. */
export interface PodProbes {
  /** @param heldBack containers whose postStart hook is not over: no probe looks at them yet */
  update(pod: Pod, snapshot: PodSnapshot, heldBack: ReadonlySet<string>): void;
  remove(uid: string): void;
  states(uid: string): ReadonlyMap<string, ContainerProbeState>;
}

export interface PodWorkerDeps extends PodActionRunnerDeps {
  probes: PodProbes;
  /** Containers that a shutdown of the machine ended: what they ended with says nothing of their work. */
  shutdownTerminated: ReadonlySet<ContainerId>;
  /** Address of the node, "" while unknown. */
  hostIp: () => string;
  /** When the pod was first wanted as it is now. Monotonic. */
  desiredSinceMs: () => number;
  work?: PodWorkCounter;
  /** The status changed (compare by identity). */
  onStatus: (worker: PodWorker) => void;
  /** A pod came to its end, or runs again after an edit (undefined). */
  onCompletion: (worker: PodWorker, completion: Completion | undefined) => void;
  /** Stopped and cleaned up; the worker is of no more use. */
  onGone: (worker: PodWorker) => void;
}

const PLAN_RETRY_MS = 10_000;

/**
 * Keeps one pod as it should be. A pass looks at the cache, plans, and lets the actions begin; it never waits. What an
 * action brings about is seen by the next pass, which comes with the end of the action, an event of the engine, a probe
 * result, an edit, or the time the plan named.
 */
export class PodWorker {
  readonly ref: PodRef;
  readonly #deps: PodWorkerDeps;
  readonly #state: PodSyncState;
  readonly #actions: PodActionRunner;
  readonly #timer: PodWorkTimer;
  readonly #stop = new AbortController();
  #revision: PodRevision | undefined;
  #isRemoving = false;
  #isTearingDown = false;
  #maxGraceSeconds = Number.POSITIVE_INFINITY;
  #isScheduled = false;
  #cancelRecheck: (() => void) | undefined;
  #end: PodEnd | undefined;
  #halt: { end: PodEnd; atRest: PromiseWithResolvers<void> } | undefined;
  #restored: Completion | undefined;
  #status: PodStatus | undefined;
  #startTime: Date | undefined;
  #startedAtMs = 0;
  #lastPodIps: readonly string[] = [];

  constructor(ref: PodRef, deps: PodWorkerDeps, restored?: Completion) {
    this.ref = ref;
    this.#deps = deps;
    this.#state = new PodSyncState(deps.cache.exitedAtMs);
    this.#restored = restored;
    this.#timer = new PodWorkTimer(deps.clock, deps.work);
    this.#actions = new PodActionRunner(ref, this.#state, deps, {
      revision: () => this.#revision,
      mayStart: () => !this.#isRemoving && !this.#currentEnd,
      wake: () => this.wake(),
      signal: this.#stop.signal,
    });
  }

  /** The last computed status; undefined before the first pass and for pods nobody wants. */
  get status(): PodStatus | undefined {
    return this.#status;
  }

  get revision(): PodRevision | undefined {
    return this.#revision;
  }

  /** On its way out, for good. */
  get isRemoving(): boolean {
    return this.#isRemoving;
  }

  get snapshot(): PodSnapshot {
    return this.#deps.cache.get(this.ref);
  }

  /** Names of containers whose start cannot succeed without somebody's help, with why. For --runonce. */
  get startErrors(): ReadonlyMap<string, { reason: string; message: string }> {
    const { sandboxError, startErrors } = this.#state;
    return sandboxError ? new Map([["", sandboxError]]) : startErrors;
  }

  /** Gives the pod a (new) revision to live up to. Has no effect on a pod that is being removed. */
  setRevision(revision: PodRevision): void {
    if (this.#isRemoving) return;
    const before = this.#revision;
    this.#revision = revision;
    if (before === undefined) {
      this.#timer.added(revision.pod.spec.containers.length, this.#deps.desiredSinceMs());
      this.#adopt(revision);
    } else if (before.runRevision !== revision.runRevision && this.#end) {
      this.#end = undefined;
      this.#restored = undefined;
      this.#beginAt(this.#deps.clock.now());
      delete this.#state.stoppingSinceMs;
      this.#deps.onCompletion(this, undefined);
    }
    if (before?.objectsRevision !== revision.objectsRevision || before.runRevision !== revision.runRevision) {
      if (before) this.#timer.edited();
      this.#state.forgetFailures();
    }
    this.wake();
  }

  /** Stops the pod and removes all of it. A removal cannot be taken back; `onGone` tells when it is done. */
  remove(): void {
    if (this.#isRemoving) return;
    this.#isRemoving = true;
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.wake();
  }

  /** Stops within at most so many seconds, whatever the pod's own grace period says. Call it before {@link remove}. */
  limitGrace(seconds: number): void {
    this.#maxGraceSeconds = seconds;
  }

  /**
   * Stops the pod and shows it as ended, but removes nothing, until {@link resume} or the next start of the kubelet. A
   * pod whose containers are never started twice has come to its end by this.
   * @returns a promise that resolves when nothing of it runs any more
   */
  halt(end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#halt ??= { end, atRest: Promise.withResolvers() };
    this.#maxGraceSeconds = maxGraceSeconds;
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
    this.#maxGraceSeconds = Number.POSITIVE_INFINITY;
    if (!this.#end) delete this.#state.stoppingSinceMs;
    this.wake();
  }

  /** Dead containers that could go for want of room. */
  deadContainers(): DeadContainer[] {
    const { containers } = this.snapshot;
    const isOver = this.#end !== undefined || this.#isRemoving;
    return containers
      .filter(({ id, state }) => state === "exited" && !this.#state.removing.has(id))
      .map(({ id, name, createdAt }) => ({
        podUid: this.ref.uid,
        name,
        id,
        createdAt,
        exitedAtMs: this.#state.exitedAtMs.get(id) ?? Number.NEGATIVE_INFINITY,
        isNeeded: !isOver && containers.find((one) => one.name === name)?.id === id,
      }));
  }

  /** Removes one of them. */
  removeDead({ id, name }: DeadContainer): void {
    this.#actions.perform({ kind: "remove-container", id, name }, this.#revision);
  }

  /** Looks again soon. Many calls in a row make one pass. */
  wake(): void {
    if (this.#isScheduled || this.#stop.signal.aborted) return;
    this.#isScheduled = true;
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#stop.signal.aborted) return;
      try {
        this.#pass();
      } catch (error) {
        this.#deps.logger.error(`Cannot plan pod "${this.#fullName}": ${(error as Error).message}`);
        this.#recheckAt(this.#deps.clock.monotonicMs() + PLAN_RETRY_MS);
      }
    });
  }

  /** What failed for want of something may be tried again at once: the engine is back, an image appeared. */
  retryNow(): void {
    this.#state.forgetFailures();
    this.wake();
  }

  /** Lets go: nothing more is begun, nothing that runs is touched. */
  detach(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelRecheck?.();
  }

  get #fullName(): string {
    return `${this.ref.namespace}/${this.ref.name}`;
  }

  #pass(): void {
    const snapshot = this.snapshot;
    this.#state.prune(new Set(snapshot.containers.map(({ id }) => id)));
    if (this.#isRemoving) return this.#passRemoval(snapshot);
    const revision = this.#revision;
    if (!revision) return;
    this.#actions.readTerminationMessages(snapshot, revision.pod);
    this.#actions.learnImages(snapshot);

    if (!this.#currentEnd && this.#removeMisleading(revision, snapshot)) return;
    const plan = this.#plan(revision, snapshot);
    if (plan.end && !this.#currentEnd) this.#noteEnd(plan.end);
    // The status of a pod that ended is written once more when the last container is at rest; then it is remembered.
    for (const action of plan.actions) this.#actions.perform(action, revision);
    if (!this.#currentEnd) {
      this.#deps.probes.update(revision.pod, snapshot, this.#state.postStartPending);
      this.#actions.refreshVolumes(revision, snapshot);
      this.#actions.removeUnusedVolumes(revision, snapshot);
    }
    if (this.#end) this.#actions.releaseVolumes(revision, snapshot);
    this.#publish(revision, snapshot, plan);
    this.#timer.passed(this.#state.isIdle);
    this.#noteHalted(snapshot);
    this.#recheckAt(plan.recheckAtMs);
  }

  #plan(revision: PodRevision, snapshot: PodSnapshot): PodPlan {
    const deadlineSeconds = revision.pod.spec.activeDeadlineSeconds;
    return computePodActions({
      pod: revision.pod,
      hashes: revision.hashes,
      snapshot,
      probes: this.#deps.probes.states(this.ref.uid),
      state: this.#state,
      nowMs: this.#deps.clock.monotonicMs(),
      options: revision.options,
      ...(deadlineSeconds !== undefined && { deadlineAtMs: this.#startedAtMs + deadlineSeconds * 1000 }),
      maxGraceSeconds: this.#maxGraceSeconds,
      ...(this.#currentEnd && { end: this.#currentEnd }),
    });
  }

  /** How the pod ended, for good or for as long as it is halted. */
  get #currentEnd(): PodEnd | undefined {
    return this.#end ?? this.#halt?.end;
  }

  #noteHalted({ containers, sandboxes }: PodSnapshot): void {
    if (!this.#state.isIdle || containers.some(isRunning)) return;
    if (sandboxes.every(({ state }) => state !== "ready")) this.#halt?.atRest.resolve();
  }

  /**
   * A container that ended well because a shutdown told it to would count as done: without it, the pod begins anew.
   * @returns whether there is one left
   */
  #removeMisleading({ pod: { spec } }: PodRevision, { containers }: PodSnapshot): boolean {
    const { shutdownTerminated } = this.#deps;
    const misleading = containers.filter(
      (it) => shutdownTerminated.has(it.id) && isTerminated(it) && it.exitCode === 0 && countsAsDone(spec, it.name),
    );
    for (const { id, name } of misleading) {
      if (!this.#state.removing.has(id)) this.#actions.perform({ kind: "remove-container", id, name }, this.#revision);
    }
    return misleading.length > 0;
  }

  #passRemoval(snapshot: PodSnapshot): void {
    this.#deps.probes.remove(this.ref.uid);
    const pod = this.#revision?.pod;
    const actions = computeStopActions({
      snapshot,
      state: this.#state,
      nowMs: this.#deps.clock.monotonicMs(),
      reason: "PodRemoved",
      graceSeconds: Math.min(
        pod?.spec.terminationGracePeriodSeconds ?? orphanGraceSeconds(snapshot),
        this.#maxGraceSeconds,
      ),
      sidecars: sidecarNames(pod?.spec.initContainers),
      remove: true,
    });
    for (const action of actions) this.#actions.perform(action, this.#revision);
    const isEmpty = snapshot.containers.length + snapshot.sandboxes.length === 0;
    if (isEmpty) this.#halt?.atRest.resolve();
    if (isEmpty && this.#state.isIdle && !this.#isTearingDown) this.#tearDown();
  }

  #tearDown(): void {
    this.#isTearingDown = true;
    const { services, logger } = this.#deps;
    services.tearDown(this.ref.uid, this.ref, this.#stop.signal).then(
      () => {
        this.detach();
        this.#deps.onGone(this);
      },
      (error: Error) => {
        if (this.#stop.signal.aborted) return;
        logger.warn(`Cannot clean up after pod "${this.#fullName}", will try again: ${error.message}`);
        this.#isTearingDown = false;
        this.#recheckAt(this.#deps.clock.monotonicMs() + 2000);
      },
    );
  }

  #noteEnd(end: PodEnd): void {
    this.#end = end;
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.#deps.probes.remove(this.ref.uid);
    if (end.reason && end.reason === DEADLINE_EXCEEDED.reason)
      this.#actions.record("Normal", end.reason, end.message ?? "");
    this.#deps.logger.info(`Pod "${this.#fullName}" ended: ${end.phase}${end.reason ? ` (${end.reason})` : ""}`);
  }

  #publish(revision: PodRevision, snapshot: PodSnapshot, plan: PodPlan): void {
    const ips = snapshot.sandboxes[0]?.ips ?? [];
    if (ips.length > 0) this.#lastPodIps = ips;
    const waiting = new Map([...this.#state.startErrors, ...plan.waiting]);
    if (this.#state.sandboxError) {
      for (const { name } of containersOf(revision.pod.spec)) {
        waiting.set(name, { reason: "ContainerCreating", message: this.#state.sandboxError.message });
      }
    }
    const { postStartPending, postStartFailed } = this.#state;
    const pending = snapshot.containers.filter(({ id }) => postStartPending.has(id) || postStartFailed.has(id));
    const remembered = this.#rememberedStatus(snapshot);
    const previous = this.#status ?? this.#restored?.status;
    const status =
      remembered ??
      computePodStatus({
        pod: revision.pod,
        snapshot,
        qosClass: revision.qosClass,
        probes: this.#deps.probes.states(this.ref.uid),
        waiting,
        postStartPending: new Set(pending.map(({ name }) => name)),
        terminationMessages: this.#state.terminationMessages,
        imageNames: this.#deps.imageNames,
        lastPodIps: this.#lastPodIps,
        hostIp: this.#deps.hostIp(),
        startTime: this.#startTime!,
        ...(this.#currentEnd && { end: this.#currentEnd }),
        ...(previous && { previous }),
        extraConditions: [...(revision.extraConditions ?? []), ...disruptionOf(this.#currentEnd)],
        now: this.#deps.clock.now(),
      });
    if (this.#end && !remembered && this.#isAtRest(snapshot) && !Bun.deepEquals(status, this.#restored?.status)) {
      this.#restored = { runRevision: revision.runRevision, end: this.#end, status };
      this.#deps.onCompletion(this, this.#restored);
    }
    if (this.#status && Bun.deepEquals(status, this.#status)) return;
    this.#status = status;
    this.#timer.showed(status.phase);
    for (const [name, { reason }] of plan.waiting) {
      if (reason === "CrashLoopBackOff")
        this.#actions.record("Warning", "BackOff", "Back-off restarting failed container", name);
    }
    this.#deps.onStatus(this);
  }

  /** A finished pod keeps the status it ended with when somebody removes its containers. */
  #rememberedStatus({ containers }: PodSnapshot): PodStatus | undefined {
    const known = this.#end && (this.#restored?.status ?? this.#status);
    if (!known) return undefined;
    const names = new Set(containers.map(({ name }) => name));
    const all = [...(known.initContainerStatuses ?? []), ...(known.containerStatuses ?? [])];
    return all.some(({ name, containerID }) => containerID && !names.has(name)) ? known : undefined;
  }

  #isAtRest(snapshot: PodSnapshot): boolean {
    return !snapshot.containers.some(isRunning) && this.#state.killing.size === 0 && this.#state.reading.size === 0;
  }

  /** The first revision this worker gets: what the engine already holds of the pod is taken over as it is. */
  #adopt(revision: PodRevision): void {
    const { clock } = this.#deps;
    const snapshot = this.snapshot;
    // What ended before this revision is no part of its time.
    const isOver = this.#restored && this.#restored.runRevision !== revision.runRevision;
    this.#beginAt((!isOver && snapshot.sandboxes.at(-1)?.createdAt) || clock.now());
    if (this.#restored?.runRevision === revision.runRevision) {
      this.#end = this.#restored.end;
      this.#lastPodIps = (this.#restored.status.podIPs ?? []).flatMap(({ ip }) => ip ?? []);
    } else this.#restored = undefined;
    for (const [name, hash] of revision.hashes.containers) {
      const newest = attemptsOf(snapshot, name)[0];
      if (newest?.hash !== hash || newest.backOffMs === undefined) continue;
      // Our own restart neither forgives a crash loop nor prolongs it.
      const ranForMs = (newest.finishedAt ?? clock.now()).getTime() - (newest.startedAt ?? newest.createdAt).getTime();
      const endedAtMs = this.#state.exitedAtMs.get(newest.id) ?? clock.monotonicMs();
      const delayMs = Math.min(newest.backOffMs, revision.options.maxBackOffMs);
      this.#state.backOff.set(backOffKey(name, hash), { delayMs, updatedAtMs: endedAtMs - ranForMs });
    }
  }

  /** From here activeDeadlineSeconds counts. */
  #beginAt(startTime: Date): void {
    const { clock } = this.#deps;
    this.#startTime = startTime;
    this.#startedAtMs = clock.monotonicMs() - Math.max(0, clock.now().getTime() - startTime.getTime());
  }

  #recheckAt(atMs: number | undefined): void {
    this.#cancelRecheck?.();
    this.#cancelRecheck = undefined;
    if (atMs === undefined || this.#stop.signal.aborted) return;
    const delayMs = Math.max(0, atMs - this.#deps.clock.monotonicMs());
    this.#cancelRecheck = this.#deps.clock.schedule(delayMs, () => this.wake());
  }
}

/** Source: upstream's condition of API-initiated and kubelet-initiated ends, here of a shutdown. */
const disruptionOf = (end: PodEnd | undefined) =>
  end?.reason === ENDED_BY_SHUTDOWN.reason
    ? [
        {
          type: "DisruptionTarget",
          status: "True" as const,
          reason: "TerminationByKubelet",
          message: end.message ?? "",
        },
      ]
    : [];

/** No container is ever started a second time. */
const runsOnce = (spec: PodSpec) =>
  spec.restartPolicy === "Never" &&
  containersOf(spec).every(({ restartPolicy, restartPolicyRules }) => !restartPolicy && !restartPolicyRules);

/** Whether exit code 0 settles the container although another one would not. */
function countsAsDone(spec: PodSpec, name: string): boolean {
  const container = findContainer(spec, name);
  const isInit = spec.initContainers?.some((one) => one.name === name) ?? false;
  if (!container || !restartsOnFailure(spec, container, isInit)) return false;
  return decideRestart(spec, container, 0, { isInit }) === "leave";
}

/** Grace period of a pod that nobody knows any more: the longest any of its containers was promised. */
function orphanGraceSeconds(snapshot: PodSnapshot): number {
  const promised = snapshot.containers.map(graceOf).filter((seconds) => seconds !== undefined);
  return promised.length > 0 ? Math.max(...promised) : 30;
}

function graceOf({ labels }: ContainerSnapshot): number | undefined {
  const seconds = Number.parseInt(labels["annotation.io.kubernetes.pod.terminationGracePeriod"] ?? "", 10);
  return Number.isNaN(seconds) ? undefined : seconds;
}
