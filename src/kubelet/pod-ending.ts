import type { Clock } from "../base/model/clock.ts";
import { podFullName } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import type { PodRef } from "../base/model/pod-ref.ts";
import type { PodSnapshot } from "../base/model/pod-snapshot.ts";
import { DEADLINE_EXCEEDED } from "../plan/compute-pod-actions.ts";
import { isRunning } from "../plan/container-history.ts";
import type { PodEnd } from "../plan/pod-plan.ts";
import type { PodBackgroundWork } from "./pod-background-work.ts";
import type { PodSyncState } from "./pod-sync-state.ts";

interface PodEndingDeps {
  clock: Pick<Clock, "monotonicMs">;
  logger: Pick<Logger, "info">;
  /** Probes end with the pod. */
  probes: { remove(uid: string): void };
}

/** How one pod has ended: permanently, or while it is halted. */
export class PodEnding {
  readonly #ref: PodRef;
  readonly #state: PodSyncState;
  readonly #work: Pick<PodBackgroundWork, "record">;
  readonly #deps: PodEndingDeps;
  #final: PodEnd | undefined;
  #halt: { end: PodEnd; atRest: PromiseWithResolvers<void> } | undefined;

  constructor(ref: PodRef, state: PodSyncState, work: Pick<PodBackgroundWork, "record">, deps: PodEndingDeps) {
    this.#ref = ref;
    this.#state = state;
    this.#work = work;
    this.#deps = deps;
  }

  /** How it terminated. */
  get final(): PodEnd | undefined {
    return this.#final;
  }

  /** Its end while it is halted. */
  get halted(): PodEnd | undefined {
    return this.#halt?.end;
  }

  get current(): PodEnd | undefined {
    return this.#final ?? this.halted;
  }

  /** The pod ended in an earlier process. */
  restore(end: PodEnd | undefined): void {
    this.#final = end;
  }

  /** The pod terminates. */
  end(end: PodEnd): void {
    this.#final = end;
    this.#stopFromNow();
    if (end.reason && end.reason === DEADLINE_EXCEEDED.reason) {
      this.#work.record("Normal", end.reason, end.message ?? "");
    }
    this.#deps.logger.info(
      `Pod "${podFullName(this.#ref)}" ended: ${end.phase}${end.reason ? ` (${end.reason})` : ""}`,
    );
  }

  /** An edit lets the pod run again. */
  revoke(): void {
    this.#final = undefined;
    delete this.#state.stoppingSinceMs;
  }

  /** @returns a promise that resolves when no container of the pod runs */
  halt(end: PodEnd): Promise<void> {
    this.#halt ??= { end, atRest: Promise.withResolvers() };
    if (!this.#final) this.#stopFromNow();
    return this.#halt.atRest.promise;
  }

  /** Undoes {@link halt}. @returns whether the pod was halted */
  resume(): boolean {
    if (!this.#halt) return false;
    this.#halt = undefined;
    if (!this.#final) delete this.#state.stoppingSinceMs;
    return true;
  }

  /** Resolves the promise of {@link halt} when no container runs. */
  noteAtRest({ containers, sandboxes }: PodSnapshot): void {
    if (!this.#state.isIdle || containers.some(isRunning)) return;
    if (sandboxes.every(({ state }) => state !== "ready")) this.noteGone();
  }

  /** No container of the pod will run again. */
  noteGone(): void {
    this.#halt?.atRest.resolve();
  }

  #stopFromNow(): void {
    this.#state.stoppingSinceMs = this.#deps.clock.monotonicMs();
    this.#deps.probes.remove(this.#ref.uid);
  }
}
