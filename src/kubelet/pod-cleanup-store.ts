import type { PodUID } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { PodRef } from "../base/model/pod-ref.ts";

/** A pod with something to clean up. */
export interface PodToCleanUp extends PodRef {
  /** `DesiredPod.sourceId`: the source whose sets show whether the pod is still described. Absent: not known. */
  sourceId?: string;
}

/**
 * Pods with something to clean up: directory, volumes, cgroup, log links. If the process ends after the last container
 * of a pod was removed, no container shows the rest to the next process; this file does.
 */
export class PodCleanupStore {
  readonly #file: Persisted<readonly PodToCleanUp[]>;
  readonly #pods: Map<PodUID, PodToCleanUp>;
  #isSaved = true;

  constructor(file: Persisted<readonly PodToCleanUp[]>) {
    this.#file = file;
    this.#pods = new Map((file.read() ?? []).map((ref) => [ref.uid, ref]));
  }

  /** Pods of this process and of earlier ones, in no particular order. */
  refs(): Iterable<PodToCleanUp> {
    return this.#pods.values();
  }

  has(uid: PodUID): boolean {
    return this.#pods.has(uid);
  }

  /** @param sourceId of the source that describes it now; undefined keeps the one that is known */
  add({ uid, name, namespace }: PodRef, sourceId?: string): void {
    const known = this.#pods.get(uid);
    if (known && (sourceId === undefined || known.sourceId === sourceId)) return;
    this.#pods.set(uid, { uid, name, namespace, ...(sourceId !== undefined && { sourceId }) });
    this.#isSaved = false;
  }

  sourceOf(uid: PodUID): string | undefined {
    return this.#pods.get(uid)?.sourceId;
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
