import type { EphemeralContainer } from "../base/api/pod.ts";
import type { DesiredPod, DesiredState } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";

export type StoredEphemeralContainers = [uid: PodUID, containers: readonly EphemeralContainer[]][];

/**
 * Containers added to running pods, by UID. They belong to the pod, not to its manifest: a manifest has none, and they go
 * with the pod. Pods whose source keeps them itself (an API server) are not stored here.
 */
export class EphemeralContainerStore {
  readonly #file: Persisted<StoredEphemeralContainers>;
  readonly #byUid: Map<PodUID, readonly EphemeralContainer[]>;
  /** Results of {@link apply} by pod, so that an unchanged pod stays the same object. */
  #applied = new Map<PodUID, { from: DesiredPod; containers: readonly EphemeralContainer[]; to: DesiredPod }>();

  constructor(file: Persisted<StoredEphemeralContainers>) {
    this.#file = file;
    this.#byUid = new Map(file.read() ?? []);
  }

  set(uid: PodUID, containers: readonly EphemeralContainer[]): void {
    this.#byUid.set(uid, containers);
    this.#write();
  }

  /** The state with these containers in the specs of their pods. */
  apply(state: DesiredState): DesiredState {
    if (this.#byUid.size === 0) return state;
    return { ...state, pods: state.pods.map((desired) => this.#applyTo(desired)) };
  }

  #applyTo(desired: DesiredPod): DesiredPod {
    const uid = desired.pod.metadata.uid ?? "";
    const containers = this.#byUid.get(uid);
    if (!containers) return desired;
    const known = this.#applied.get(uid);
    if (known?.from === desired && known.containers === containers) return known.to;
    const { pod } = desired;
    const to = { ...desired, pod: { ...pod, spec: { ...pod.spec, ephemeralContainers: [...containers] } } };
    this.#applied.set(uid, { from: desired, containers, to });
    return to;
  }

  /** Forgets pods that are gone. */
  keep(isThere: (uid: PodUID) => boolean): void {
    const gone = [...this.#byUid.keys()].filter((uid) => !isThere(uid));
    if (gone.length === 0) return;
    for (const uid of gone) {
      this.#byUid.delete(uid);
      this.#applied.delete(uid);
    }
    this.#write();
  }

  #write(): void {
    this.#file.write([...this.#byUid]);
  }
}
