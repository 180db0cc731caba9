import type { Pod } from "../../base/api/pod.ts";
import type { Secret } from "../../base/api/secret.ts";
import { ConcurrencyLimit } from "../../base/concurrency/concurrency-limit.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { DesiredPod, DesiredState } from "../../base/model/desired-pod.ts";
import type { PodUID } from "../../base/model/identity.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import type { EventRecorder, PodEvent } from "../../base/model/pod-event.ts";
import { podRefOf } from "../../base/model/pod-ref.ts";
import { messageOf } from "../../base/text/error-message.ts";
import { type ImageUpdateDefaults, type ImageUpdateSettings, updateOwnerOf } from "../../plan/image-update-settings.ts";
import {
  decideUpdateStep,
  type ImageUpdateRecord,
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
  undoUpdate,
} from "../../plan/image-updates.ts";
import { StoredMap } from "../stored-map.ts";
import { type ImageUpdateReport, toImageUpdateReport } from "./image-update-report.ts";
import {
  findTargets,
  idOf,
  isCheckStale,
  nameOf,
  nextCheckAt,
  stepDelaysMs,
  type Target,
} from "./image-update-targets.ts";
import { type ImageUpdateObservation, ImageUpdateTrials } from "./image-update-trials.ts";

/** Name of an image for the engine, and the tag that has this digest. */
export interface BaselineImage {
  ref: string;
  tag: string;
}

/** Registries and the engine, as updates use them. */
export interface ImageUpdateSources {
  /** Asks the registry. @param present tag that runs now */
  lookUp: (
    image: string,
    policy: ImageUpdateSettings["policy"],
    present: string,
    pullSecrets: readonly Secret[],
    signal: AbortSignal,
  ) => Promise<LookedUp>;
  /** Gets an image onto the machine. @returns its id */
  pull: (ref: string, pullSecrets: readonly Secret[], signal: AbortSignal) => Promise<string>;
  /** A reference by which the image that runs can be pulled again. */
  describe: (imageId: string, image: string, signal: AbortSignal) => Promise<BaselineImage>;
}

export interface ImageUpdateManagerDeps extends ImageUpdateSources {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  random: () => number;
  file: Persisted<readonly ImageUpdateRecord[]>;
  /** Read at each use. */
  defaults: () => ImageUpdateDefaults;
  /** Longest random delay of a scheduled look-up. */
  jitterMs: () => number;
  /** Whether the file that blocks updates exists. */
  isLocked: FindLock;
  /** {@link ImageUpdateManager.apply} would return other pins now. */
  onChange: () => void;
  /** Counts ends: `kept`, `rolled-back`, `error` of a look-up or a pull. */
  onResult?: (owner: string, result: "kept" | "rolled-back" | "error") => void;
}

/** Wall clocks jump: schedules are compared with the time at least this often. */
const LONGEST_WAIT_MS = 3_600_000;
/** Workloads are without pods for a moment while they are replaced. */
const FORGET_AFTER_MS = 7 * 24 * 3_600_000;
const MAX_LOOK_UPS = 2;

/**
 * Keeps images of pods that ask for it up to date: asks registries by a schedule, pulls the new image next to the running
 * container, exchanges it pod by pod, and goes back to the previous image when a pod does not become Ready. Without such
 * pods it does nothing.
 */
export class ImageUpdateManager {
  readonly #deps: ImageUpdateManagerDeps;
  /** Records of images by id. */
  readonly #records: StoredMap<string, ImageUpdateRecord, readonly ImageUpdateRecord[]>;
  /** Records of images that no pod has, with the time since when. Monotonic. */
  readonly #unseenSinceMs = new Map<string, number>();
  readonly #trials: ImageUpdateTrials;
  /** Images that are being named, looked up or pulled. */
  readonly #busy = new Set<string>();
  readonly #lookUps = new ConcurrencyLimit(MAX_LOOK_UPS);
  readonly #stop = new AbortController();
  readonly #locks: LockFiles;
  /** Images whose look-up was asked for. */
  readonly #asked = new Set<string>();
  /** Images that do not wait for their window. */
  readonly #atOnce = new Set<string>();
  #targets = new Map<string, Target>();
  #cancelTimer: (() => void) | undefined;
  #isSyncing = false;
  #needsSync = false;

  constructor(deps: ImageUpdateManagerDeps) {
    this.#deps = deps;
    this.#trials = new ImageUpdateTrials(deps.clock, (uid, pins) => this.#hasWantedImages(uid, pins));
    this.#locks = new LockFiles(deps.isLocked, deps.clock, () => this.#requestSync());
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
    const defaults = this.#deps.defaults();
    this.#targets = findTargets(state, defaults);
    if (this.#targets.size === 0 && this.#records.size === 0) return state;
    if (isComplete) {
      this.#forgetUnused(new Set(state.pods.flatMap(({ pod }) => updateOwnerOf(pod) ?? [])));
      const uids = new Set(state.pods.map(({ pod }) => pod.metadata.uid!));
      this.#trials.prune(uids);
      this.#locks.prune(uids);
    }
    const byUid = new Map<PodUID, Target[]>();
    for (const target of this.#targets.values()) {
      for (const { pod } of target.pods) {
        const uid = pod.metadata.uid!;
        byUid.set(uid, [...(byUid.get(uid) ?? []), target]);
      }
    }
    const pods = state.pods.map((desired) => {
      const uid = desired.pod.metadata.uid!;
      const pins = (byUid.get(uid) ?? []).flatMap(({ id, image }) => {
        const record = this.#records.get(id);
        const pin = record && pinFor(record, uid);
        return pin ? [[image, pin] as const] : [];
      });
      return pins.length === 0 ? desired : { ...desired, imagePins: new Map(pins) };
    });
    this.#requestSync();
    return { ...state, pods };
  }

  /** The status of a pod, or the progress of its revision, changed. */
  observe(observation: ImageUpdateObservation): void {
    if (this.#targets.size === 0) return;
    this.#trials.observe(observation);
    this.#requestSync();
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
    if (undone.length > 0) this.#deps.onChange();
    return undone;
  }

  /** Ends look-ups and pulls; pods keep running. */
  stop(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelTimer?.();
  }

  #targetsOf(owner: string | undefined): Target[] {
    return [...this.#targets.values()].filter((target) => owner === undefined || target.owner === owner);
  }

  #hasWantedImages(uid: PodUID, pins: DesiredPod["imagePins"]): boolean {
    return [...this.#targets.values()].every(({ id, image, pods }) => {
      if (!pods.some(({ pod }) => pod.metadata.uid === uid)) return true;
      const record = this.#records.get(id);
      return (record && pinFor(record, uid)?.ref) === pins?.get(image)?.ref;
    });
  }

  #requestSync(): void {
    if (this.#needsSync || this.#stop.signal.aborted) return;
    this.#needsSync = true;
    queueMicrotask(() => {
      this.#needsSync = false;
      if (!this.#isSyncing && !this.#stop.signal.aborted) this.#sync();
    });
  }

  /** Takes the next step of each image. */
  #sync(): void {
    this.#isSyncing = true;
    let isChanged = false;
    for (const target of this.#targets.values()) {
      if (!this.#busy.has(target.id)) isChanged = this.#step(target) || isChanged;
    }
    this.#isSyncing = false;
    this.#setTimer();
    if (isChanged) this.#deps.onChange();
  }

  /** @returns whether other images are to run now */
  #step(target: Target): boolean {
    const { clock, onResult } = this.#deps;
    const now = clock.now();
    this.#planCheck(target, now);
    const record = this.#recordOf(target);
    const step = decideUpdateStep(record, {
      now,
      pods: target.pods.map(({ pod }) => {
        const isOnTrial = record.trial?.pods.includes(pod.metadata.uid!) ?? false;
        return this.#trials.judge(pod, target.settings.deadlineMs, isOnTrial);
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
        onResult?.(target.owner, "kept");
        return true;
      case "roll-back": {
        const message = `Image ${target.image}: ${nameOf(step.candidate)} failed, ${nameOf(record.current)} runs again: ${step.why}`;
        this.#record(target, "Warning", "ImageUpdateFailed", message);
        this.#deps.logger.warn(`Pod "${target.owner}": ${message}`);
        this.#endTrial(target);
        this.#store(noteRolledBack(record, step.why, now));
        onResult?.(target.owner, "rolled-back");
        return true;
      }
      default:
        return step satisfies never;
    }
  }

  /** Notes the image that runs under the name of the manifest, so that it stays. */
  #adopt(target: Target): void {
    const imageId = this.#trials.runningImageOf(target);
    if (imageId === undefined) return;
    this.#begin(target, async (signal) => {
      const { ref, tag } = await this.#deps.describe(imageId, target.image, signal);
      this.#store({ ...this.#recordOf(target), current: { ref, tag, isBaseline: true } });
      this.#deps.onChange();
    });
  }

  #lookUp(target: Target): void {
    const { id, settings, image, pullSecrets } = target;
    const present = this.#recordOf(target).current?.tag ?? "";
    this.#begin(target, async (signal) => {
      const found = await this.#lookUps.run(signal, () =>
        this.#deps.lookUp(image, settings.policy, present, pullSecrets, signal),
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
      const id = await this.#deps.pull(ref, target.pullSecrets, signal);
      const record = this.#recordOf(target);
      if (record.candidate?.ref !== ref) return;
      this.#store(this.#trials.allRun(target, id) ? noteSame(record) : notePulled(record));
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
    const { clock, logger, onResult } = this.#deps;
    const record = this.#recordOf(target);
    if (record.error !== message) {
      logger.warn(`Image ${target.image} of "${target.owner}" is not updated: ${message}`);
    }
    this.#store(noteFailed(record, message, clock.now()));
    this.#atOnce.delete(target.id);
    onResult?.(target.owner, "error");
  }

  /** The record of an image, or an empty one. */
  #recordOf({ id, owner, image }: Target): ImageUpdateRecord {
    return this.#records.get(id) ?? { owner, image, rejected: [] };
  }

  #store(record: ImageUpdateRecord): void {
    this.#records.set(idOf(record), record);
  }

  /** Forgets images that no pod has any more. @param owners of all pods, those without updates included */
  #forgetUnused(owners: ReadonlySet<string>): void {
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
    if (!isCheckStale(record, target.settings, now, this.#deps.jitterMs())) return;
    const next = this.#nextCheck(target);
    const { nextCheckAt: _, ...rest } = record;
    const { scheduleText } = target.settings;
    this.#store({ ...rest, schedule: scheduleText, ...(next && { nextCheckAt: next.toISOString() }) });
  }

  #nextCheck({ settings }: Target): Date | undefined {
    const { clock, random, jitterMs } = this.#deps;
    return nextCheckAt(settings, clock.now(), () => Math.floor(random() * jitterMs()));
  }

  /** Why an update waits although it is its time. */
  #holdOf({ settings, pods }: Target): string | undefined {
    if (settings.isHeld) return "held by its annotation";
    const { lock } = settings;
    if (lock === undefined) return undefined;
    return pods.some(({ pod }) => this.#locks.isLocked(pod, lock)) ? `held by the file ${lock}` : undefined;
  }

  /** Sets one timer for the next step of any image. */
  #setTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const delays = [...this.#targets.values()].flatMap((target) => this.#delaysOf(target));
    if (delays.length === 0) return;
    const delayMs = Math.max(1, Math.min(...delays, LONGEST_WAIT_MS));
    this.#cancelTimer = this.#deps.clock.schedule(delayMs, () => this.#requestSync());
  }

  #delaysOf(target: Target): number[] {
    if (this.#busy.has(target.id)) return [];
    const { settings } = target;
    const record = this.#recordOf(target);
    if (record.trial) return this.#trials.verdictDelaysMs(record.trial, settings.deadlineMs);
    return stepDelaysMs(record, settings, this.#deps.clock.now(), this.#holdOf(target) !== undefined);
  }

  #endTrial(target: Target): void {
    this.#trials.end(target);
    this.#atOnce.delete(target.id);
  }

  #record({ pods }: Target, type: PodEvent["type"], reason: string, message: string): void {
    for (const { pod } of pods) this.#deps.recorder.record(podRefOf(pod), { type, reason, message });
  }
}

/** That there is no lock counts for this time: a program makes its lock file long before the update that it blocks. */
const FRESH_MS = 1_000;
/** A file system that failed is accessed again after this time. */
const FAILED_MS = 10_000;

/** Whether a file in a volume of a pod exists. Rejects when that cannot be determined. */
export type FindLock = (pod: Pod, lock: string) => Promise<boolean>;

interface LockState {
  isLocked: boolean;
  /** A search is under way; `again`: the lock was asked for since it began. */
  isSearching: boolean;
  again: boolean;
  /** The state counts until then. */
  untilMs: number;
}

/**
 * Files in volumes of pods that block updates. Volumes may be on disks that do not answer, so nothing waits for the search:
 * until it has ended, and when it fails, the file counts as present.
 */
export class LockFiles {
  readonly #find: FindLock;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #onUnlocked: () => void;
  readonly #locks = new Map<string, LockState>();

  /** @param onUnlocked a file does not exist: {@link isLocked} returns false for the next second */
  constructor(find: FindLock, clock: Pick<Clock, "monotonicMs">, onUnlocked: () => void) {
    this.#find = find;
    this.#clock = clock;
    this.#onUnlocked = onUnlocked;
  }

  /** Whether the file counts as present; starts a search when that is not known to be current. */
  isLocked(pod: Pod, lock: string): boolean {
    const key = `${pod.metadata.uid} ${lock}`;
    const state = this.#locks.get(key) ?? { isLocked: true, isSearching: false, again: false, untilMs: -1 };
    this.#locks.set(key, state);
    if (this.#clock.monotonicMs() <= state.untilMs) return state.isLocked;
    if (state.isSearching) state.again = true;
    else void this.#search(state, pod, lock);
    return true;
  }

  /** Forgets all but these pods. */
  prune(uids: ReadonlySet<string>): void {
    for (const key of this.#locks.keys()) if (!uids.has(key.slice(0, key.indexOf(" ")))) this.#locks.delete(key);
  }

  async #search(state: LockState, pod: Pod, lock: string): Promise<void> {
    state.isSearching = true;
    try {
      do {
        state.again = false;
        state.isLocked = await this.#find(pod, lock);
        // The file may have been removed since that search began.
      } while (state.isLocked && state.again);
      if (!state.isLocked) state.untilMs = this.#clock.monotonicMs() + FRESH_MS;
    } catch {
      state.isLocked = true;
      state.untilMs = this.#clock.monotonicMs() + FAILED_MS;
    } finally {
      state.isSearching = false;
    }
    if (!state.isLocked) this.#onUnlocked();
  }
}
