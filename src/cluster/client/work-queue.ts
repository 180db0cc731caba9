import { BackOff, type BackOffPolicy } from "../../base/model/back-off.ts";
import type { Reachability } from "./reachability.ts";

interface WorkQueueDeps {
  reachability: Pick<Reachability, "schedule">;
  retry: BackOffPolicy;
  /** Throws to be called again, after a delay that grows with each failure. */
  work: (key: string) => Promise<void>;
}

/** Keys that are worked on at the same time. */
const MAX_BUSY = 8;

/**
 * Work at the API server, by key. A key that is added while its work is under way is worked on once more; one that failed
 * waits, at most until the API server is back.
 */
export class WorkQueue {
  readonly #deps: WorkQueueDeps;
  readonly #due = new Set<string>();
  readonly #busy = new Set<string>();
  readonly #failed = new Map<string, { backOff: BackOff; cancel: (() => void) | undefined }>();
  #isStopped = false;

  constructor(deps: WorkQueueDeps) {
    this.#deps = deps;
  }

  add(key: string): void {
    if (this.#isStopped) return;
    this.#due.add(key);
    queueMicrotask(() => this.#next());
  }

  forget(key: string): void {
    this.#due.delete(key);
    this.#failed.get(key)?.cancel?.();
    this.#failed.delete(key);
  }

  /** Forgets all other keys. */
  retain(keys: ReadonlySet<string>): void {
    for (const key of [...this.#due, ...this.#failed.keys()]) if (!keys.has(key)) this.forget(key);
  }

  stop(): void {
    this.#isStopped = true;
    this.retain(new Set());
  }

  #next(): void {
    for (const key of this.#due) {
      if (this.#busy.size >= MAX_BUSY) return;
      if (this.#busy.has(key) || this.#failed.get(key)?.cancel) continue;
      this.#due.delete(key);
      void this.#run(key);
    }
  }

  async #run(key: string): Promise<void> {
    this.#busy.add(key);
    try {
      await this.#deps.work(key);
      this.#failed.delete(key);
    } catch {
      if (!this.#isStopped) this.#retryLater(key);
    }
    this.#busy.delete(key);
    this.#next();
  }

  #retryLater(key: string): void {
    const { reachability, retry } = this.#deps;
    const failed = this.#failed.getOrInsertComputed(key, () => ({
      backOff: new BackOff(retry, Math.random),
      cancel: undefined,
    }));
    failed.cancel = reachability.schedule(failed.backOff.next(), () => {
      failed.cancel = undefined;
      this.add(key);
    });
  }
}
