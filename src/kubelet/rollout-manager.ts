import type { EphemeralContainer } from "../base/api/pod.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import type { Clock } from "../base/model/clock.ts";
import type { DesiredPod, DesiredState, PodNotice } from "../base/model/desired-state.ts";
import type { Logger } from "../base/model/logger.ts";
import { memoized } from "../base/model/memoized.ts";
import { type Persisted, StoredMap } from "../base/model/persisted.ts";
import { type PodUID, podFullName, podRefOf } from "../base/model/pod.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import { rolloutLimitsOf, wantsRollback } from "../plan/rollout.ts";
import type { KubeletMetrics } from "../stats/metrics/kubelet-metrics.ts";
import type { ImageUpdateManager } from "./images/image-update-manager.ts";
import { PodTrials, type TriedPod } from "./pod-trials.ts";
import type { PodWorker } from "./pod-worker.ts";

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
  metrics: KubeletMetrics;
  /** {@link RolloutManager.apply} would return another state now. */
  onChange: () => void;
}

interface Entry extends Partial<StoredRollout> {
  applied: DesiredPod;
  /** Why its edit failed, which was not rolled back. */
  failure?: string;
}

/**
 * Decides which revision of each pod runs: the one its source has, or, after a failed edit of a pod with the annotation
 * `kubelet-ts.io/rollback: on-failure`, the last one that was Ready.
 */
class RolloutManager {
  readonly #deps: RolloutManagerDeps;
  readonly #entries = new Map<PodUID, Entry>();
  readonly #stored: StoredMap<PodUID, StoredRollout, StoredRollouts>;
  readonly #trials: PodTrials;
  #cancelTimer = () => {};

  constructor(deps: RolloutManagerDeps) {
    this.#deps = deps;
    this.#stored = new StoredMap(deps.file);
    this.#trials = new PodTrials(
      deps.clock,
      ({ ref, revision }) => revision?.desired.revision === this.#entries.get(ref.uid)?.applied.revision,
    );
  }

  /**
   * Replaces revisions that were rolled back, or whose turn has not come.
   * @param isComplete every source was read: pods that are missing are gone
   */
  apply(state: DesiredState, isComplete: boolean): DesiredState {
    const isUsed = this.#deps.isSerial || this.#entries.size > 0 || state.pods.some(({ pod }) => wantsRollback(pod));
    if (!isUsed && this.#stored.size === 0) return state;
    const uids = new Set(state.pods.map(({ pod }) => pod.metadata.uid!));
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#entries.delete(uid);
    if (isComplete) for (const uid of this.#stored.keys()) if (!uids.has(uid)) this.#stored.delete(uid);
    const notices = new Map(state.notices);
    const pods = state.pods.map((desired) => {
      const { selected, notice } = this.#select(desired);
      const uid = desired.pod.metadata.uid!;
      if (notice) notices.set(uid, [...(notices.get(uid) ?? []), notice]);
      return selected;
    });
    this.#trials.prune(this.#entries);
    this.#setTimer();
    return { ...state, pods, notices };
  }

  /** The status of a pod, its revision, or the progress of that changed. */
  observe(worker: TriedPod): void {
    if (!this.#entries.has(worker.ref.uid)) return;
    this.#trials.observe(worker);
    this.#judge(worker.ref.uid);
    this.#setTimer();
  }

  #select(desired: DesiredPod): { selected: DesiredPod; notice?: PodNotice } {
    const uid = desired.pod.metadata.uid!;
    if (!this.#deps.isSerial && !wantsRollback(desired.pod)) {
      this.#entries.delete(uid);
      this.#stored.delete(uid);
      return { selected: desired };
    }
    const stored = this.#stored.get(uid);
    const entry = this.#entries.getOrInsert(uid, { applied: stored?.ready ?? desired, ...stored });
    const { rejected, ready } = entry;
    if (rejected?.revision === desired.revision && ready && wantsRollback(desired.pod)) {
      this.#trials.end(uid);
      entry.applied = ready;
      return { selected: ready, notice: { reason: "RolledBack", message: rejected.message } };
    }
    if (entry.applied.revision === desired.revision) {
      // A reverted edit. The object may be new although the revision is not.
      entry.applied = desired;
      return { selected: desired };
    }
    const blocker = this.#deps.isSerial ? this.#findBlocker(uid) : undefined;
    if (blocker !== undefined) {
      return { selected: entry.applied, notice: { reason: "RolloutPaused", message: blocker } };
    }
    delete entry.rejected;
    delete entry.failure;
    entry.applied = desired;
    this.#trials.begin(uid);
    this.#store(uid, entry);
    return { selected: desired };
  }

  /** Another pod whose edit is under way or has failed. */
  #findBlocker(uid: PodUID): string | undefined {
    for (const [other, { applied, failure, rejected }] of this.#entries) {
      if (other === uid || (!this.#trials.isOnTrial(other) && !rejected)) continue;
      const name = podFullName(applied.pod.metadata);
      const why = rejected?.message ?? failure;
      return why === undefined
        ? `waits until the edit of pod "${name}" is Ready`
        : `stopped: the edit of pod "${name}" failed: ${why}`;
    }
    return undefined;
  }

  /** A first revision is accepted as an edit is, but cannot fail. A failed edit stays failed, although the pod may recover. */
  #judge(uid: PodUID): void {
    const entry = this.#entries.get(uid);
    if (!entry || !this.#isOpen(uid, entry)) return;
    const verdict = this.#trials.judge(uid, rolloutLimitsOf(entry.applied.pod));
    if (verdict.state === "ready") this.#accept(uid, entry);
    else if (verdict.state === "failed" && this.#trials.isOnTrial(uid)) this.#fail(uid, entry, verdict.message);
  }

  #isOpen(uid: PodUID, { failure, ready, applied }: Entry): boolean {
    return failure === undefined && (this.#trials.isOnTrial(uid) || ready?.revision !== applied.revision);
  }

  #setTimer(): void {
    this.#cancelTimer();
    const open = [...this.#entries].filter(([uid, entry]) => this.#isOpen(uid, entry));
    const delayMs = Math.min(
      ...open.map(([uid, { applied }]) => this.#trials.recheckMs(uid, rolloutLimitsOf(applied.pod))),
    );
    if (!Number.isFinite(delayMs)) return;
    this.#cancelTimer = this.#deps.clock.schedule(delayMs, () => {
      for (const uid of this.#entries.keys()) this.#judge(uid);
      this.#setTimer();
    });
  }

  #accept(uid: PodUID, entry: Entry): void {
    entry.ready = entry.applied;
    const hadTrial = this.#trials.isOnTrial(uid);
    if (hadTrial) delete entry.rejected;
    this.#trials.end(uid);
    this.#store(uid, entry);
    if (hadTrial && this.#deps.isSerial) this.#deps.onChange();
  }

  #fail(uid: PodUID, entry: Entry, why: string): void {
    const { recorder, logger, onChange, isSerial, metrics } = this.#deps;
    const { applied, ready } = entry;
    const ref = podRefOf(applied.pod);
    if (!ready || ready.revision === applied.revision || !wantsRollback(applied.pod)) {
      entry.failure = why;
      recorder.record(ref, { type: "Warning", reason: "RolloutFailed", message: `The edit failed: ${why}` });
      if (isSerial) onChange();
      return;
    }
    const message = `revision ${short(applied)} was rolled back to ${short(ready)}: ${why}`;
    logger.warn(`Pod "${podFullName(ref)}": ${message}`);
    recorder.record(ref, { type: "Warning", reason: "RolledBack", message });
    metrics.rollbacks.inc([ref.namespace, ref.name]);
    entry.rejected = { revision: applied.revision, message };
    this.#trials.end(uid);
    this.#store(uid, entry);
    onChange();
  }

  #store(uid: PodUID, { ready, rejected, applied }: Entry): void {
    if (!ready || !(this.#deps.isSerial || wantsRollback(applied.pod))) return;
    this.#stored.set(uid, { ready, ...(rejected && { rejected }) });
  }
}

const short = ({ revision }: DesiredPod) => revision.slice(0, 8);

export type StoredEphemeralContainers = [uid: PodUID, containers: readonly EphemeralContainer[]][];

interface RevisionSelectorDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  rollouts: Persisted<StoredRollouts>;
  ephemeralContainers: Persisted<StoredEphemeralContainers>;
  /** Selects the images that pods run; absent: those of their manifests. */
  imageUpdates?: ImageUpdateManager;
  isSerialRollout?: boolean;
  metrics: KubeletMetrics;
}

/** An unchanged pod stays the same object. */
const withEphemeral = memoized((desired: DesiredPod, containers: readonly EphemeralContainer[]): DesiredPod => {
  const { pod } = desired;
  return { ...desired, pod: { ...pod, spec: { ...pod.spec, ephemeralContainers: [...containers] } } };
});

export class RevisionSelector {
  readonly #rollouts: RolloutManager;
  readonly #images: RevisionSelectorDeps["imageUpdates"];
  /**
   * Containers added to running pods. They belong to the pod, not to its manifest: a manifest has none, and they go with
   * the pod. Pods whose source keeps them itself (an API server) are not stored here.
   */
  readonly #ephemeral: StoredMap<PodUID, readonly EphemeralContainer[], StoredEphemeralContainers>;
  /** {@link select} would return another state now. */
  readonly changes = new Listeners();

  constructor(deps: RevisionSelectorDeps) {
    const onChange = () => this.changes.emit();
    this.#rollouts = new RolloutManager({
      ...deps,
      file: deps.rollouts,
      isSerial: deps.isSerialRollout ?? false,
      onChange,
    });
    this.#images = deps.imageUpdates;
    this.#images?.changes.add(onChange);
    this.#ephemeral = new StoredMap(deps.ephemeralContainers);
  }

  /**
   * The state to run, from the desired state of the sources.
   * @param isComplete every source was read
   * @param hasWorker a pod that is neither desired nor has a worker is gone
   */
  select(submitted: DesiredState, isComplete: boolean, hasWorker: (uid: PodUID) => boolean): DesiredState {
    if (isComplete) {
      const desired = new Set(submitted.pods.map(({ pod }) => pod.metadata.uid));
      for (const uid of this.#ephemeral.keys()) if (!desired.has(uid) && !hasWorker(uid)) this.#ephemeral.delete(uid);
    }
    const rolledOut = this.#rollouts.apply(submitted, isComplete);
    const state = this.#images?.apply(rolledOut, isComplete) ?? rolledOut;
    if (this.#ephemeral.size === 0) return state;
    const pods = state.pods.map((desired) => {
      const containers = this.#ephemeral.get(desired.pod.metadata.uid ?? "");
      return containers ? withEphemeral(desired, containers) : desired;
    });
    return { ...state, pods };
  }

  /** The status of a pod, its revision, or the progress of that changed. */
  observe(worker: PodWorker): void {
    this.#rollouts.observe(worker);
    this.#images?.observe(worker);
  }

  /** @param containers all ephemeral containers of the pod, including earlier ones */
  async setEphemeralContainers(uid: PodUID, containers: readonly EphemeralContainer[]): Promise<void> {
    this.#ephemeral.set(uid, containers);
    this.changes.emit();
    await this.#ephemeral.saved();
  }
}
