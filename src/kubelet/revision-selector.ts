import type { EphemeralContainer } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { DesiredState } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import type { PodRef } from "../base/model/pod-ref.ts";
import { EphemeralContainerStore, type StoredEphemeralContainers } from "./ephemeral-container-store.ts";
import type { ImageUpdateManager } from "./images/image-update-manager.ts";
import type { PodWorker } from "./pod-worker.ts";
import { RolloutManager, type StoredRollouts } from "./rollout-manager.ts";

export interface RevisionSelectorDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  rollouts: Persisted<StoredRollouts>;
  ephemeralContainers: Persisted<StoredEphemeralContainers>;
  /** Selects the images that pods run; absent: those of their manifests. */
  imageUpdates?: Pick<ImageUpdateManager, "apply" | "observe">;
  /** Edited pods are changed one at a time. */
  isSerialRollout?: boolean;
  /** A failed edit was rolled back. */
  onRolledBack?: (pod: PodRef) => void;
}

/** Selects the revision, images and ephemeral containers of each pod. */
export class RevisionSelector {
  readonly #rollouts: RolloutManager;
  readonly #images: RevisionSelectorDeps["imageUpdates"];
  readonly #ephemeral: EphemeralContainerStore;
  readonly #onChange: () => void;

  /** @param onChange {@link select} would return another state now */
  constructor(deps: RevisionSelectorDeps, onChange: () => void) {
    this.#rollouts = new RolloutManager({
      ...deps,
      file: deps.rollouts,
      isSerial: deps.isSerialRollout ?? false,
      onChange,
    });
    this.#onChange = onChange;
    this.#images = deps.imageUpdates;
    this.#ephemeral = new EphemeralContainerStore(deps.ephemeralContainers);
  }

  /**
   * The state to run, from the desired state of the sources.
   * @param isComplete every source has answered
   * @param hasWorker a pod that is neither desired nor has a worker is gone
   */
  select(submitted: DesiredState, isComplete: boolean, hasWorker: (uid: PodUID) => boolean): DesiredState {
    if (isComplete) {
      const desired = new Set(submitted.pods.map(({ pod }) => pod.metadata.uid));
      this.#ephemeral.keep((uid) => desired.has(uid) || hasWorker(uid));
    }
    const rolledOut = this.#rollouts.apply(submitted, isComplete);
    return this.#ephemeral.apply(this.#images?.apply(rolledOut, isComplete) ?? rolledOut);
  }

  /** The status of a pod, or the progress of its revision, changed. */
  observe({ revision, status, rollout, snapshot }: PodWorker): void {
    if (!revision) return;
    const { pod, imagePins: pins } = revision;
    this.#rollouts.observe({ pod, status, rollout });
    this.#images?.observe({ pod, status, rollout, pins, containers: snapshot.containers });
  }

  /** @param containers all ephemeral containers of the pod, including earlier ones */
  setEphemeralContainers(uid: PodUID, containers: readonly EphemeralContainer[]): void {
    this.#ephemeral.set(uid, containers);
    this.#onChange();
  }
}
