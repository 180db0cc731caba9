import { parseImageUpdatePolicy } from "../../base/api/annotations.ts";
import type { Secret } from "../../base/api/config-objects.ts";
import type { Pod } from "../../base/api/pod.ts";
import { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import { Listeners } from "../../base/concurrency/listeners.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { DesiredPod, DesiredState, ImagePinRef } from "../../base/model/desired-state.ts";
import type { Logger } from "../../base/model/logger.ts";
import { type Persisted, StoredMap } from "../../base/model/persisted.ts";
import { containersOf, type PodUID, podRefOf } from "../../base/model/pod.ts";
import type { EventRecorder, PodEvent } from "../../base/model/pod-event.ts";
import { type ContainerSnapshot, isRunning } from "../../base/model/pod-snapshot.ts";
import { messageOf } from "../../base/text/error-message.ts";
import type { KubeletOptions } from "../../config/option-table.ts";
import {
  decideUpdateStep,
  type ImageUpdateRecord,
  type ImageUpdateSettings,
  type LookedUp,
  noteFailed,
  noteKept,
  noteLookedUp,
  notePulled,
  noteRolledBack,
  noteSame,
  noteStarted,
  noteSwapped,
  pinFor,
  type UpdatePod,
  undoUpdate,
  updateOwnerOf,
} from "../../plan/image-updates.ts";
import type { KubeletMetrics } from "../../stats/metrics/kubelet-metrics.ts";
import { PodTrials, type TriedPod } from "../pod-trials.ts";
import {
  findTargets,
  type ImageUpdateReport,
  idOf,
  isCheckStale,
  nameOf,
  nextCheckAt,
  stepDelaysMs,
  type Target,
  toImageUpdateReport,
} from "./image-update-targets.ts";

/** Registries, the engine and volumes, as updates use them. */
export interface ImageUpdateSources {
  lookUp(
    image: string,
    policy: ImageUpdateSettings["policy"],
    present: string,
    pullSecrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<LookedUp>;
  pull(ref: string, pullSecrets: readonly Secret[], signal: AbortSignal): Promise<string>;
  /** A reference by which the image that runs can be pulled again. */
  describe(imageId: string, image: string): Promise<LookedUp>;
  /** Whether the file in a volume of the pod exists that blocks updates. Rejects when that cannot be determined. */
  isLocked(pod: Pod, lock: string): Promise<boolean>;
}

export interface ImageUpdateManagerDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  random: () => number;
  file: Persisted<readonly ImageUpdateRecord[]>;
  /** Read at each use. */
  options: Pick<KubeletOptions, "imageUpdate" | "imageUpdateSchedule" | "imageUpdateWindow" | "imageUpdateJitterMs">;
  sources: ImageUpdateSources;
  metrics: KubeletMetrics;
}

/** Wall clocks jump: schedules are compared with the time at least this often. */
const LONGEST_WAIT_MS = 3_600_000;
/** Workloads are without pods for a moment while they are replaced. */
const FORGET_AFTER_MS = 7 * 24 * 3_600_000;
const MAX_LOOK_UPS = 2;
/** Restarts of one container after which a new image has failed. */
const MAX_RESTARTS = 3;

/**
 * Keeps images of pods that ask for it up to date: asks registries by a schedule, pulls the new image next to the running
 * container, exchanges it pod by pod, and goes back to the previous image when a pod does not become Ready. Without such
 * pods it does nothing.
 */
export class ImageUpdateManager {
  readonly #deps: ImageUpdateManagerDeps;
  readonly #records: StoredMap<string, ImageUpdateRecord, readonly ImageUpdateRecord[]>;
  /** Records of images that no pod has, with the time since when. Monotonic. */
  readonly #unseenSinceMs = new Map<string, number>();
  readonly #trials: PodTrials;
  readonly #busy = new Set<string>();
  readonly #lookUps = new ConcurrencyLimit(MAX_LOOK_UPS);
  readonly #stop = new AbortController();
  readonly #locks: LockFiles;
  readonly #asked = new Set<string>();
  readonly #atOnce = new Set<string>();
  /** {@link apply} would return other pins now. */
  readonly changes = new Listeners();
  #targets = new Map<string, Target>();
  /** Pods with targets: the revision of their manifests, and the targets. */
  #pods = new Map<PodUID, { revision: string; targets: Target[] }>();
  #cancelTimer = () => {};
  #needsSync = false;

  constructor(deps: ImageUpdateManagerDeps) {
    this.#deps = deps;
    this.#trials = new PodTrials(deps.clock, (worker) => this.#hasWantedImages(worker));
    this.#locks = new LockFiles(deps.sources, deps.clock, () => this.#requestSync());
    this.#records = new StoredMap(
      deps.file,
      (records) => records.map((record) => [idOf(record), noteStarted(record)]),
      (records) => [...records.values()],
    );
    // A start during a trial counts, even if the next one comes before anything else changes.
    for (const [id, record] of this.#records) if (record.trial) this.#records.set(id, record);
  }

  /** Gives each pod the images that it runs. @param isComplete every source was read */
  apply(state: DesiredState, isComplete: boolean): DesiredState {
    const { imageUpdate, imageUpdateSchedule: schedule, imageUpdateWindow: window } = this.#deps.options;
    const policy = parseImageUpdatePolicy(imageUpdate) ?? { kind: "never" };
    this.#targets = findTargets(state, { policy, schedule, window });
    if (isComplete) this.#forgetUnused(state);
    this.#pods = new Map();
    for (const target of this.#targets.values()) {
      for (const { pod, revision } of target.pods) {
        const uid = pod.metadata.uid!;
        this.#pods.set(uid, { revision, targets: [...(this.#pods.get(uid)?.targets ?? []), target] });
      }
    }
    if (this.#targets.size === 0) return state;
    const pods = state.pods.map((desired) => {
      const pins = [...this.#pinsOf(desired.pod.metadata.uid!)];
      return pins.length === 0 ? desired : { ...desired, imagePins: new Map(pins) };
    });
    this.#requestSync();
    return { ...state, pods };
  }

  /** The images that a pod is to run, by their names in the manifest. */
  *#pinsOf(uid: PodUID): Iterable<[image: string, pin: ImagePinRef]> {
    for (const target of this.#pods.get(uid)?.targets ?? []) {
      const pin = pinFor(this.#recordOf(target), uid);
      if (pin) yield [target.image, pin];
    }
  }

  /** Whether the worker has got the newest manifest of its pod, and the images that it is to run now. */
  #hasWantedImages({ ref, revision }: TriedPod): boolean {
    const pins = new Map(this.#pinsOf(ref.uid));
    const given = revision?.desired.imagePins ?? new Map<string, ImagePinRef>();
    const isSame = given.size === pins.size && [...pins].every(([image, pin]) => given.get(image)?.ref === pin.ref);
    return isSame && revision !== undefined && revision.desired.revision === this.#pods.get(ref.uid)?.revision;
  }

  /** The status of a pod, its revision, or the progress of that changed. */
  observe(worker: TriedPod): void {
    this.#trials.observe(worker);
    if (this.#pods.has(worker.ref.uid)) this.#requestSync();
  }

  /** References of images that pods run or are about to run, in place of the names in their manifests. */
  pinnedRefs(): string[] {
    return [...this.#records.values()].flatMap(({ current, candidate }) =>
      [current, candidate].flatMap((pin) => (pin ? [pin.ref] : [])),
    );
  }

  report(): ImageUpdateReport[] {
    return [...this.#targets.values()]
      .map((target) =>
        toImageUpdateReport(target, this.#recordOf(target), {
          hold: this.#holdOf(target),
          isWorking: this.#busy.has(target.id) || this.#asked.has(target.id),
          isAtOnce: this.#atOnce.has(target.id),
          now: this.#deps.clock.now(),
        }),
      )
      .sort((a, b) => (`${a.owner} ${a.image}` < `${b.owner} ${b.image}` ? -1 : 1));
  }

  /**
   * Looks up now, and exchanges images without waiting for the window. A pod that blocks updates is left alone.
   * @param owner as {@link report} names it; undefined: all
   * @returns how many images are looked up
   */
  checkNow(owner: string | undefined): number {
    const targets = this.#targetsOf(owner);
    for (const { id } of targets) {
      this.#asked.add(id);
      this.#atOnce.add(id);
    }
    this.#requestSync();
    return targets.length;
  }

  /** Goes back to the previous images; the present ones are not tried again. @returns images that were rolled back */
  undo(owner: string): string[] {
    const undone: string[] = [];
    for (const target of this.#targetsOf(owner)) {
      const record = undoUpdate(this.#recordOf(target), this.#deps.clock.now());
      if (!record) continue;
      this.#store(record);
      this.#endTrial(target);
      this.#record(target, "Normal", "ImageUpdateUndone", `Image ${target.image}: back to ${nameOf(record.current)}`);
      undone.push(target.image);
    }
    if (undone.length > 0) this.changes.emit();
    return undone;
  }

  /** Ends look-ups and pulls; pods keep running. */
  stop(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelTimer();
  }

  #targetsOf(owner: string | undefined): Target[] {
    return [...this.#targets.values()].filter((target) => owner === undefined || target.owner === owner);
  }

  #requestSync(): void {
    if (this.#needsSync || this.#stop.signal.aborted) return;
    this.#needsSync = true;
    queueMicrotask(() => {
      this.#needsSync = false;
      if (!this.#stop.signal.aborted) this.#sync();
    });
  }

  #sync(): void {
    const idle = [...this.#targets.values()].filter(({ id }) => !this.#busy.has(id));
    const isChanged = idle.map((target) => this.#step(target)).includes(true);
    this.#setTimer();
    if (isChanged) this.changes.emit();
  }

  /** @returns whether other images are to run now */
  #step(target: Target): boolean {
    const now = this.#deps.clock.now();
    this.#planCheck(target, now);
    const record = this.#recordOf(target);
    const step = decideUpdateStep(record, {
      now,
      pods: target.pods.map(({ pod }): UpdatePod => {
        const uid = pod.metadata.uid!;
        // A trial of an earlier process continues.
        if (record.trial?.pods.includes(uid) && !this.#trials.isOnTrial(uid)) this.#trials.begin(uid);
        return { uid, isLive: this.#trials.isLive(uid), verdict: this.#trials.judge(uid, limitsOf(target)) };
      }),
      isWindowOpen: this.#atOnce.has(target.id) || target.settings.window.isOpen(now),
      hold: this.#holdOf(target),
      isCheckAsked: this.#asked.has(target.id),
    });
    switch (step.do) {
      case "nothing":
        if (!record.current) this.#adopt(target);
        return false;
      case "look-up":
        this.#asked.delete(target.id);
        this.#lookUp(target);
        return false;
      case "pull":
        this.#pull(target, step.candidate.ref);
        return false;
      case "swap": {
        const message = `Image ${target.image}: updating from ${nameOf(record.current)} to ${nameOf(step.candidate)}`;
        this.#record(target, "Normal", "ImageUpdating", message);
        this.#trials.begin(step.uid);
        this.#store(noteSwapped(record, step.uid));
        return true;
      }
      case "keep":
        this.#record(target, "Normal", "ImageUpdated", `Image ${target.image}: ${nameOf(step.candidate)} is kept`);
        this.#endTrial(target);
        this.#store(noteKept(record, now));
        this.#count(target, "kept");
        return true;
      case "roll-back": {
        const message = `Image ${target.image}: ${nameOf(step.candidate)} failed, ${nameOf(record.current)} runs again: ${step.why}`;
        this.#record(target, "Warning", "ImageUpdateFailed", message);
        this.#deps.logger.warn(`Pod "${target.owner}": ${message}`);
        this.#endTrial(target);
        this.#store(noteRolledBack(record, step.why, now));
        this.#count(target, "rolled-back");
        return true;
      }
      default:
        return step satisfies never;
    }
  }

  /** Notes the image that a Ready pod runs under the name of the manifest, so that it stays. */
  #adopt(target: Target): void {
    const ready = target.pods.filter(({ pod }) => this.#trials.isReady(pod.metadata.uid!));
    const [running] = ready.flatMap((desired) => this.#containersOf(target, desired));
    if (!running) return;
    this.#begin(target, async () => {
      const { ref, tag } = await this.#deps.sources.describe(running.imageId, target.image);
      this.#store({ ...this.#recordOf(target), current: { ref, tag, isBaseline: true } });
      this.changes.emit();
    });
  }

  /** The newest containers of a pod that are made from this image. */
  #containersOf({ image }: Target, { pod }: DesiredPod): ContainerSnapshot[] {
    const seen = this.#trials.worker(pod.metadata.uid!)?.snapshot.containers ?? [];
    const names = containersOf(pod.spec).filter((container) => container.image === image);
    return names.flatMap(({ name }) => seen.find((one) => one.name === name) ?? []);
  }

  /** Whether all pods run this image already, under any name. */
  #allRun(target: Target, imageId: string): boolean {
    return target.pods.every((desired) => {
      const running = this.#containersOf(target, desired).filter(isRunning);
      return running.length > 0 && running.every((container) => container.imageId === imageId);
    });
  }

  #lookUp(target: Target): void {
    const { id, settings, image, pullSecrets } = target;
    const present = this.#recordOf(target).current?.tag ?? "";
    this.#begin(target, async (signal) => {
      const found = await this.#lookUps.run(signal, () =>
        this.#deps.sources.lookUp(image, settings.policy, present, pullSecrets, signal),
      );
      const record = noteLookedUp(this.#recordOf(target), found, this.#deps.clock.now(), this.#nextCheck(target));
      this.#store(record);
      const { candidate } = record;
      if (!candidate) this.#atOnce.delete(id);
      else this.#record(target, "Normal", "ImageUpdateFound", `Image ${image}: ${nameOf(candidate)} is newer`);
    });
  }

  #pull(target: Target, ref: string): void {
    this.#begin(target, async (signal) => {
      const id = await this.#deps.sources.pull(ref, target.pullSecrets, signal);
      const record = this.#recordOf(target);
      if (record.candidate?.ref !== ref) return;
      this.#store(this.#allRun(target, id) ? noteSame(record) : notePulled(record));
    });
  }

  /** Starts work and returns at once; a failure is noted in the record. */
  #begin(target: Target, work: (signal: AbortSignal) => Promise<void>): void {
    this.#busy.add(target.id);
    work(this.#stop.signal)
      .catch((error: unknown) => {
        if (!this.#stop.signal.aborted) this.#noteFailed(target, messageOf(error));
      })
      .finally(() => {
        this.#busy.delete(target.id);
        this.#requestSync();
      });
  }

  #noteFailed(target: Target, message: string): void {
    const { clock, logger } = this.#deps;
    const record = this.#recordOf(target);
    if (record.error !== message) {
      logger.warn(`Image ${target.image} of "${target.owner}" is not updated: ${message}`);
    }
    this.#store(noteFailed(record, message, clock.now()));
    this.#atOnce.delete(target.id);
    this.#count(target, "error");
  }

  #count({ owner }: Target, result: "kept" | "rolled-back" | "error"): void {
    const slash = owner.indexOf("/");
    this.#deps.metrics.imageUpdates.inc([owner.slice(0, slash), owner.slice(slash + 1), result]);
  }

  #recordOf({ id, owner, image }: Target): ImageUpdateRecord {
    return this.#records.get(id) ?? { owner, image, rejected: [] };
  }

  #store(record: ImageUpdateRecord): void {
    this.#records.set(idOf(record), record);
  }

  /** Forgets pods that are gone, and images that no pod has any more. */
  #forgetUnused({ pods }: DesiredState): void {
    const uids = new Set(pods.map(({ pod }) => pod.metadata.uid!));
    this.#trials.prune(uids);
    this.#locks.prune(uids);
    const owners = new Set(pods.map(({ pod }) => updateOwnerOf(pod)));
    const nowMs = this.#deps.clock.monotonicMs();
    for (const [id, { owner }] of this.#records) {
      const sinceMs = this.#unseenSinceMs.get(id) ?? nowMs;
      this.#unseenSinceMs.delete(id);
      if (this.#targets.has(id)) continue;
      const isWorkload = owner.split("/").length > 2;
      if (isWorkload && !owners.has(owner) && nowMs - sinceMs < FORGET_AFTER_MS) this.#unseenSinceMs.set(id, sinceMs);
      else this.#records.delete(id);
    }
  }

  #planCheck(target: Target, now: Date): void {
    const record = this.#recordOf(target);
    if (!isCheckStale(record, target.settings, now, this.#deps.options.imageUpdateJitterMs)) return;
    const next = this.#nextCheck(target);
    const { nextCheckAt: _, ...rest } = record;
    const { scheduleText } = target.settings;
    this.#store({ ...rest, schedule: scheduleText, ...(next && { nextCheckAt: next.toISOString() }) });
  }

  #nextCheck({ settings }: Target): Date | undefined {
    const { clock, random, options } = this.#deps;
    return nextCheckAt(settings, clock.now(), () => Math.floor(random() * options.imageUpdateJitterMs));
  }

  /** Why an update waits although it is its time. */
  #holdOf({ settings, pods }: Target): string | undefined {
    if (settings.isHeld) return "held by its annotation";
    const { lock } = settings;
    if (lock === undefined) return undefined;
    return pods.some(({ pod }) => this.#locks.isLocked(pod, lock)) ? `held by the file ${lock}` : undefined;
  }

  #setTimer(): void {
    this.#cancelTimer();
    const delays = [...this.#targets.values()].flatMap((target) => this.#delaysOf(target));
    if (delays.length === 0) return;
    const delayMs = Math.max(1, Math.min(...delays, LONGEST_WAIT_MS));
    this.#cancelTimer = this.#deps.clock.schedule(delayMs, () => this.#requestSync());
  }

  #delaysOf(target: Target): number[] {
    if (this.#busy.has(target.id)) return [];
    const { settings } = target;
    const record = this.#recordOf(target);
    if (record.trial) return record.trial.pods.map((uid) => this.#trials.recheckMs(uid, limitsOf(target)));
    return stepDelaysMs(record, settings, this.#deps.clock.now(), this.#holdOf(target) !== undefined);
  }

  #endTrial(target: Target): void {
    for (const { pod } of target.pods) this.#trials.end(pod.metadata.uid!);
    this.#atOnce.delete(target.id);
  }

  #record({ pods }: Target, type: PodEvent["type"], reason: string, message: string): void {
    for (const { pod } of pods) this.#deps.recorder.record(podRefOf(pod), { type, reason, message });
  }
}

const limitsOf = ({ settings }: Target) => ({ deadlineMs: settings.deadlineMs, maxRestarts: MAX_RESTARTS });

/** That there is no lock counts for this time: a program makes its lock file long before the update that it blocks. */
const FRESH_MS = 1_000;
/** A file system that failed is accessed again after this time. */
const FAILED_MS = 10_000;

interface LockState {
  isLocked: boolean;
  /** A search is under way; `again`: the lock was asked for since it began. */
  search?: { again: boolean } | undefined;
  untilMs: number;
}

/**
 * Files in volumes of pods that block updates. Volumes may be on disks that do not answer, so nothing waits for the search:
 * until it has ended, and when it fails, the file counts as present.
 */
export class LockFiles {
  readonly #files: Pick<ImageUpdateSources, "isLocked">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #onUnlocked: () => void;
  readonly #locks = new Map<string, LockState>();

  /** @param onUnlocked a file does not exist: {@link isLocked} returns false for the next second */
  constructor(files: Pick<ImageUpdateSources, "isLocked">, clock: Pick<Clock, "monotonicMs">, onUnlocked: () => void) {
    this.#files = files;
    this.#clock = clock;
    this.#onUnlocked = onUnlocked;
  }

  /** Whether the file counts as present; starts a search when that is not known to be current. */
  isLocked(pod: Pod, lock: string): boolean {
    const key = `${pod.metadata.uid} ${lock}`;
    const state = this.#locks.getOrInsert(key, { isLocked: true, untilMs: -1 });
    if (this.#clock.monotonicMs() <= state.untilMs) return state.isLocked;
    if (state.search) state.search.again = true;
    else void this.#search(state, pod, lock);
    return true;
  }

  prune(uids: ReadonlySet<string>): void {
    for (const key of this.#locks.keys()) if (!uids.has(key.slice(0, key.indexOf(" ")))) this.#locks.delete(key);
  }

  async #search(state: LockState, pod: Pod, lock: string): Promise<void> {
    const search = { again: false };
    state.search = search;
    try {
      do {
        search.again = false;
        state.isLocked = await this.#files.isLocked(pod, lock);
        // The file may have been removed since that search began.
      } while (state.isLocked && search.again);
      if (!state.isLocked) state.untilMs = this.#clock.monotonicMs() + FRESH_MS;
    } catch {
      state.isLocked = true;
      state.untilMs = this.#clock.monotonicMs() + FAILED_MS;
    }
    state.search = undefined;
    if (!state.isLocked) this.#onUnlocked();
  }
}
