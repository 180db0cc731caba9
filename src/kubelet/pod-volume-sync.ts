import type { ContainerSnapshot, PodSnapshot } from "../base/model/pod-snapshot.ts";
import { isRunning } from "../plan/container-history.ts";
import type { PodRevision } from "./edit-rules.ts";
import { type PodActionRunnerDeps, toPodRequest, toStepError } from "./pod-action-runner.ts";
import type { PodBackgroundWork } from "./pod-background-work.ts";
import type { PodSyncState } from "./pod-sync-state.ts";

const SWEEP_RETRY_MS = 10_000;

/** Keeps the volumes of a pod that has a sandbox in line with its revision, one piece of work at a time. */
export class PodVolumeSync {
  readonly #work: PodBackgroundWork;
  readonly #state: PodSyncState;
  readonly #deps: PodActionRunnerDeps;
  #isRefreshing = false;
  #isSweeping = false;
  #volumesRevision: string | undefined;
  /** Counts changes of the revision: each may have made volumes of its own, also one that is rolled back. */
  #generation = 0;
  /** The generation whose unused volumes were removed. */
  #sweptGeneration = 0;

  constructor(work: PodBackgroundWork, state: PodSyncState, deps: PodActionRunnerDeps) {
    this.#work = work;
    this.#state = state;
    this.#deps = deps;
  }

  /** Writes files made from ConfigMaps, Secrets and metadata again when their sources may have changed. */
  refresh(revision: PodRevision, snapshot: PodSnapshot): void {
    if (revision.isTentative) return;
    const state = this.#state;
    const isUp = snapshot.sandboxes[0]?.state === "ready" && !state.sandboxBusy;
    if (!isUp || this.#isRefreshing || state.objectsRevision === revision.objectsRevision) return;
    this.#isRefreshing = true;
    this.#work.start(
      async (signal) => {
        await this.#deps.services.refreshVolumes(toPodRequest(revision), signal);
        state.objectsRevision = revision.objectsRevision;
      },
      (error) => {
        const step = toStepError(error, "FailedMount");
        this.#work.record("Warning", step.reason, step.message);
        state.objectsRevision = revision.objectsRevision;
      },
      () => {
        this.#isRefreshing = false;
      },
    );
  }

  /** Removes volumes that an edit took out of the pod, once no container of an earlier revision runs any more. */
  removeUnused(revision: PodRevision, { containers, sandboxes }: PodSnapshot): void {
    if (revision.isTentative) return;
    if (this.#volumesRevision !== revision.objectsRevision) this.#generation++;
    this.#volumesRevision = revision.objectsRevision;
    const generation = this.#generation;
    if (this.#isSweeping || this.#sweptGeneration === generation) return;
    if (!this.#state.isIdle || sandboxes[0]?.state !== "ready") return;
    const isOld = ({ name, hash }: ContainerSnapshot) => revision.hashes.containers.get(name) !== hash;
    if (containers.filter(isRunning).some(isOld)) return;
    this.#sweep(async (signal) => {
      await this.#deps.services.removeUnusedVolumes(toPodRequest(revision), signal);
      this.#sweptGeneration = generation;
    });
  }

  /** Removes all volumes of a pod that has ended, once nothing of it runs any more. */
  release(revision: PodRevision, { containers, sandboxes }: PodSnapshot): void {
    const state = this.#state;
    if (this.#isSweeping || state.areVolumesReleased || !state.isIdle) return;
    if (containers.some(isRunning) || sandboxes.some((sandbox) => sandbox.state === "ready")) return;
    this.#sweep(async (signal) => {
      await this.#deps.services.releaseVolumes(toPodRequest(revision), signal);
      state.areVolumesReleased = true;
    });
  }

  #sweep(work: (signal: AbortSignal) => Promise<void>): void {
    this.#isSweeping = true;
    this.#work.start(
      work,
      (error) => this.#work.warnAndDelay("Cannot remove unused volumes", error, SWEEP_RETRY_MS),
      () => {
        this.#isSweeping = false;
      },
    );
  }
}
