import type { PodRef } from "../model/container-runtime.ts";
import type { PodUID } from "../model/identity.ts";

/** Where they are kept from one process to the next. */
export interface PodCleanupFile {
  read(): readonly PodRef[] | undefined;
  write(pods: readonly PodRef[]): void;
}

/**
 * Pods that something was made for: directory, volumes, cgroup, links. Whoever ends between the last container of a pod
 * and the rest of it leaves that rest to a process no container tells of it, hence the file.
 */
export class PodCleanupStore {
  readonly #file: PodCleanupFile;
  readonly #pods: Map<PodUID, PodRef>;
  #isSaved = true;

  constructor(file: PodCleanupFile) {
    this.#file = file;
    this.#pods = new Map((file.read() ?? []).map((ref) => [ref.uid, ref]));
  }

  /** In no order; of this process and of those before. */
  refs(): Iterable<PodRef> {
    return this.#pods.values();
  }

  add(ref: PodRef): void {
    if (this.#pods.has(ref.uid)) return;
    this.#pods.set(ref.uid, ref);
    this.#isSaved = false;
  }

  /** Nothing of it is left. */
  delete(uid: PodUID): void {
    if (this.#pods.delete(uid)) this.#isSaved = false;
  }

  /** Writes what has changed, if anything has. */
  save(): void {
    if (this.#isSaved) return;
    this.#isSaved = true;
    this.#file.write([...this.#pods.values()]);
  }
}
