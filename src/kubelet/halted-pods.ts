import type { PodUID } from "../base/model/identity.ts";
import { findStopsBefore } from "../plan/pod-dependencies.ts";
import type { PodEnd } from "../plan/pod-plan.ts";
import type { PodWorker } from "./pod-worker.ts";

/**
 * Halted pods: stopped, but not removed. Pods that are halted in the same turn stop in the reverse order of their
 * dependencies.
 */
export class HaltedPods {
  /** Includes pods that have no worker yet. */
  readonly #requests = new Map<PodUID, [end: PodEnd, maxGraceSeconds: number]>();
  readonly #halting = new Map<PodWorker, Promise<void>>();

  /** @returns a promise that resolves when no container of the pod runs */
  async halt(uid: PodUID, worker: PodWorker | undefined, end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#requests.set(uid, [end, maxGraceSeconds]);
    if (!worker) return;
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
