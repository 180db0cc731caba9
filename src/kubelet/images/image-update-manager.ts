import type { DesiredPod, DesiredState } from "../../base/model/desired-pod.ts";
import type { PodUID } from "../../base/model/identity.ts";
import type { Persisted } from "../../base/model/persisted.ts";
import type { EventRecorder, PodEvent } from "../../base/model/pod-event.ts";
import { podRefOf } from "../../base/model/pod-ref.ts";
import { type ImageUpdateDefaults, updateOwnerOf } from "../../plan/image-update-settings.ts";
import {
  decideUpdateStep,
  type ImageUpdateRecord,
  noteKept,
  noteRolledBack,
  noteSwapped,
  pinFor,
  undoUpdate,
} from "../../plan/image-updates.ts";
import { ImageUpdateRecords } from "./image-update-records.ts";
import { type ImageUpdateReport, toImageUpdateReport } from "./image-update-report.ts";
import { isCheckStale, nextCheckAt, stepDelaysMs } from "./image-update-schedule.ts";
import { findTargets, nameOf, type Target } from "./image-update-targets.ts";
import { type ImageUpdateObservation, ImageUpdateTrials } from "./image-update-trials.ts";
import { ImageUpdateWork, type ImageUpdateWorkDeps } from "./image-update-work.ts";
import { type FindLock, LockFiles } from "./lock-files.ts";

export interface ImageUpdateManagerDeps extends ImageUpdateWorkDeps {
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

/**
 * Keeps images of pods that ask for it up to date: asks registries by a schedule, pulls the new image next to the running
 * container, exchanges it pod by pod, and goes back to the previous image when a pod does not become Ready. Without such
 * pods it does nothing.
 */
export class ImageUpdateManager {
  readonly #deps: ImageUpdateManagerDeps;
  readonly #records: ImageUpdateRecords;
  readonly #trials: ImageUpdateTrials;
  readonly #work: ImageUpdateWork;
  readonly #locks: LockFiles;
  /** Images whose look-up was asked for. */
  readonly #asked = new Set<string>();
  /** Images that do not wait for their window. */
  readonly #atOnce = new Set<string>();
  #isStopped = false;
  #targets = new Map<string, Target>();
  #cancelTimer: (() => void) | undefined;
  #isSyncing = false;
  #needsSync = false;

  constructor(deps: ImageUpdateManagerDeps) {
    this.#deps = deps;
    this.#trials = new ImageUpdateTrials(deps.clock, (uid, pins) => this.#hasWantedImages(uid, pins));
    this.#locks = new LockFiles(deps.isLocked, deps.clock, () => this.#requestSync());
    this.#records = new ImageUpdateRecords(deps.file, deps.clock);
    this.#work = new ImageUpdateWork(deps, this.#records, this.#trials, {
      nextCheck: (target) => this.#nextCheck(target),
      onAdopted: () => deps.onChange(),
      onLookedUp: (target, candidate) => {
        if (!candidate) this.#atOnce.delete(target.id);
        else this.#record(target, "Normal", "ImageUpdateFound", `Image ${target.image}: ${nameOf(candidate)} is newer`);
      },
      onFailed: ({ id, owner }) => {
        this.#atOnce.delete(id);
        deps.onResult?.(owner, "error");
      },
      onEnd: () => this.#requestSync(),
    });
  }

  /** Gives each pod the images that it runs. @param isComplete every source has answered */
  apply(state: DesiredState, isComplete: boolean): DesiredState {
    const defaults = this.#deps.defaults();
    this.#targets = findTargets(state, defaults);
    if (this.#targets.size === 0 && this.#records.size === 0) return state;
    if (isComplete) {
      this.#records.prune(this.#targets, new Set(state.pods.flatMap(({ pod }) => updateOwnerOf(pod) ?? [])));
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
        toImageUpdateReport(target, this.#records.of(target), {
          hold: this.#holdOf(target),
          isWorking: this.#work.isBusy(target) || this.#asked.has(target.id),
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
      const record = undoUpdate(this.#records.of(target), this.#deps.clock.now());
      if (!record) continue;
      this.#records.put(record);
      this.#endTrial(target);
      this.#record(target, "Normal", "ImageUpdateUndone", `Image ${target.image}: back to ${nameOf(record.current)}`);
      undone.push(target.image);
    }
    if (undone.length > 0) this.#deps.onChange();
    return undone;
  }

  /** Ends look-ups and pulls; pods keep running. */
  stop(): void {
    this.#isStopped = true;
    this.#work.stop();
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
    if (this.#needsSync || this.#isStopped) return;
    this.#needsSync = true;
    queueMicrotask(() => {
      this.#needsSync = false;
      if (!this.#isSyncing && !this.#isStopped) this.#sync();
    });
  }

  /** Takes the next step of each image. */
  #sync(): void {
    this.#isSyncing = true;
    let isChanged = false;
    for (const target of this.#targets.values()) {
      if (!this.#work.isBusy(target)) isChanged = this.#step(target) || isChanged;
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
    const record = this.#records.of(target);
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
        if (!record.current) this.#work.adopt(target);
        return false;
      case "look-up":
        this.#asked.delete(target.id);
        this.#work.lookUp(target);
        return false;
      case "pull":
        this.#work.pull(target, step.candidate.ref);
        return false;
      case "swap": {
        const message = `Image ${target.image}: updating from ${nameOf(record.current)} to ${nameOf(step.candidate)}`;
        this.#record(target, "Normal", "ImageUpdating", message);
        this.#trials.begin(step.uid);
        this.#records.put(noteSwapped(record, step.uid));
        return true;
      }
      case "keep":
        this.#record(target, "Normal", "ImageUpdated", `Image ${target.image}: ${nameOf(step.candidate)} is kept`);
        this.#endTrial(target);
        this.#records.put(noteKept(record, now));
        onResult?.(target.owner, "kept");
        return true;
      case "roll-back": {
        const message = `Image ${target.image}: ${nameOf(step.candidate)} failed, ${nameOf(record.current)} runs again: ${step.why}`;
        this.#record(target, "Warning", "ImageUpdateFailed", message);
        this.#deps.logger.warn(`Pod "${target.owner}": ${message}`);
        this.#endTrial(target);
        this.#records.put(noteRolledBack(record, step.why, now));
        onResult?.(target.owner, "rolled-back");
        return true;
      }
      default:
        return step satisfies never;
    }
  }

  #planCheck(target: Target, now: Date): void {
    const record = this.#records.of(target);
    if (!isCheckStale(record, target.settings, now, this.#deps.jitterMs())) return;
    const next = this.#nextCheck(target);
    const { nextCheckAt: _, ...rest } = record;
    const { scheduleText } = target.settings;
    this.#records.put({ ...rest, schedule: scheduleText, ...(next && { nextCheckAt: next.toISOString() }) });
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
    if (this.#work.isBusy(target)) return [];
    const { settings } = target;
    const record = this.#records.of(target);
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
