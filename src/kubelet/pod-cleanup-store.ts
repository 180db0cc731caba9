import type { PodUID } from "../model/identity.ts";
import type { Persisted } from "../model/persisted.ts";
import type { PodRef } from "../model/pod-ref.ts";

/**
 * Pods with something to clean up: directory, volumes, cgroup, log links. If the process ends after the last container
 * of a pod was removed, no container tells the next process about the rest; this file does.
 */
export class PodCleanupStore {
  readonly #file: Persisted<readonly PodRef[]>;
  readonly #pods: Map<PodUID, PodRef>;
  #isSaved = true;

  constructor(file: Persisted<readonly PodRef[]>) {
    this.#file = file;
    this.#pods = new Map((file.read() ?? []).map((ref) => [ref.uid, ref]));
  }

  /** Pods of this process and of earlier ones, in no particular order. */
  refs(): Iterable<PodRef> {
    return this.#pods.values();
  }

  add(ref: PodRef): void {
    if (this.#pods.has(ref.uid)) return;
    this.#pods.set(ref.uid, ref);
    this.#isSaved = false;
  }

  delete(uid: PodUID): void {
    if (this.#pods.delete(uid)) this.#isSaved = false;
  }

  /** Writes the file if anything changed. */
  save(): void {
    if (this.#isSaved) return;
    this.#isSaved = true;
    this.#file.write([...this.#pods.values()]);
  }
}
