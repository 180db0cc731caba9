import type { Clock } from "../model/clock.ts";

/** What asked for the work: a pod that is new to this process, an edit, or anything else (an end, a probe, the engine). */
export type PodWorkKind = "create" | "update" | "sync";

/** Told what pod workers get done, for the metrics. Times in milliseconds. */
export interface PodWorkCounter {
  /** A pod was given to its worker, so long after it was first wanted. */
  added(containers: number, sinceWantedMs: number): void;
  /** A worker has nothing under way any more. */
  worked(kind: PodWorkKind, durationMs: number): void;
  /** A pod that was Pending is Running, so long after it was first wanted. */
  started(sinceWantedMs: number): void;
}

/**
 * Times the work of one pod worker. A worker of ours never waits, so what upstream calls one sync, from the wish to the
 * end of the last step it led to, is a stretch of time here: from the wish, or from the first step when nobody wished
 * anything, to the pass that finds nothing under way. A wish for which nothing has to be done is over at once.
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

  /** The pod was edited. An edit amid the work for another wish makes that longer. */
  edited(): void {
    if (this.#open && this.#open.kind !== "sync") return;
    this.#open = { kind: "update", sinceMs: this.#clock.monotonicMs() };
  }

  /** A pass is over. @param isIdle nothing is under way */
  passed(isIdle: boolean): void {
    const nowMs = this.#clock.monotonicMs();
    if (!isIdle) {
      this.#open ??= { kind: "sync", sinceMs: nowMs };
      return;
    }
    if (this.#open) this.#counter?.worked(this.#open.kind, nowMs - this.#open.sinceMs);
    this.#open = undefined;
  }

  /** The status shows this phase now. A pod that already ran when we came has not started with us. */
  showed(phase: string | undefined): void {
    if (this.#phase === "Pending" && phase === "Running") {
      this.#counter?.started(this.#clock.monotonicMs() - this.#desiredSinceMs);
    }
    this.#phase = phase;
  }
}
