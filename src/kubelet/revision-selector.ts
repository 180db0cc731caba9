import type { EphemeralContainer } from "../base/api/pod.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import type { Clock } from "../base/model/clock.ts";
import type { DesiredPod, DesiredState } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { StoredMap } from "../base/model/persisted.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import type { PodRef } from "../base/model/pod-ref.ts";
import type { ImageUpdateManager } from "./images/image-update-manager.ts";
import type { PodWorker } from "./pod-worker.ts";
import { RolloutManager, type StoredRollouts } from "./rollout-manager.ts";

export type StoredEphemeralContainers = [uid: PodUID, containers: readonly EphemeralContainer[]][];

interface RevisionSelectorDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  rollouts: Persisted<StoredRollouts>;
  ephemeralContainers: Persisted<StoredEphemeralContainers>;
  /** Selects the images that pods run; absent: those of their manifests. */
  imageUpdates?: ImageUpdateManager;
  isSerialRollout?: boolean;
  onRolledBack?: (pod: PodRef) => void;
}

export class RevisionSelector {
  readonly #rollouts: RolloutManager;
  readonly #images: RevisionSelectorDeps["imageUpdates"];
  /**
   * Containers added to running pods. They belong to the pod, not to its manifest: a manifest has none, and they go with
   * the pod. Pods whose source keeps them itself (an API server) are not stored here.
   */
  readonly #ephemeral: StoredMap<PodUID, readonly EphemeralContainer[], StoredEphemeralContainers>;
  /** Pods with their ephemeral containers, so that an unchanged pod stays the same object. */
  readonly #withEphemeral = new Map<
    PodUID,
    { from: DesiredPod; containers: readonly EphemeralContainer[]; to: DesiredPod }
  >();
  /** {@link select} would return another state now. */
  readonly changes = new Listeners();

  constructor(deps: RevisionSelectorDeps) {
    const onChange = () => this.changes.emit();
    this.#rollouts = new RolloutManager({
      ...deps,
      file: deps.rollouts,
      isSerial: deps.isSerialRollout ?? false,
      onChange,
    });
    this.#images = deps.imageUpdates;
    this.#images?.changes.add(onChange);
    this.#ephemeral = new StoredMap(deps.ephemeralContainers);
  }

  /**
   * The state to run, from the desired state of the sources.
   * @param isComplete every source was read
   * @param hasWorker a pod that is neither desired nor has a worker is gone
   */
  select(submitted: DesiredState, isComplete: boolean, hasWorker: (uid: PodUID) => boolean): DesiredState {
    if (isComplete) {
      const desired = new Set(submitted.pods.map(({ pod }) => pod.metadata.uid));
      for (const uid of this.#ephemeral.keys()) {
        if (desired.has(uid) || hasWorker(uid)) continue;
        this.#ephemeral.delete(uid);
        this.#withEphemeral.delete(uid);
      }
    }
    const rolledOut = this.#rollouts.apply(submitted, isComplete);
    const state = this.#images?.apply(rolledOut, isComplete) ?? rolledOut;
    if (this.#ephemeral.size === 0) return state;
    return { ...state, pods: state.pods.map((desired) => this.#addEphemeral(desired)) };
  }

  #addEphemeral(desired: DesiredPod): DesiredPod {
    const uid = desired.pod.metadata.uid ?? "";
    const containers = this.#ephemeral.get(uid);
    if (!containers) return desired;
    const known = this.#withEphemeral.get(uid);
    if (known?.from === desired && known.containers === containers) return known.to;
    const { pod } = desired;
    const to = { ...desired, pod: { ...pod, spec: { ...pod.spec, ephemeralContainers: [...containers] } } };
    this.#withEphemeral.set(uid, { from: desired, containers, to });
    return to;
  }

  /** The status of a pod, its revision, or the progress of that changed. */
  observe(worker: PodWorker): void {
    this.#rollouts.observe(worker);
    this.#images?.observe(worker);
  }

  /** @param containers all ephemeral containers of the pod, including earlier ones */
  setEphemeralContainers(uid: PodUID, containers: readonly EphemeralContainer[]): void {
    this.#ephemeral.set(uid, containers);
    this.changes.emit();
  }
}
