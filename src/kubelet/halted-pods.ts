import type { PodUID } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { ContainerId } from "../base/model/pod-snapshot.ts";
import { isRunning } from "../plan/container-history.ts";
import { findStopsBefore } from "../plan/pod-dependencies.ts";
import type { PodEnd } from "../plan/pod-plan.ts";
import type { PodWorker } from "./pod-worker.ts";
import { StoredMap } from "./stored-map.ts";

/**
 * Halted pods: stopped, but not removed. Pods that are halted in the same turn stop in the reverse order of their
 * dependencies.
 */
export class HaltedPods {
  /** Includes pods that have no worker yet. */
  readonly #requests = new Map<PodUID, [end: PodEnd, maxGraceSeconds: number]>();
  readonly #halting = new Map<PodWorker, Promise<void>>();
  /**
   * Containers that were running when their pod was halted. Their exit code says nothing about their work, so the next
   * start of the kubelet does not count it. Written before any of them can end.
   */
  readonly terminated: StoredMap<ContainerId, true, ContainerId[]>;
  readonly #exists: (id: ContainerId) => boolean;

  /** @param exists false drops a container of an earlier shutdown, so that the file does not grow */
  constructor(file: Persisted<ContainerId[]>, exists: (id: ContainerId) => boolean) {
    this.terminated = new StoredMap(
      file,
      (ids) => ids.map((id) => [id, true]),
      (ids) => [...ids.keys()],
    );
    this.#exists = exists;
  }

  /** @returns a promise that resolves when no container of the pod runs */
  async halt(uid: PodUID, worker: PodWorker | undefined, end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#requests.set(uid, [end, maxGraceSeconds]);
    if (!worker) return;
    for (const id of this.terminated.keys()) if (!this.#exists(id)) this.terminated.delete(id);
    for (const { id } of worker.snapshot.containers.filter(isRunning)) this.terminated.set(id, true);
    const halting = Promise.resolve().then(async () => {
      await Promise.all(this.#stopsBefore(worker));
      if (this.#requests.has(uid)) await worker.halt(end, maxGraceSeconds);
    });
    this.#halting.set(worker, halting);
    await halting.finally(() => this.#halting.delete(worker));
  }

  /** Halts a worker that was created after its pod was halted. */
  apply(worker: PodWorker): void {
    const request = this.#requests.get(worker.ref.uid);
    if (request && !this.#halting.has(worker)) void worker.halt(...request);
  }

  clear(): void {
    this.#requests.clear();
  }

  #stopsBefore({ revision }: PodWorker): Promise<void>[] {
    if (!revision) return [];
    const halting = [...this.#halting];
    const pods = halting.flatMap(([worker]) => worker.revision?.pod ?? []);
    const before = findStopsBefore(revision.pod, pods);
    return halting.filter(([worker]) => worker.revision && before.includes(worker.revision.pod)).map(([, end]) => end);
  }
}
