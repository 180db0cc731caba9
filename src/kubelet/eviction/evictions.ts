import type { PodUID } from "../../model/identity.ts";
import type { Rejection } from "../kubelet.ts";

/** Why and since when a pod that is wanted does not run. */
export interface Eviction extends Rejection {
  /** Of the manifest: an edited pod may run. */
  revision: string;
  since: Date;
}

/** As it is kept: its times are RFC 3339. */
export type StoredEviction = Omit<Eviction, "since"> & { since: string };

/** Where they are kept from one process to the next. */
export interface EvictionsFile {
  read(): readonly (readonly [PodUID, StoredEviction])[] | undefined;
  write(all: readonly (readonly [PodUID, StoredEviction])[]): void;
}

/**
 * Evicted pods, in the order in which they went; on disk after every change, for a restart of ours must not bring back
 * the shortage that they were stopped for.
 */
export class Evictions {
  readonly #file: EvictionsFile;
  readonly #all: Map<PodUID, Eviction>;

  constructor(file: EvictionsFile) {
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

  /** They may run again. */
  delete(uids: Iterable<PodUID>): void {
    const before = this.#all.size;
    for (const uid of uids) this.#all.delete(uid);
    if (this.#all.size < before) this.#save();
  }

  #save(): void {
    this.#file.write([...this.#all].map(([uid, one]) => [uid, { ...one, since: one.since.toISOString() }]));
  }
}
