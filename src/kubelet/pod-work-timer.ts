import type { Clock } from "../base/model/clock.ts";

/** The trigger of the work: a pod that is new to this process, an edit, or anything else (an exit, a probe, the engine). */
type PodWorkKind = "create" | "update" | "sync";

/** Counts the work of pod workers, for the metrics. Times in milliseconds. */
export interface PodWorkCounter {
  /** A pod was given to its worker, this long after it was first desired. */
  added(containers: number, sinceWantedMs: number): void;
  /** A worker has nothing under way any more. */
  worked(kind: PodWorkKind, durationMs: number): void;
  /** A pod that was Pending is Running, this long after it was first desired. */
  started(sinceWantedMs: number): void;
}

/**
 * Times the work of one pod worker. A pass never waits, so upstream's "sync" corresponds to a period here: from the
 * edit, or from the first action when there was no edit, to the pass that finds nothing under way. An edit that needs
 * no action takes no time.
 */
export class PodWorkTimer {
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #counter: PodWorkCounter | undefined;
  #open: { kind: PodWorkKind; sinceMs: number } | undefined;
  #desiredSinceMs = 0;
  #phase: string | undefined;

  constructor(clock: Pick<Clock, "monotonicMs">, counter: PodWorkCounter | undefined) {
    this.#clock = clock;
    this.#counter = counter;
  }

  /** The worker got its pod. @param desiredSinceMs monotonic */
  added(containers: number, desiredSinceMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    this.#desiredSinceMs = desiredSinceMs;
    this.#open = { kind: "create", sinceMs: nowMs };
    this.#counter?.added(containers, nowMs - desiredSinceMs);
  }

  /** The pod was edited. An edit during the work for another edit extends that period. */
  edited(): void {
    if (this.#open && this.#open.kind !== "sync") return;
    this.#open = { kind: "update", sinceMs: this.#clock.monotonicMs() };
  }

  /** A pass has ended. @param isIdle nothing is under way */
  passed(isIdle: boolean): void {
    const nowMs = this.#clock.monotonicMs();
    if (!isIdle) {
      this.#open ??= { kind: "sync", sinceMs: nowMs };
      return;
    }
    if (this.#open) this.#counter?.worked(this.#open.kind, nowMs - this.#open.sinceMs);
    this.#open = undefined;
  }

  /** The status has this phase now. A pod that was running before this process is not counted as started. */
  showed(phase: string | undefined): void {
    if (this.#phase === "Pending" && phase === "Running") {
      this.#counter?.started(this.#clock.monotonicMs() - this.#desiredSinceMs);
    }
    this.#phase = phase;
  }
}
