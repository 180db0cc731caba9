import type { PodUID } from "../../base/model/identity.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import type { Rejection } from "../../plan/admission.ts";

/** Why and since when a desired pod is evicted. */
interface Eviction extends Rejection {
  /** Revision of the manifest: an edited pod may run. */
  revision: string;
  since: Date;
}

/** As stored: times are RFC 3339. */
export type StoredEvictions = readonly (readonly [PodUID, Omit<Eviction, "since"> & { since: string }])[];

/**
 * Evicted pods, in the order of their eviction. Written after every change, so that a restart of the kubelet does not
 * bring back the shortage they were evicted for.
 */
export class EvictionStore {
  readonly #file: Persisted<StoredEvictions>;
  readonly #all: Map<PodUID, Eviction>;

  constructor(file: Persisted<StoredEvictions>) {
    this.#file = file;
    this.#all = new Map(
      (file.read() ?? []).map(([uid, eviction]) => [uid, { ...eviction, since: new Date(eviction.since) }]),
    );
  }

  get all(): ReadonlyMap<PodUID, Eviction> {
    return this.#all;
  }

  add(uid: PodUID, eviction: Eviction): void {
    this.#all.set(uid, eviction);
    this.#save();
  }

  delete(uids: Iterable<PodUID>): void {
    const before = this.#all.size;
    for (const uid of uids) this.#all.delete(uid);
    if (this.#all.size < before) this.#save();
  }

  /**
   * Forgets evictions of pods that were edited or deleted.
   * @param revisionOf of the manifest; undefined: the pod is not desired
   * @param isComplete every source has answered
   */
  prune(revisionOf: (uid: PodUID) => string | undefined, isComplete: boolean): void {
    const isOver = ([uid, { revision }]: [PodUID, Eviction]) => {
      const desired = revisionOf(uid);
      return desired === undefined ? isComplete : desired !== revision;
    };
    this.delete([...this.#all].filter(isOver).map(([uid]) => uid));
  }

  #save(): void {
    this.#file.write([...this.#all].map(([uid, one]) => [uid, { ...one, since: one.since.toISOString() }]));
  }
}
