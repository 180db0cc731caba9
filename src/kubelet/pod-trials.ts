import type { Clock } from "../base/model/clock.ts";
import type { PodUID } from "../base/model/pod.ts";
import {
  isRevisionReady,
  judgeTrial,
  MIN_READY_MS,
  type RolloutLimits,
  restartCountsOf,
  type TrialVerdict,
} from "../plan/rollout.ts";
import type { PodWorker } from "./pod-worker.ts";

/** The worker of a pod, as trials see it. */
export type TriedPod = Pick<PodWorker, "ref" | "revision" | "status" | "rollout" | "snapshot">;

interface Tried {
  worker?: TriedPod;
  /** Restart counts since it is Ready with what it is to run; undefined while it is not. */
  readyWith?: string | undefined;
  readySinceMs: number;
  trial?: { sinceMs: number; restarts?: ReadonlyMap<string, number> } | undefined;
}

/**
 * How pods do with the revision or image that they are to run. The workers are asked at each judgement: what one of them
 * reported before may be about an earlier revision.
 */
export class PodTrials {
  readonly #clock: Clock;
  readonly #hasWanted: (worker: TriedPod) => boolean;
  readonly #pods = new Map<PodUID, Tried>();

  /** @param hasWanted whether the worker has got what its pod is to run now */
  constructor(clock: Clock, hasWanted: (worker: TriedPod) => boolean) {
    this.#clock = clock;
    this.#hasWanted = hasWanted;
  }

  /** The status of a pod, its revision, or the progress of that changed. */
  observe(worker: TriedPod): void {
    const tried = this.#tried(worker.ref.uid);
    tried.worker = worker;
    this.#look(tried);
  }

  /** A trial begins: what the pod did before does not count. */
  begin(uid: PodUID): void {
    const tried = this.#tried(uid);
    tried.trial = { sinceMs: this.#clock.monotonicMs() };
    tried.readyWith = undefined;
  }

  end(uid: PodUID): void {
    const tried = this.#pods.get(uid);
    if (tried) tried.trial = undefined;
  }

  isOnTrial(uid: PodUID): boolean {
    return this.#pods.get(uid)?.trial !== undefined;
  }

  prune(uids: { has(uid: PodUID): boolean }): void {
    for (const uid of this.#pods.keys()) if (!uids.has(uid)) this.#pods.delete(uid);
  }

  worker(uid: PodUID): TriedPod | undefined {
    return this.#pods.get(uid)?.worker;
  }

  /** Every container is of what the pod is to run. */
  isLive(uid: PodUID): boolean {
    const worker = this.worker(uid);
    return worker !== undefined && this.#hasWanted(worker) && worker.rollout === "live";
  }

  /** Live and Ready, for however short a time. */
  isReady(uid: PodUID): boolean {
    return this.isLive(uid) && isRevisionReady(this.worker(uid)?.status);
  }

  /** `ready`: without a restart for {@link MIN_READY_MS}. Without a trial no time elapses. */
  judge(uid: PodUID, limits: RolloutLimits): TrialVerdict {
    const tried = this.#tried(uid);
    this.#look(tried);
    const { worker, trial, readySinceMs } = tried;
    const nowMs = this.#clock.monotonicMs();
    const status = worker && this.#hasWanted(worker) ? worker.status : undefined;
    const elapsedMs = nowMs - (trial?.sinceMs ?? nowMs);
    const rollout = (status && worker?.rollout) ?? "pending";
    const verdict = judgeTrial({ ...trial, elapsedMs, limits }, status, rollout);
    const isStable = status?.phase === "Succeeded" || nowMs - readySinceMs >= MIN_READY_MS;
    return verdict.state === "ready" && !isStable ? { state: "pending" } : verdict;
  }

  /** Time until the verdict may be another without a report of the worker. Unit: milliseconds. */
  recheckMs(uid: PodUID, { deadlineMs }: RolloutLimits): number {
    const { trial, readyWith, readySinceMs } = this.#tried(uid);
    const nowMs = this.#clock.monotonicMs();
    const left = [
      ...(trial ? [trial.sinceMs + deadlineMs - nowMs] : []),
      ...(readyWith === undefined ? [] : [readySinceMs + MIN_READY_MS - nowMs]),
    ].filter((ms) => ms > 0);
    // After its deadline a pod on trial waits for another one.
    return Math.min(...left, trial ? MIN_READY_MS : Number.POSITIVE_INFINITY);
  }

  #look(tried: Tried): void {
    const { worker, trial } = tried;
    if (!worker) return;
    const isLive = this.isLive(worker.ref.uid);
    const restarts = restartCountsOf(worker.status);
    const readyWith = isLive && isRevisionReady(worker.status) ? JSON.stringify([...restarts]) : undefined;
    if (readyWith !== tried.readyWith) tried.readySinceMs = this.#clock.monotonicMs();
    tried.readyWith = readyWith;
    if (isLive && trial) trial.restarts ??= restarts;
  }

  #tried(uid: PodUID): Tried {
    return this.#pods.getOrInsert(uid, { readySinceMs: 0 });
  }
}
