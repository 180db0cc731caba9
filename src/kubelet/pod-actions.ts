import type { Pod } from "../base/api/pod.ts";
import { Turns } from "../base/concurrency/turns.ts";
import { BackOff, backOffMs } from "../base/model/back-off.ts";
import type { Clock } from "../base/model/clock.ts";
import type { Logger } from "../base/model/logger.ts";
import { containerFieldPath, containersOf, findContainer, type PodRef, podFullName } from "../base/model/pod.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import {
  attemptsOf,
  type ContainerId,
  type ContainerSnapshot,
  isRunning,
  isTerminated,
  type PodSnapshot,
} from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import type { PodAction, SyncState, WaitingReason } from "../plan/pod-plan.ts";
import { type BackOffEntry, backOffKey, type RecoverBackOffInput, recoverBackOff } from "../plan/restart-policy.ts";
import { PodStepError, type WaitingReasonName } from "../plan/waiting-reasons.ts";
import type { PodRevision } from "./edit-rules.ts";
import type { PodCache } from "./pod-cache.ts";
import type { PodRecords } from "./pod-records.ts";
import type { PodRequest, PodServices, StartContainerRequest } from "./pod-runtime-manager.ts";

/** The writable side of {@link SyncState}: one per worker, dropped with it. */
export class PodSyncState implements SyncState {
  /** The desired revision; it may change while an action is under way. */
  revision: PodRevision | undefined;
  readonly starting = new Set<string>();
  readonly killing = new Set<ContainerId>();
  readonly removing = new Set<ContainerId>();
  readonly resizing = new Set<ContainerId>();
  /** The last update of limits sent for each container. */
  readonly resizedBy = new Map<ContainerId, string>();
  /** The last update of limits that failed for each container, and why. */
  readonly resizeErrors = new Map<ContainerId, { requested: string; message: string }>();
  sandboxBusy = false;
  replacedSandbox?: ContainerId;
  readonly backOff = new Map<string, BackOffEntry>();
  readonly retryAtMs = new Map<string, number>();
  sandboxRetryAtMs?: number;
  readonly postStartPending = new Set<ContainerId>();
  readonly postStartFailed = new Set<ContainerId>();
  readonly killedToRestart = new Map<ContainerId, number | undefined>();
  stoppingSinceMs?: number;
  readonly exitedAtMs: ReadonlyMap<ContainerId, number>;

  /** Reasons why the last start of a container failed, by container name. */
  readonly startErrors = new Map<string, WaitingReason>();
  /** Why there is no sandbox; every container waits for it. */
  sandboxError: WaitingReason | undefined;
  /** Consecutive failures of the same action, by container name or `sandbox`. */
  readonly failures = new Map<string, number>();
  readonly terminationMessages = new Map<ContainerId, string>();
  /** Revision whose ConfigMap, Secret and metadata files are written. */
  objectsRevision: string | undefined;
  /** The volumes were removed with the end of the pod. */
  areVolumesReleased = false;
  /** Images whose names were asked for. */
  readonly learning = new Set<string>();
  /** Dead containers whose termination message is being read. */
  readonly reading = new Set<ContainerId>();

  constructor(exitedAtMs: ReadonlyMap<ContainerId, number>) {
    this.exitedAtMs = exitedAtMs;
  }

  get isIdle(): boolean {
    return !this.sandboxBusy && this.starting.size + this.killing.size + this.removing.size === 0;
  }

  recoverBackOff(input: Omit<RecoverBackOffInput, "exitedAtMs">): void {
    const recovered = recoverBackOff({ ...input, exitedAtMs: this.exitedAtMs });
    for (const [key, entry] of recovered) this.backOff.set(key, entry);
  }

  prune(ids: ReadonlySet<ContainerId>): void {
    for (const set of [this.postStartPending, this.postStartFailed]) {
      for (const id of set) if (!ids.has(id)) set.delete(id);
    }
    for (const map of [this.terminationMessages, this.resizedBy, this.resizeErrors, this.killedToRestart]) {
      for (const id of map.keys()) if (!ids.has(id)) map.delete(id);
    }
  }

  /** Allows an immediate retry of everything that failed: its cause may be gone. */
  forgetFailures(): void {
    this.retryAtMs.clear();
    this.failures.clear();
    delete this.sandboxRetryAtMs;
  }
}

const SANDBOX_RETRY_MS = { first: 500, longest: 64_000 };
const START_RETRY_MS = 10_000;
/** Pause after volumes could not be removed, twice as long each time. */
const REMOVE_VOLUMES_RETRY_MS = { first: 10_000, longest: 60_000 };
/** As long as the kubelet's `syncFrequency`, after which it writes the files of a running pod again. */
const REFRESH_RETRY_MS = 60_000;
/** Delay of the sync after a failure that the next sync retries. */
const RETRY_MS = 1_000;
/** How long a failed pull is shown; then the image manager is asked again and reports ImagePullBackOff. Source: recorded kubelet. */
const PULL_ERROR_SHOWN_MS = 2_000;

export interface PodActionsDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  cache: PodCache;
  services: PodServices;
  records: PodRecords;
}

/**
 * Performs the work of one pod in the background: the actions of a plan, and what keeps its volumes in line with its
 * revision. What is under way, what failed and when to retry is written to the worker's {@link PodSyncState}; the end of
 * each piece of work, successful or not, triggers the next sync.
 */
export class PodActions {
  readonly #ref: PodRef;
  readonly #deps: PodActionsDeps;
  readonly #state: PodSyncState;
  readonly #sync: () => void;
  readonly #signal: AbortSignal;
  readonly #turns = new Turns();
  readonly #starts = new Map<string, Promise<void>>();
  /** Work on volumes that is under way. */
  readonly #volumeWork = new Set<"refresh" | "remove">();
  /** Revision of the objects whose files could not be written, which is told once. */
  #toldRefresh: string | undefined;
  readonly #removalBackOff = new BackOff(REMOVE_VOLUMES_RETRY_MS);
  #volumesRevision: string | undefined;
  /** Counts changes of the revision: each may have made volumes of its own, also one that is rolled back. */
  #generation = 0;
  /** The generation whose unused volumes were removed. */
  #cleanedGeneration = 0;

  /**
   * @param sync plans again
   * @param signal aborts when the worker is detached
   */
  constructor(ref: PodRef, deps: PodActionsDeps, state: PodSyncState, sync: () => void, signal: AbortSignal) {
    this.#ref = ref;
    this.#deps = deps;
    this.#state = state;
    this.#sync = sync;
    this.#signal = signal;
  }

  /** @param container absent: the event is about the whole pod */
  record(type: "Normal" | "Warning", reason: string, message: string, container?: string): void {
    const spec = this.#state.revision?.pod.spec;
    const fieldPath = container === undefined ? {} : { fieldPath: containerFieldPath(spec, container) };
    this.#deps.recorder.record(this.#ref, { type, reason, message, ...fieldPath });
  }

  /** Starts one action and returns at once. */
  perform(action: PodAction, revision: PodRevision | undefined): void {
    switch (action.kind) {
      case "create-sandbox":
        return this.#createSandbox(action.attempt, revision!);
      case "stop-sandbox":
        return this.#stopSandbox(action.id, action.graceSeconds);
      case "kill-container":
        return this.#kill(action, revision?.pod);
      case "start-container":
        return this.#startContainer(action, revision!);
      case "resize-container":
        return this.#resize(action, revision!);
      case "remove-container": {
        const container = this.#snapshot.containers.find(({ id }) => id === action.id);
        if (container) this.#removeOne(action.id, (signal) => this.#deps.services.removeContainer(container, signal));
        return;
      }
      case "remove-sandbox":
        return this.#removeOne(action.id, (signal) =>
          this.#deps.services.removeSandbox(action.id, this.#ref.uid, signal),
        );
      default:
        return action satisfies never;
    }
  }

  #createSandbox(attempt: number, revision: PodRevision): void {
    const { services, cache, records } = this.#deps;
    const state = this.#state;
    if (attempt > 0) this.record("Normal", "SandboxChanged", "Pod sandbox changed, it will be killed and re-created.");
    state.sandboxBusy = true;
    state.areVolumesReleased = false;
    // No container has failed yet in the new sandbox.
    state.retryAtMs.clear();
    state.startErrors.clear();
    this.#start(
      async (signal) => {
        // A process that ends before would leave a directory and a cgroup that no later one knows.
        await records.cleanup.saved();
        signal.throwIfAborted();
        const id = await services.createSandbox(toPodRequest(revision), attempt, signal);
        // A list may have shown it before its start: one that is not seen to run would be replaced by a second one.
        await cache.observeStart(id, signal).catch(() => this.#untilObserved(id));
        state.sandboxError = undefined;
        state.failures.delete("sandbox");
        delete state.sandboxRetryAtMs;
        state.objectsRevision = revision.objectsRevision;
      },
      async (error) => {
        // One that a list has shown before its start may run, without its network and its files.
        const seen = this.#snapshot.sandboxes.find((it) => it.attempt === attempt);
        if (seen) {
          await this.#untilObserved(seen.id);
          state.replacedSandbox = seen.id;
        }
        const failures = (state.failures.get("sandbox") ?? 0) + 1;
        state.failures.set("sandbox", failures);
        const step = toStepError(error, "FailedCreatePodSandBox");
        state.sandboxRetryAtMs =
          this.#deps.clock.monotonicMs() + (step.retryAfterMs ?? backOffMs(failures - 1, SANDBOX_RETRY_MS));
        state.sandboxError = { reason: "ContainerCreating", message: step.message };
        this.record("Warning", step.reason, step.message);
      },
      () => {
        state.sandboxBusy = false;
      },
    );
  }

  #stopSandbox(id: string, graceSeconds: number): void {
    this.#state.sandboxBusy = true;
    this.#start(
      async (signal) => {
        await this.#deps.services.stopSandbox(id, graceSeconds, signal);
        await this.#deps.cache.observe(id, signal);
      },
      (error) => this.#recordAndDelay("cannot stop the sandbox", error),
      () => {
        this.#state.sandboxBusy = false;
      },
    );
  }

  #kill(action: Extract<PodAction, { kind: "kill-container" }>, pod: Pod | undefined): void {
    const { services, cache } = this.#deps;
    const snapshot = this.#snapshot;
    const container = snapshot.containers.find(({ id }) => id === action.id);
    if (!container) return;
    if (["LivenessFailed", "StartupFailed", "SpecChanged", "RestartAllContainers"].includes(action.reason)) {
      const [, beforeIt] = attemptsOf(snapshot, action.name);
      this.#state.killedToRestart.set(action.id, beforeIt && this.#state.exitedAtMs.get(beforeIt.id));
    }
    this.record("Normal", "Killing", action.message, action.name);
    const podIps = snapshot.sandboxes[0]?.ips ?? [];
    this.#track(
      this.#state.killing,
      action.id,
      async (signal) => {
        const { graceSeconds, reason } = action;
        const isPodEnd = reason === "PodEnded" || reason === "PodRemoved";
        await services.killContainer({ container, podIps, graceSeconds, isPodEnd, ...(pod && { pod }) }, signal);
        await cache.observe(action.id, signal);
      },
      (error) => this.#recordAndDelay(`cannot stop container "${action.name}"`, error),
    );
  }

  #startContainer(action: Extract<PodAction, { kind: "start-container" }>, revision: PodRevision): void {
    const { services, cache } = this.#deps;
    const state = this.#state;
    const { name } = action;
    const container = findContainer(revision.pod.spec, name);
    const sandbox = this.#snapshot.sandboxes[0];
    if (!container || !sandbox) return;
    const backOff = action.backOff?.entry ?? state.backOff.get(backOffKey(name, action.hash));
    const request: StartContainerRequest = {
      ...toPodRequest(revision),
      container,
      restartCount: action.restartCount,
      hash: action.hash,
      ...(backOff && { backOffMs: backOff.delayMs }),
      sandboxId: sandbox.id,
      podIps: sandbox.ips,
    };
    const targetName = "targetContainerName" in container ? container.targetContainerName : undefined;
    state.starting.add(name);
    let createdId: string | undefined;
    const names = containersOf(revision.pod.spec).map((one) => one.name);
    const startsBefore = names.slice(0, Math.max(0, names.indexOf(name))).map((earlier) => this.#starts.get(earlier));
    const { promise: end, resolve: noteEnd } = Promise.withResolvers<void>();
    this.#starts.set(name, end);
    this.#start(
      async (signal) => {
        await services.pullImage(request, signal);
        // Creates and starts of one pod happen in the order of its spec, however long an image takes.
        await Promise.all(startsBefore);
        const id = await this.#turns.run("", async () => {
          // The revision or the sandbox may have changed while the image was pulled: then the next plan decides again.
          if (state.stoppingSinceMs !== undefined || state.revision?.hashes.containers.get(name) !== action.hash)
            return;
          if (this.#snapshot.sandboxes[0]?.id !== sandbox.id || this.#snapshot.sandboxes[0].state !== "ready") return;
          const onCreated = (created: string) => {
            createdId = created;
            if (container.lifecycle?.postStart) state.postStartPending.add(created);
          };
          const target = attemptsOf(this.#snapshot, targetName ?? "").find(isRunning);
          if (target) request.targetId = target.id;
          else if (targetName !== undefined)
            throw new PodStepError("CreateContainerConfigError", `unable to find target container "${targetName}"`);
          const started = await services.startContainer(request, onCreated, signal);
          await cache.observeStart(started, signal);
          return started;
        });
        state.startErrors.delete(name);
        state.failures.delete(name);
        state.retryAtMs.delete(name);
        if (action.backOff) state.backOff.set(action.backOff.key, action.backOff.entry);
        if (id !== undefined && container.lifecycle?.postStart) this.#postStart(request, id);
      },
      async (error) => {
        // A container that was created but could not be started counts as crashed, with its back-off. Perhaps its sandbox has gone.
        if (createdId !== undefined) await Promise.all([createdId, sandbox.id].map((id) => this.#untilObserved(id)));
        const step = toStepError(error, "CreateContainerError");
        state.startErrors.set(name, { reason: step.reason, message: step.message });
        const created = this.#snapshot.containers.find(({ id }) => id === createdId);
        // The engine did it, or refused it, and the response was lost.
        const hasRun = created?.startedAt !== undefined;
        if (step.reason === "RunContainerError" || hasRun || (created && isTerminated(created))) {
          if (action.backOff) state.backOff.set(action.backOff.key, action.backOff.entry);
          state.startErrors.delete(name);
          // It is made again.
          if (!hasRun && created?.exitCode === 0) state.retryAtMs.set(name, this.#deps.clock.monotonicMs() + RETRY_MS);
        } else {
          state.retryAtMs.set(name, this.#deps.clock.monotonicMs() + retryDelayMs(step));
        }
        if (hasRun && container.lifecycle?.postStart) this.#postStart(request, created.id);
        // Images have their own events.
        if (!step.reason.includes("Image")) {
          // Events name containers, not ids. Source: the kubelet's recordContainerEvent.
          const message = createdId === undefined ? step.message : step.message.replaceAll(createdId, name);
          this.record("Warning", step.eventReason ?? "Failed", `Error: ${message}`, name);
        }
        state.failures.set(name, (state.failures.get(name) ?? 0) + 1);
      },
      () => {
        state.starting.delete(name);
        if (this.#starts.get(name) === end) this.#starts.delete(name);
        noteEnd();
      },
    );
  }

  #postStart(request: StartContainerRequest, id: string): void {
    this.#track(
      this.#state.postStartPending,
      id,
      (signal) => this.#deps.services.runPostStart(request, id, signal),
      () => this.#state.postStartFailed.add(id),
    );
  }

  #resize(action: Extract<PodAction, { kind: "resize-container" }>, revision: PodRevision): void {
    const { id, name, update } = action;
    const container = this.#snapshot.containers.find((one) => one.id === id);
    if (!container) return;
    const { resizing, resizedBy, resizeErrors } = this.#state;
    // An engine that accepts a limit but reports another (no swap accounting) is not updated again and again.
    const requested = JSON.stringify(update);
    if (resizedBy.get(id) === requested) return;
    resizedBy.set(id, requested);
    if (resizeErrors.get(id)?.requested !== requested) resizeErrors.delete(id);
    this.#track(
      resizing,
      id,
      async (signal) => {
        await this.#deps.services.resizeContainer({ pod: revision.pod, container, update }, signal);
        resizeErrors.delete(id);
        await this.#deps.cache.observe(id, signal);
        this.record("Normal", "Resized", `Resources of container ${name} were changed in place`, name);
      },
      async (error) => {
        resizedBy.delete(id);
        const message = `Cannot change the resources of container ${name}: ${messageOf(error)}`;
        resizeErrors.set(id, { requested, message });
        this.record("Warning", "ResizeFailed", message, name);
        this.#sync();
        await this.#delay(START_RETRY_MS);
      },
    );
  }

  #removeOne(id: string, remove: (signal: AbortSignal) => Promise<void>): void {
    this.#track(
      this.#state.removing,
      id,
      async (signal) => {
        await remove(signal);
        await this.#deps.cache.forget(id, signal);
      },
      (error) => this.#recordAndDelay("cannot remove a container", error),
    );
  }

  /** Reads the termination message of each dead container once, when it is first seen dead. */
  readTerminationMessages(snapshot: PodSnapshot, pod: Pod): void {
    const { terminationMessages, reading } = this.#state;
    for (const container of snapshot.containers) {
      if (!isTerminated(container) || !container.startedAt) continue;
      if (terminationMessages.has(container.id) || reading.has(container.id)) continue;
      this.#track(
        reading,
        container.id,
        async (signal) => {
          const message = await this.#deps.services.readTerminationMessage(container, pod, signal);
          terminationMessages.set(container.id, message);
        },
        () => terminationMessages.set(container.id, ""),
      );
    }
  }

  /** Looks up names of images that the status needs. */
  learnImages(snapshot: PodSnapshot): void {
    const { cache } = this.#deps;
    for (const { imageId } of snapshot.containers) {
      if (cache.imageNames.has(imageId) || this.#state.learning.has(imageId)) continue;
      this.#state.learning.add(imageId);
      // One attempt: a name that cannot be found is left out of the status.
      this.#start(
        () => cache.learnImage(imageId),
        () => {},
        () => {},
      );
    }
  }

  /** Writes files made from ConfigMaps, Secrets and metadata again when their sources may have changed. */
  refreshVolumes(revision: PodRevision, snapshot: PodSnapshot): void {
    const state = this.#state;
    const isUp = snapshot.sandboxes[0]?.state === "ready" && !state.sandboxBusy;
    if (revision.isTentative || !isUp || this.#volumeWork.has("refresh")) return;
    if (state.objectsRevision === revision.objectsRevision) return;
    this.#track(
      this.#volumeWork,
      "refresh",
      async (signal) => {
        await this.#deps.services.refreshVolumes(toPodRequest(revision), signal);
        state.objectsRevision = revision.objectsRevision;
      },
      (error) => {
        const { objectsRevision } = revision;
        const step = toStepError(error, "FailedMount");
        if (this.#toldRefresh !== objectsRevision) this.record("Warning", step.reason, step.message);
        this.#toldRefresh = state.objectsRevision = objectsRevision;
        void this.#delay(REFRESH_RETRY_MS).then(() => {
          if (state.objectsRevision === objectsRevision) state.objectsRevision = undefined;
          this.#sync();
        });
      },
    );
  }

  /** Removes volumes that an edit took out of the pod, once no container of an earlier revision runs any more. */
  removeUnusedVolumes(revision: PodRevision, { containers, sandboxes }: PodSnapshot): void {
    if (revision.isTentative) return;
    if (this.#volumesRevision !== revision.objectsRevision) this.#generation++;
    this.#volumesRevision = revision.objectsRevision;
    const generation = this.#generation;
    if (this.#cleanedGeneration === generation || !this.#state.isIdle || sandboxes[0]?.state !== "ready") return;
    const isOld = ({ name, hash }: ContainerSnapshot) => revision.hashes.containers.get(name) !== hash;
    if (containers.filter(isRunning).some(isOld)) return;
    this.#removeVolumes(async (signal) => {
      await this.#deps.services.removeUnusedVolumes(toPodRequest(revision), signal);
      this.#cleanedGeneration = generation;
    });
  }

  /** Removes all volumes of a pod that has ended, once nothing of it runs any more. */
  releaseVolumes(revision: PodRevision, { containers, sandboxes }: PodSnapshot): void {
    const state = this.#state;
    if (state.areVolumesReleased || !state.isIdle) return;
    if (containers.some(isRunning) || sandboxes.some((sandbox) => sandbox.state === "ready")) return;
    this.#removeVolumes(async (signal) => {
      await this.#deps.services.releaseVolumes(toPodRequest(revision), signal);
      state.areVolumesReleased = true;
    });
  }

  #removeVolumes(work: (signal: AbortSignal) => Promise<void>): void {
    if (this.#volumeWork.has("remove")) return;
    const remove = async (signal: AbortSignal) => {
      await work(signal);
      this.#removalBackOff.reset();
    };
    this.#track(this.#volumeWork, "remove", remove, (error) => {
      const retryMs = this.#removalBackOff.next();
      const pod = podFullName(this.#ref);
      // Once: the disk may stay broken for months.
      if (retryMs === REMOVE_VOLUMES_RETRY_MS.first)
        this.#deps.logger.warn(`Cannot remove unused volumes of pod "${pod}", retrying: ${messageOf(error)}`);
      return this.#delay(retryMs);
    });
  }

  get #snapshot(): PodSnapshot {
    return this.#deps.cache.get(this.#ref);
  }

  /** As {@link #start}, with `key` in the set meanwhile. */
  #track<K>(
    underWay: Set<K>,
    key: K,
    work: (signal: AbortSignal) => Promise<unknown>,
    onError: (error: unknown) => unknown,
  ): void {
    underWay.add(key);
    this.#start(work, onError, () => underWay.delete(key));
  }

  /** Starts work and returns at once; its end, successful or not, triggers the next sync. */
  #start(
    work: (signal: AbortSignal) => Promise<unknown>,
    onError: (error: unknown) => unknown,
    onEnd: () => unknown,
  ): void {
    work(this.#signal)
      .catch((error) => (this.#signal.aborted ? undefined : onError(error)))
      .finally(() => {
        onEnd();
        this.#sync();
      });
  }

  /** A container that is there, perhaps runs, and is not in the cache, would be made a second time. */
  async #untilObserved(id: string): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        return await this.#deps.cache.observe(id, this.#signal);
      } catch {
        await this.#delay(RETRY_MS);
      }
    }
  }

  /** Waits, or returns early when the worker is detached. */
  async #delay(ms: number): Promise<void> {
    await this.#deps.clock.sleep(ms, this.#signal).catch(() => {});
  }

  /** Records a failure that the next sync retries, and delays that sync: the work counts as under way until then. */
  async #recordAndDelay(attempt: string, error: unknown): Promise<void> {
    // A pod that runs on loses a container too: by an edit, a probe, or one that is dead.
    const isStopping = this.#state.stoppingSinceMs !== undefined;
    this.record("Warning", isStopping ? "FailedKillPod" : "Failed", `Error: ${attempt}: ${messageOf(error)}`);
    await this.#delay(RETRY_MS);
    // The program may not have heard of it: its grace period begins again.
    if (this.#state.stoppingSinceMs !== undefined) this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
  }
}

function retryDelayMs({ reason, retryAfterMs = START_RETRY_MS }: PodStepError): number {
  const isPullError = reason === "ErrImagePull" || reason === "RegistryUnavailable";
  return isPullError ? Math.min(retryAfterMs, PULL_ERROR_SHOWN_MS) : retryAfterMs;
}

const toStepError = (error: unknown, reason: WaitingReasonName): PodStepError =>
  error instanceof PodStepError ? error : new PodStepError(reason, messageOf(error), { cause: error });

export const toPodRequest = ({ pod, objects, hashes, desired: { imagePins } }: PodRevision): PodRequest => ({
  pod,
  objects,
  ...(imagePins && { imagePins }),
  sandboxHash: hashes.sandbox,
  ...(hashes.init !== undefined && { initHash: hashes.init }),
});
