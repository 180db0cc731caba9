import type { Container, Pod, PodStatus, QOSClass } from "../api/pod.ts";
import type { Clock } from "../model/clock.ts";
import type { PodRef } from "../model/container-runtime.ts";
import type { ObjectIndex } from "../model/desired-pod.ts";
import type { Logger } from "../model/logger.ts";
import type { EventRecorder } from "../model/pod-event.ts";
import { type PodRequest, type PodServices, PodStepError, type StartContainerRequest } from "../model/pod-services.ts";
import type { ContainerSnapshot, PodSnapshot } from "../model/pod-snapshot.ts";
import { backOffFromHistory } from "../plan/back-off.ts";
import { computePodActions, DEADLINE_EXCEEDED, sidecarNames } from "../plan/compute-pod-actions.ts";
import { attemptsOf, isRunning, isTerminated } from "../plan/container-history.ts";
import { backOffKey } from "../plan/pod-memory.ts";
import type { ContainerProbeState, PodAction, PodEnd, PodHashes, PodPlan, PodPlanOptions } from "../plan/pod-plan.ts";
import { computeStopActions } from "../plan/stop-pod.ts";
import { computePodStatus } from "../status/compute-pod-status.ts";
import type { ImageNames } from "../status/container-status.ts";
import type { PodCache } from "./pod-cache.ts";
import { WorkerMemory } from "./worker-memory.ts";

/** What a worker is to keep running: one revision of one pod. */
export interface WantedPod {
  pod: Pod;
  objects: ObjectIndex;
  hashes: PodHashes;
  qosClass: QOSClass;
  options: PodPlanOptions;
  /** Changes when something changes that makes a finished pod run again. */
  runRevision: string;
  /** Changes when files made from ConfigMaps, Secrets or metadata may have to be written again. */
  objectsRevision: string;
  extraConditions?: readonly { type: string; status: "True" | "False"; reason?: string; message?: string }[];
}

/** How a pod came to its end, to be remembered across our restarts. */
export interface Completion {
  runRevision: string;
  end: PodEnd;
  status: PodStatus;
}

/** The prober as a worker sees it. */
export interface PodProbes {
  /** @param heldBack containers whose postStart hook is not over: no probe looks at them yet */
  update(pod: Pod, snapshot: PodSnapshot, heldBack: ReadonlySet<string>): void;
  remove(uid: string): void;
  states(uid: string): ReadonlyMap<string, ContainerProbeState>;
}

export interface PodWorkerDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  cache: PodCache;
  services: PodServices;
  probes: PodProbes;
  /** Address of the node, "" while unknown. */
  hostIp: () => string;
  /** What the engine calls an image, by id; asked for when it is missing. */
  imageNames: ReadonlyMap<string, ImageNames>;
  /** Fills `imageNames`. */
  learnImage: (imageId: string) => Promise<void>;
  /** The status changed (compare by identity). */
  onStatus: (worker: PodWorker) => void;
  /** A pod came to its end, or runs again after an edit (undefined). */
  onCompletion: (worker: PodWorker, completion: Completion | undefined) => void;
  /** Stopped and cleaned up; the worker is of no more use. */
  onGone: (worker: PodWorker) => void;
}

const SANDBOX_RETRY_MS = { first: 500, longest: 64_000 };
const START_RETRY_MS = 10_000;
/** A failed pull is shown for so long; then the image manager is asked again, and says ImagePullBackOff [oracle B 33]. */
const PULL_ERROR_SHOWN_MS = 2_000;

/**
 * Keeps one pod as it should be. A pass looks at the cache, plans, and lets the actions begin; it never waits. What an
 * action brings about is seen by the next pass, which comes with the end of the action, an event of the engine, a probe
 * result, an edit, or the time the plan named.
 */
export class PodWorker {
  readonly ref: PodRef;
  readonly #deps: PodWorkerDeps;
  readonly #memory: WorkerMemory;
  readonly #stop = new AbortController();
  #wanted: WantedPod | undefined;
  #isRemoving = false;
  #isTearingDown = false;
  #isScheduled = false;
  #cancelRecheck: (() => void) | undefined;
  #end: PodEnd | undefined;
  #restored: Completion | undefined;
  #status: PodStatus | undefined;
  #startTime: Date | undefined;
  #startedAtMs = 0;
  #lastPodIps: readonly string[] = [];
  #objectsRevision: string | undefined;
  #isRefreshing = false;
  /** Creates and starts of one pod happen in the order of its spec. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(ref: PodRef, deps: PodWorkerDeps, restored?: Completion) {
    this.ref = ref;
    this.#deps = deps;
    this.#memory = new WorkerMemory(deps.cache.exitedAtMs);
    this.#restored = restored;
  }

  /** The last computed status; undefined before the first pass and for pods nobody wants. */
  get status(): PodStatus | undefined {
    return this.#status;
  }

  get wanted(): WantedPod | undefined {
    return this.#wanted;
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
    const { sandboxError, startErrors } = this.#memory;
    return sandboxError ? new Map([["", sandboxError]]) : startErrors;
  }

  /** Gives the pod a (new) revision to live up to. Has no effect on a pod that is being removed. */
  want(wanted: WantedPod): void {
    if (this.#isRemoving) return;
    const before = this.#wanted;
    this.#wanted = wanted;
    if (before === undefined) this.#adopt(wanted);
    else if (before.runRevision !== wanted.runRevision && this.#end) {
      this.#end = undefined;
      this.#restored = undefined;
      delete this.#memory.stoppingSinceMs;
      this.#deps.onCompletion(this, undefined);
    }
    if (before?.objectsRevision !== wanted.objectsRevision || before.runRevision !== wanted.runRevision) {
      this.#memory.forgetFailures();
    }
    this.wake();
  }

  /** Stops the pod and removes all of it. A removal cannot be taken back; `onGone` tells when it is done. */
  remove(): void {
    if (this.#isRemoving) return;
    this.#isRemoving = true;
    this.#memory.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.wake();
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
        this.#recheckAt(this.#deps.clock.monotonicMs() + START_RETRY_MS);
      }
    });
  }

  /** What failed for want of something may be tried again at once: the engine is back, an image appeared. */
  retryNow(): void {
    this.#memory.forgetFailures();
    this.wake();
  }

  /** Lets go: nothing more is begun, nothing that runs is touched. */
  abandon(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelRecheck?.();
  }

  get #fullName(): string {
    return `${this.ref.namespace}/${this.ref.name}`;
  }

  #pass(): void {
    const snapshot = this.snapshot;
    this.#memory.keepOnly(new Set(snapshot.containers.map(({ id }) => id)));
    if (this.#isRemoving) return this.#passRemoval(snapshot);
    const wanted = this.#wanted;
    if (!wanted) return;
    this.#readLastWords(snapshot, wanted.pod);
    this.#learnImages(snapshot);

    const plan = this.#plan(wanted, snapshot);
    if (plan.end && !this.#end) this.#noteEnd(plan.end);
    // The status of a pod that ended is written once more when the last container is at rest; then it is remembered.
    for (const action of plan.actions) this.#perform(action, wanted);
    if (!this.#end) this.#deps.probes.update(wanted.pod, snapshot, this.#memory.postStartPending);
    this.#refreshVolumes(wanted, snapshot);
    this.#publish(wanted, snapshot, plan);
    this.#recheckAt(plan.recheckAtMs);
  }

  #plan(wanted: WantedPod, snapshot: PodSnapshot): PodPlan {
    const deadlineSeconds = wanted.pod.spec.activeDeadlineSeconds;
    return computePodActions({
      pod: wanted.pod,
      hashes: wanted.hashes,
      snapshot,
      probes: this.#deps.probes.states(this.ref.uid),
      memory: this.#memory,
      nowMs: this.#deps.clock.monotonicMs(),
      options: wanted.options,
      ...(deadlineSeconds !== undefined && { deadlineAtMs: this.#startedAtMs + deadlineSeconds * 1000 }),
      ...(this.#end && { end: this.#end }),
    });
  }

  #passRemoval(snapshot: PodSnapshot): void {
    this.#deps.probes.remove(this.ref.uid);
    const pod = this.#wanted?.pod;
    const actions = computeStopActions({
      snapshot,
      memory: this.#memory,
      nowMs: this.#deps.clock.monotonicMs(),
      reason: "PodRemoved",
      graceSeconds: pod?.spec.terminationGracePeriodSeconds ?? orphanGraceSeconds(snapshot),
      sidecars: sidecarNames(pod?.spec.initContainers),
      remove: true,
    });
    for (const action of actions) this.#perform(action, this.#wanted);
    const isEmpty = snapshot.containers.length + snapshot.sandboxes.length === 0;
    if (isEmpty && this.#memory.isIdle && !this.#isTearingDown) this.#tearDown();
  }

  #tearDown(): void {
    this.#isTearingDown = true;
    const { services, logger } = this.#deps;
    services.tearDown(this.ref.uid, this.ref, this.#stop.signal).then(
      () => {
        this.abandon();
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

  #perform(action: PodAction, wanted: WantedPod | undefined): void {
    switch (action.kind) {
      case "create-sandbox":
        return this.#createSandbox(action.attempt, wanted!);
      case "stop-sandbox":
        return this.#stopSandbox(action.id, action.graceSeconds);
      case "kill-container":
        return this.#kill(action, wanted?.pod);
      case "start-container":
        return this.#start(action, wanted!);
      case "resize-container":
        return this.#resize(action, wanted!);
      case "remove-container": {
        const container = this.snapshot.containers.find(({ id }) => id === action.id);
        if (container) this.#removeOne(action.id, (signal) => this.#deps.services.removeContainer(container, signal));
        return;
      }
      case "remove-sandbox":
        return this.#removeOne(action.id, (signal) => this.#deps.services.removeSandbox(action.id, signal));
      default:
        return action satisfies never;
    }
  }

  #createSandbox(attempt: number, wanted: WantedPod): void {
    const { services, cache } = this.#deps;
    const memory = this.#memory;
    if (attempt > 0) this.#record("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
    memory.sandboxBusy = true;
    // In the new sandbox everything is new: no container of it has failed yet.
    memory.retryAtMs.clear();
    memory.startErrors.clear();
    this.#background(
      async (signal) => {
        const id = await services.createSandbox(this.#request(wanted), attempt, signal);
        await cache.observe(id, signal);
        memory.sandboxError = undefined;
        memory.failures.delete("sandbox");
        delete memory.sandboxRetryAtMs;
        this.#objectsRevision = wanted.objectsRevision;
      },
      (error) => {
        const failures = (memory.failures.get("sandbox") ?? 0) + 1;
        memory.failures.set("sandbox", failures);
        const backOffMs = Math.min(SANDBOX_RETRY_MS.first * 2 ** (failures - 1), SANDBOX_RETRY_MS.longest);
        const step = toStepError(error, "FailedCreatePodSandBox");
        memory.sandboxRetryAtMs = this.#deps.clock.monotonicMs() + (step.retryAfterMs ?? backOffMs);
        memory.sandboxError = { reason: "ContainerCreating", message: step.message };
        this.#record("Warning", step.reason, step.message);
      },
      () => {
        memory.sandboxBusy = false;
      },
    );
  }

  #stopSandbox(id: string, graceSeconds: number): void {
    this.#memory.sandboxBusy = true;
    this.#background(
      async (signal) => {
        await this.#deps.services.stopSandbox(id, graceSeconds, signal);
        await this.#deps.cache.observe(id, signal);
      },
      (error) => this.#complain("Cannot stop the sandbox", error),
      () => {
        this.#memory.sandboxBusy = false;
      },
    );
  }

  #kill(action: Extract<PodAction, { kind: "kill-container" }>, pod: Pod | undefined): void {
    const { services, cache } = this.#deps;
    const snapshot = this.snapshot;
    const container = snapshot.containers.find(({ id }) => id === action.id);
    if (!container) return;
    this.#memory.killing.add(action.id);
    if (["LivenessFailed", "StartupFailed", "SpecChanged", "RestartAllContainers"].includes(action.reason)) {
      this.#memory.killedToRestart.add(action.id);
    }
    this.#record("Normal", "Killing", action.message, action.name);
    const podIps = snapshot.sandboxes[0]?.ips ?? [];
    this.#background(
      async (signal) => {
        const { graceSeconds } = action;
        await services.killContainer({ container, podIps, graceSeconds, ...(pod && { pod }) }, signal);
        await cache.observe(action.id, signal);
      },
      (error) => this.#complain(`Cannot stop container "${action.name}"`, error),
      () => this.#memory.killing.delete(action.id),
    );
  }

  #start(action: Extract<PodAction, { kind: "start-container" }>, wanted: WantedPod): void {
    const { services, cache } = this.#deps;
    const memory = this.#memory;
    const { name } = action;
    const container = findContainer(wanted.pod, name);
    const sandbox = this.snapshot.sandboxes[0];
    if (!container || !sandbox) return;
    const request: StartContainerRequest = {
      ...this.#request(wanted),
      container,
      isInit: action.isInit,
      restartCount: action.restartCount,
      hash: action.hash,
      sandboxId: sandbox.id,
      podIps: sandbox.ips,
    };
    memory.starting.add(name);
    let createdId: string | undefined;
    this.#background(
      async (signal) => {
        await services.pullImage(request, signal);
        const id = await this.#inTurn(async () => {
          // While it waited (for an image, for its turn) the world may have moved on: then the next plan decides anew.
          if (this.#isRemoving || this.#end || this.#wanted?.hashes.containers.get(name) !== action.hash) return;
          if (this.snapshot.sandboxes[0]?.id !== sandbox.id || this.snapshot.sandboxes[0].state !== "ready") return;
          const onCreated = (created: string) => {
            createdId = created;
            if (container.lifecycle?.postStart) memory.postStartPending.add(created);
          };
          const started = await services.startContainer(request, onCreated, signal);
          await cache.observe(started, signal);
          return started;
        });
        memory.startErrors.delete(name);
        memory.failures.delete(name);
        memory.retryAtMs.delete(name);
        if (action.backOff) memory.backOff.set(action.backOff.key, action.backOff.entry);
        if (id !== undefined && container.lifecycle?.postStart) this.#postStart(request, id);
      },
      async (error) => {
        // A container that was created but could not run is there: it counts as crashed, and so does its back-off.
        if (createdId !== undefined) await cache.observe(createdId).catch(() => {});
        const step = toStepError(error, "CreateContainerError");
        memory.startErrors.set(name, { reason: step.reason, message: step.message });
        if (step.reason === "RunContainerError") {
          if (action.backOff) memory.backOff.set(action.backOff.key, action.backOff.entry);
          memory.startErrors.delete(name);
        } else {
          memory.retryAtMs.set(name, this.#deps.clock.monotonicMs() + retryDelayMs(step));
        }
        // Images have their own events.
        if (!step.reason.includes("Image")) {
          // People know containers by name. Source: the kubelet's recordContainerEvent.
          const message = createdId === undefined ? step.message : step.message.replaceAll(createdId, name);
          this.#record("Warning", "Failed", `Error: ${message}`, name);
        }
        memory.failures.set(name, (memory.failures.get(name) ?? 0) + 1);
      },
      () => memory.starting.delete(name),
    );
  }

  #postStart(request: StartContainerRequest, id: string): void {
    this.#background(
      (signal) => this.#deps.services.runPostStart(request, id, signal),
      () => this.#memory.postStartFailed.add(id),
      () => this.#memory.postStartPending.delete(id),
    );
  }

  #resize(action: Extract<PodAction, { kind: "resize-container" }>, wanted: WantedPod): void {
    const { id, name, update } = action;
    const container = this.snapshot.containers.find((one) => one.id === id);
    if (!container) return;
    const { resizing, resizedBy } = this.#memory;
    // An engine that takes a limit but shows another (no swap accounting) is not told the same thing for ever.
    const told = JSON.stringify(update);
    if (resizedBy.get(id) === told) return;
    resizedBy.set(id, told);
    resizing.add(id);
    this.#background(
      async (signal) => {
        await this.#deps.services.resizeContainer({ pod: wanted.pod, container, update }, signal);
        await this.#deps.cache.observe(id, signal);
        this.#record("Normal", "Resized", `Resources of container ${name} were changed in place`, name);
      },
      async (error) => {
        const message = error instanceof Error ? error.message : String(error);
        resizedBy.delete(id);
        this.#record("Warning", "ResizeFailed", `Cannot change the resources of container ${name}: ${message}`, name);
        await this.#deps.clock.sleep(START_RETRY_MS, this.#stop.signal).catch(() => {});
      },
      () => resizing.delete(id),
    );
  }

  #removeOne(id: string, remove: (signal: AbortSignal) => Promise<void>): void {
    this.#memory.removing.add(id);
    this.#background(
      async (signal) => {
        await remove(signal);
        await this.#deps.cache.observe(id, signal);
      },
      (error) => this.#complain("Cannot remove a container", error),
      () => this.#memory.removing.delete(id),
    );
  }

  #refreshVolumes(wanted: WantedPod, snapshot: PodSnapshot): void {
    const isUp = snapshot.sandboxes[0]?.state === "ready" && !this.#memory.sandboxBusy;
    if (!isUp || this.#isRefreshing || this.#end || this.#objectsRevision === wanted.objectsRevision) return;
    this.#isRefreshing = true;
    this.#background(
      async (signal) => {
        await this.#deps.services.refreshVolumes(this.#request(wanted), signal);
        this.#objectsRevision = wanted.objectsRevision;
      },
      (error) => {
        const step = toStepError(error, "FailedMount");
        this.#record("Warning", step.reason, step.message);
        this.#objectsRevision = wanted.objectsRevision;
      },
      () => {
        this.#isRefreshing = false;
      },
    );
  }

  /** What a dead container left as its termination message is read once, when it is first seen dead. */
  #readLastWords(snapshot: PodSnapshot, pod: Pod): void {
    const { terminationMessages, reading } = this.#memory;
    for (const container of snapshot.containers) {
      if (!isTerminated(container) || !container.startedAt) continue;
      if (terminationMessages.has(container.id) || reading.has(container.id)) continue;
      reading.add(container.id);
      this.#background(
        async (signal) => {
          terminationMessages.set(
            container.id,
            await this.#deps.services.readTerminationMessage(container, pod, signal),
          );
        },
        () => terminationMessages.set(container.id, ""),
        () => reading.delete(container.id),
      );
    }
  }

  #learnImages(snapshot: PodSnapshot): void {
    const { imageNames, learnImage } = this.#deps;
    for (const { imageId } of snapshot.containers) {
      if (imageNames.has(imageId) || this.#memory.learning.has(imageId)) continue;
      this.#memory.learning.add(imageId);
      // Asked once: a name that cannot be learnt is left out of the status.
      this.#background(
        () => learnImage(imageId),
        () => {},
        () => {},
      );
    }
  }

  #noteEnd(end: PodEnd): void {
    this.#end = end;
    this.#memory.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.#deps.probes.remove(this.ref.uid);
    if (end.reason && end.reason === DEADLINE_EXCEEDED.reason) this.#record("Normal", end.reason, end.message ?? "");
    this.#deps.logger.info(`Pod "${this.#fullName}" ended: ${end.phase}${end.reason ? ` (${end.reason})` : ""}`);
  }

  #publish(wanted: WantedPod, snapshot: PodSnapshot, plan: PodPlan): void {
    const ips = snapshot.sandboxes[0]?.ips ?? [];
    if (ips.length > 0) this.#lastPodIps = ips;
    const waiting = new Map([...this.#memory.startErrors, ...plan.waiting]);
    if (this.#memory.sandboxError) {
      for (const { name } of [...(wanted.pod.spec.initContainers ?? []), ...wanted.pod.spec.containers]) {
        waiting.set(name, { reason: "ContainerCreating", message: this.#memory.sandboxError.message });
      }
    }
    const pending = snapshot.containers.filter(({ id }) => this.#memory.postStartPending.has(id));
    // A finished pod whose containers somebody removed keeps the status it ended with.
    const isForgotten = this.#restored && snapshot.containers.length < this.#restored.status.containerStatuses!.length;
    const status = isForgotten
      ? this.#restored!.status
      : computePodStatus({
          pod: wanted.pod,
          snapshot,
          qosClass: wanted.qosClass,
          probes: this.#deps.probes.states(this.ref.uid),
          waiting,
          postStartPending: new Set(pending.map(({ name }) => name)),
          terminationMessages: this.#memory.terminationMessages,
          imageNames: this.#deps.imageNames,
          lastPodIps: this.#lastPodIps,
          hostIp: this.#deps.hostIp(),
          startTime: this.#startTime!,
          ...(this.#end && { end: this.#end }),
          ...(this.#status && { previous: this.#status }),
          ...(wanted.extraConditions && { extraConditions: wanted.extraConditions }),
          now: this.#deps.clock.now(),
        });
    if (this.#status && Bun.deepEquals(status, this.#status)) return;
    this.#status = status;
    for (const [name, { reason }] of plan.waiting) {
      if (reason === "CrashLoopBackOff")
        this.#record("Warning", "BackOff", "Back-off restarting failed container", name);
    }
    if (this.#end && this.#isAtRest(snapshot) && !isForgotten) {
      this.#restored = { runRevision: wanted.runRevision, end: this.#end, status };
      this.#deps.onCompletion(this, this.#restored);
    }
    this.#deps.onStatus(this);
  }

  #isAtRest(snapshot: PodSnapshot): boolean {
    return !snapshot.containers.some(isRunning) && this.#memory.killing.size === 0 && this.#memory.reading.size === 0;
  }

  /** The first revision this worker gets: what the engine already holds of the pod is taken over as it is. */
  #adopt(wanted: WantedPod): void {
    const { clock } = this.#deps;
    const snapshot = this.snapshot;
    const oldest = snapshot.sandboxes.at(-1);
    this.#startTime = oldest?.createdAt ?? clock.now();
    this.#startedAtMs = clock.monotonicMs() - Math.max(0, clock.now().getTime() - this.#startTime.getTime());
    if (this.#restored?.runRevision === wanted.runRevision) this.#end = this.#restored.end;
    else this.#restored = undefined;
    for (const [name, hash] of wanted.hashes.containers) {
      const newest = attemptsOf(snapshot, name)[0];
      if (!newest || newest.hash !== hash) continue;
      const ranForMs = (newest.finishedAt ?? clock.now()).getTime() - (newest.startedAt ?? newest.createdAt).getTime();
      const endedAtMs = this.#memory.exitedAtMs.get(newest.id) ?? clock.monotonicMs();
      const entry = backOffFromHistory(newest.restartCount, endedAtMs - ranForMs, wanted.options.maxBackOffMs);
      if (entry) this.#memory.backOff.set(backOffKey(name, hash), entry);
    }
  }

  #request(wanted: WantedPod): PodRequest {
    return { pod: wanted.pod, objects: wanted.objects, sandboxHash: wanted.hashes.sandbox };
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.catch(() => {});
    return result;
  }

  /** Lets something happen beside the passes; its end, good or bad, brings the next pass. */
  #background(
    work: (signal: AbortSignal) => Promise<unknown>,
    onError: (error: unknown) => unknown,
    onEnd: () => void,
  ): void {
    work(this.#stop.signal)
      .catch((error) => (this.#stop.signal.aborted ? undefined : onError(error)))
      .finally(() => {
        onEnd();
        this.wake();
      });
  }

  /** Something that the next pass tries again: it counts as under way for one more second. */
  async #complain(attempt: string, error: unknown): Promise<void> {
    const message = error instanceof Error ? error.message : String(error);
    this.#deps.logger.warn(`${attempt} of pod "${this.#fullName}": ${message}`);
    await this.#deps.clock.sleep(1000, this.#stop.signal).catch(() => {});
  }

  #record(type: "Normal" | "Warning", reason: string, message: string, container?: string): void {
    const fieldPath = container === undefined ? {} : { fieldPath: this.#fieldPath(container) };
    this.#deps.recorder.record(this.ref, { type, reason, message, ...fieldPath });
  }

  #fieldPath(container: string): string {
    const isInit = this.#wanted?.pod.spec.initContainers?.some(({ name }) => name === container);
    return `spec.${isInit ? "initContainers" : "containers"}{${container}}`;
  }

  #recheckAt(atMs: number | undefined): void {
    this.#cancelRecheck?.();
    this.#cancelRecheck = undefined;
    if (atMs === undefined || this.#stop.signal.aborted) return;
    const delayMs = Math.max(0, atMs - this.#deps.clock.monotonicMs());
    this.#cancelRecheck = this.#deps.clock.schedule(delayMs, () => this.wake());
  }
}

const findContainer = (pod: Pod, name: string): Container | undefined =>
  [...(pod.spec.initContainers ?? []), ...pod.spec.containers].find((container) => container.name === name);

function retryDelayMs({ reason, retryAfterMs = START_RETRY_MS }: PodStepError): number {
  const isPullError = reason === "ErrImagePull" || reason === "RegistryUnavailable";
  return isPullError ? Math.min(retryAfterMs, PULL_ERROR_SHOWN_MS) : retryAfterMs;
}

const toStepError = (error: unknown, reason: string): PodStepError =>
  error instanceof PodStepError
    ? error
    : new PodStepError(reason, error instanceof Error ? error.message : String(error), { cause: error });

/** Grace period of a pod that nobody knows any more: the longest any of its containers was promised. */
function orphanGraceSeconds(snapshot: PodSnapshot): number {
  const promised = snapshot.containers.map(graceOf).filter((seconds) => seconds !== undefined);
  return promised.length > 0 ? Math.max(...promised) : 30;
}

function graceOf({ labels }: ContainerSnapshot): number | undefined {
  const seconds = Number.parseInt(labels["annotation.io.kubernetes.pod.terminationGracePeriod"] ?? "", 10);
  return Number.isNaN(seconds) ? undefined : seconds;
}
