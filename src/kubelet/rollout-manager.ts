import type { Pod, PodStatus } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { DesiredPod, DesiredState, PodNotice } from "../base/model/desired-pod.ts";
import { type PodUID, podFullName } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import type { Persisted } from "../base/model/persisted.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import { type PodRef, podRefOf } from "../base/model/pod-ref.ts";
import type { RolloutProgress } from "../plan/rollout.ts";
import {
  isRevisionReady,
  judgeTrial,
  MIN_READY_MS,
  restartCountsOf,
  rolloutLimitsOf,
  wantsRollback,
} from "../plan/rollout.ts";

/** State of one pod that survives restarts: its last revision that was Ready, and the one that was rolled back. */
interface StoredRollout {
  ready: DesiredPod;
  rejected?: { revision: string; message: string };
}

export type StoredRollouts = readonly (readonly [PodUID, StoredRollout])[];

interface RolloutManagerDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  file: Persisted<StoredRollouts>;
  /** `--rollout=serial`: of several edited pods one is changed at a time; a failure stops the others. */
  isSerial: boolean;
  /** An edit was rolled back. */
  onRolledBack?: (pod: PodRef) => void;
  /** {@link RolloutManager.apply} would return another state now. */
  onChange: () => void;
}

/** Progress of a pod's desired revision, as its worker reports it. */
interface RolloutObservation {
  pod: Pod;
  status: PodStatus | undefined;
  rollout: RolloutProgress;
}

interface Trial {
  sinceMs: number;
  restarts?: ReadonlyMap<string, number>;
  /** Set when it failed and was not rolled back. */
  failure?: string;
  cancelDeadline: () => void;
}

interface Entry {
  applied: DesiredPod;
  ready?: DesiredPod;
  rejected?: { revision: string; message: string };
  trial?: Trial;
  observation?: RolloutObservation;
  /** Restart counts since it is Ready. */
  readyWith?: string;
  cancelReady?: () => void;
}

/**
 * Decides which revision of each pod runs: the one its source has, or, after a failed edit of a pod with the annotation
 * `kubelet-ts.io/rollback: on-failure`, the last one that was Ready.
 */
export class RolloutManager {
  readonly #deps: RolloutManagerDeps;
  readonly #entries = new Map<PodUID, Entry>();
  readonly #stored: Map<PodUID, StoredRollout>;

  constructor(deps: RolloutManagerDeps) {
    this.#deps = deps;
    this.#stored = new Map(deps.file.read() ?? []);
  }

  /**
   * Replaces revisions that were rolled back, or whose turn has not come.
   * @param isComplete every source was read: pods that are missing are gone
   */
  apply(state: DesiredState, isComplete: boolean): DesiredState {
    const isUsed = this.#deps.isSerial || this.#entries.size > 0 || state.pods.some(({ pod }) => wantsRollback(pod));
    if (!isUsed && this.#stored.size === 0) return state;
    const uids = new Set(state.pods.map(({ pod }) => pod.metadata.uid!));
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#drop(uid);
    if (isComplete) for (const uid of this.#stored.keys()) if (!uids.has(uid)) this.#forget(uid);
    const notices = new Map(state.notices);
    const pods = state.pods.map((desired) => {
      const { selected, notice } = this.#select(desired);
      const uid = desired.pod.metadata.uid!;
      if (notice) notices.set(uid, [...(notices.get(uid) ?? []), notice]);
      return selected;
    });
    return { ...state, pods, notices };
  }

  /** The status of a pod, or the progress of its revision, changed. */
  observe(observation: RolloutObservation): void {
    const uid = observation.pod.metadata.uid!;
    const entry = this.#entries.get(uid);
    if (!entry || entry.applied.pod !== observation.pod) return;
    entry.observation = observation;
    const { status, rollout } = observation;
    if (entry.trial && rollout === "live") entry.trial.restarts ??= restartCountsOf(status);
    this.#watchReadiness(uid, entry);
    this.#judge(uid, entry);
  }

  #select(desired: DesiredPod): { selected: DesiredPod; notice?: PodNotice } {
    const uid = desired.pod.metadata.uid!;
    if (!this.#deps.isSerial && !wantsRollback(desired.pod)) {
      this.#drop(uid);
      this.#forget(uid);
      return { selected: desired };
    }
    const stored = this.#stored.get(uid);
    const entry = this.#entries.get(uid) ?? { applied: stored?.ready ?? desired, ...stored };
    this.#entries.set(uid, entry);
    const { rejected, ready } = entry;
    if (rejected?.revision === desired.revision && ready && wantsRollback(desired.pod)) {
      this.#endTrial(entry);
      entry.applied = ready;
      return { selected: ready, notice: { reason: "RolledBack", message: rejected.message } };
    }
    if (entry.applied.revision === desired.revision) {
      // A reverted edit. The object may be new although the revision is not.
      if (entry.applied.pod !== desired.pod) entry.applied = desired;
      return { selected: desired };
    }
    const blocker = this.#deps.isSerial ? this.#findBlocker(uid) : undefined;
    if (blocker !== undefined) {
      return { selected: entry.applied, notice: { reason: "RolloutPaused", message: blocker } };
    }
    this.#beginTrial(uid, entry, desired);
    return { selected: desired };
  }

  /** Another pod whose edit is under way or has failed. */
  #findBlocker(uid: PodUID): string | undefined {
    for (const [other, { applied, trial, rejected }] of this.#entries) {
      if (other === uid || (!trial && !rejected)) continue;
      const name = podFullName(applied.pod.metadata);
      const failure = rejected?.message ?? trial?.failure;
      return failure === undefined
        ? `waits until the edit of pod "${name}" is Ready`
        : `stopped: the edit of pod "${name}" failed: ${failure}`;
    }
    return undefined;
  }

  #beginTrial(uid: PodUID, entry: Entry, desired: DesiredPod): void {
    this.#endTrial(entry);
    delete entry.rejected;
    entry.applied = desired;
    entry.trial = { sinceMs: this.#deps.clock.monotonicMs(), cancelDeadline: () => {} };
    this.#armDeadline(uid, entry, rolloutLimitsOf(desired.pod).deadlineMs);
    this.#store(uid, entry);
  }

  #armDeadline(uid: PodUID, entry: Entry, delayMs: number): void {
    const { trial } = entry;
    if (!trial) return;
    trial.cancelDeadline = this.#deps.clock.schedule(delayMs, () => {
      if (entry.trial !== trial) return;
      this.#judge(uid, entry);
      // It waits for another pod: that time does not count.
      if (entry.trial === trial && trial.failure === undefined) this.#armDeadline(uid, entry, MIN_READY_MS);
    });
  }

  /** Accepts the revision when it was Ready, without a restart, for {@link MIN_READY_MS}. */
  #watchReadiness(uid: PodUID, entry: Entry): void {
    const { status, rollout } = entry.observation!;
    const isReady = rollout === "live" && isRevisionReady(status);
    const readyWith = isReady ? JSON.stringify([...restartCountsOf(status)]) : undefined;
    if (readyWith === entry.readyWith) return;
    entry.cancelReady?.();
    delete entry.cancelReady;
    delete entry.readyWith;
    if (readyWith === undefined) return;
    entry.readyWith = readyWith;
    const accept = () => this.#accept(uid, entry);
    if (status?.phase === "Succeeded") accept();
    else entry.cancelReady = this.#deps.clock.schedule(MIN_READY_MS, accept);
  }

  #accept(uid: PodUID, entry: Entry): void {
    // A failed edit stays failed until the next one, although the pod may recover.
    if (entry.trial?.failure !== undefined) return;
    const hadTrial = entry.trial !== undefined;
    if (!hadTrial && entry.ready?.revision === entry.applied.revision) return;
    entry.ready = entry.applied;
    if (hadTrial) delete entry.rejected;
    this.#store(uid, entry);
    this.#endTrial(entry);
    if (hadTrial && this.#deps.isSerial) this.#deps.onChange();
  }

  #judge(uid: PodUID, entry: Entry): void {
    const { trial, observation, applied } = entry;
    if (!trial || trial.failure !== undefined) return;
    const elapsedMs = this.#deps.clock.monotonicMs() - trial.sinceMs;
    const { status, rollout = "pending" } = observation?.pod === applied.pod ? observation : {};
    const verdict = judgeTrial({ ...trial, elapsedMs, limits: rolloutLimitsOf(applied.pod) }, status, rollout);
    if (verdict.state === "failed") this.#fail(uid, entry, trial, verdict.message);
  }

  #fail(uid: PodUID, entry: Entry, trial: Trial, why: string): void {
    const { recorder, logger, onChange } = this.#deps;
    const { applied, ready } = entry;
    const ref = podRefOf(applied.pod);
    if (!ready || ready.revision === applied.revision || !wantsRollback(applied.pod)) {
      trial.failure = why;
      recorder.record(ref, { type: "Warning", reason: "RolloutFailed", message: `The edit failed: ${why}` });
      if (this.#deps.isSerial) onChange();
      return;
    }
    const message = `revision ${short(applied)} was rolled back to ${short(ready)}: ${why}`;
    logger.warn(`Pod "${podFullName(ref)}": ${message}`);
    recorder.record(ref, { type: "Warning", reason: "RolledBack", message });
    this.#deps.onRolledBack?.(ref);
    entry.rejected = { revision: applied.revision, message };
    this.#endTrial(entry);
    this.#store(uid, entry);
    onChange();
  }

  #endTrial(entry: Entry): void {
    entry.trial?.cancelDeadline();
    entry.cancelReady?.();
    delete entry.trial;
    delete entry.cancelReady;
    delete entry.readyWith;
  }

  #drop(uid: PodUID): void {
    const entry = this.#entries.get(uid);
    if (!entry) return;
    this.#endTrial(entry);
    this.#entries.delete(uid);
  }

  #store(uid: PodUID, { ready, rejected, applied }: Entry): void {
    if (!ready || !(this.#deps.isSerial || wantsRollback(applied.pod))) return;
    this.#stored.set(uid, { ready, ...(rejected && { rejected }) });
    this.#deps.file.write([...this.#stored]);
  }

  #forget(uid: PodUID): void {
    if (this.#stored.delete(uid)) this.#deps.file.write([...this.#stored]);
  }
}

const short = ({ revision }: DesiredPod) => revision.slice(0, 8);
