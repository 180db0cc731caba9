import { podFullName } from "../base/model/identity.ts";
import type { PodRef } from "../base/model/pod-ref.ts";
import type { PodSnapshot } from "../base/model/pod-snapshot.ts";
import { sidecarNames } from "../plan/compute-pod-actions.ts";
import type { PodAction } from "../plan/pod-plan.ts";
import { computeStopActions, orphanGraceSeconds } from "../plan/stop-pod.ts";
import type { PodRevision } from "./edit-rules.ts";
import type { PodActionRunnerDeps } from "./pod-action-runner.ts";
import type { PodSyncState } from "./pod-sync-state.ts";

/** When and how a pod was asked to be deleted; metadata of the API. */
export interface DeletionInfo {
  /** End of the grace period. Wall time. */
  timestamp: Date;
  gracePeriodSeconds: number;
}

interface PodRemovalHost {
  ref: PodRef;
  /** Aborts when the worker is detached. */
  signal: AbortSignal;
  /** Everything of the pod is gone. */
  onDone: () => void;
  /** The clean-up failed and is to be tried again. */
  onFailed: () => void;
}

/** The removal of one pod: its grace period, what is stopped and removed, and the clean-up after its last container. */
export class PodRemoval {
  readonly #deps: Pick<PodActionRunnerDeps, "clock" | "logger" | "services">;
  readonly #host: PodRemovalHost;
  /** Upper limit of the pod's own grace period. */
  maxGraceSeconds = Number.POSITIVE_INFINITY;
  #exactGraceSeconds: number | undefined;
  #deletion: DeletionInfo | undefined;
  #isClearing = false;
  #isTearingDown = false;

  constructor(deps: Pick<PodActionRunnerDeps, "clock" | "logger" | "services">, host: PodRemovalHost) {
    this.#deps = deps;
    this.#host = host;
  }

  /** undefined until {@link begin}. */
  get deletion(): DeletionInfo | undefined {
    return this.#deletion;
  }

  graceSeconds(revision: PodRevision | undefined, snapshot: PodSnapshot): number {
    const own = revision?.pod.spec.terminationGracePeriodSeconds ?? orphanGraceSeconds(snapshot);
    return this.#exactGraceSeconds ?? Math.min(own, this.maxGraceSeconds);
  }

  /** Replaces the pod's own grace period and the limit. @returns whether a deletion under way became shorter by it */
  setExactGrace(seconds: number): boolean {
    this.#exactGraceSeconds = seconds;
    if (!this.#deletion || seconds >= this.#deletion.gracePeriodSeconds) return false;
    this.#setDeletion(seconds);
    return true;
  }

  begin(revision: PodRevision | undefined, snapshot: PodSnapshot): void {
    this.#setDeletion(this.graceSeconds(revision, snapshot));
  }

  #setDeletion(gracePeriodSeconds: number): void {
    const endsAtMs = this.#deps.clock.now().getTime() + gracePeriodSeconds * 1000;
    this.#deletion = { timestamp: new Date(endsAtMs), gracePeriodSeconds };
  }

  /** The next actions of the removal. */
  plan(revision: PodRevision | undefined, snapshot: PodSnapshot, state: PodSyncState): PodAction[] {
    const actions = computeStopActions({
      snapshot,
      state,
      nowMs: this.#deps.clock.monotonicMs(),
      reason: "PodRemoved",
      graceSeconds: this.graceSeconds(revision, snapshot),
      sidecars: sidecarNames(revision?.pod.spec.initContainers),
      remove: true,
    });
    this.#isClearing ||= actions.some(({ kind }) => kind === "remove-container");
    return actions;
  }

  /** Containers are being removed: the status keeps what they ended with. */
  get isClearing(): boolean {
    return this.#isClearing;
  }

  /** Removes what the pod has besides its containers: volumes, directories, cgroup, log links. */
  tearDown(): void {
    if (this.#isTearingDown) return;
    this.#isTearingDown = true;
    const { services, logger } = this.#deps;
    const { ref, signal, onDone, onFailed } = this.#host;
    services.tearDown(ref.uid, ref, signal).then(onDone, (error: Error) => {
      if (signal.aborted) return;
      logger.warn(`Cannot clean up after pod "${podFullName(ref)}", retrying: ${error.message}`);
      this.#isTearingDown = false;
      onFailed();
    });
  }
}
