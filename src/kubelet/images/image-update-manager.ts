import type { Pod, PodStatus } from "../../api/pod.ts";
import type { Secret } from "../../api/secret.ts";
import { ConcurrencyLimit } from "../../concurrency/concurrency-limit.ts";
import type { Clock } from "../../model/clock.ts";
import type { DesiredPod, DesiredState } from "../../model/desired-pod.ts";
import type { PodUID } from "../../model/identity.ts";
import type { Logger } from "../../model/logger.ts";
import type { Persisted } from "../../model/persisted.ts";
import { containersOf } from "../../model/pod-containers.ts";
import type { EventRecorder, PodEvent } from "../../model/pod-event.ts";
import { podRefOf } from "../../model/pod-ref.ts";
import type { ContainerSnapshot } from "../../model/pod-snapshot.ts";
import { type ImageUpdateDefaults, type ImageUpdateSettings, updateOwnerOf } from "../../plan/image-update-settings.ts";
import {
  decideUpdateStep,
  type ImageUpdateRecord,
  type LookedUp,
  noteFailed,
  noteKept,
  noteLookedUp,
  notePulled,
  noteSame,
  noteStarted,
  noteSwapped,
  noteTakenBack,
  pinFor,
  type UpdatePod,
  undoUpdate,
} from "../../plan/image-updates.ts";
import type { RolloutProgress } from "../../plan/rollout.ts";
import { isRevisionReady, judgeTrial, MIN_READY_MS, restartCountsOf } from "../../plan/rollout.ts";
import { type ImageUpdateReport, toImageUpdateReport } from "./image-update-report.ts";
import { findTargets, idOf, nameOf, type Target } from "./image-update-targets.ts";

/** Name of an image for the engine, and the tag that has this digest. */
export interface BaselineImage {
  ref: string;
  tag: string;
}

export interface ImageUpdateManagerDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  random: () => number;
  file: Persisted<readonly ImageUpdateRecord[]>;
  /** Read at each use. */
  defaults: () => ImageUpdateDefaults;
  /** Longest random delay of a scheduled look-up. */
  jitterMs: () => number;
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
  /** Whether the file that holds updates off exists. */
  isLocked: (pod: Pod, lock: string) => boolean;
  /** {@link ImageUpdateManager.apply} would return other pins now. */
  onChange: () => void;
  /** Counts ends: `kept`, `taken-back`, `error` of a look-up or a pull. */
  onResult?: (owner: string, result: "kept" | "taken-back" | "error") => void;
}

/** The report of a pod worker. */
export interface ImageUpdateObservation {
  pod: Pod;
  status: PodStatus | undefined;
  rollout: RolloutProgress;
  pins: DesiredPod["imagePins"];
  containers: readonly ContainerSnapshot[];
}

interface Observed extends ImageUpdateObservation {
  /** Restart counts since it is Ready. */
  readyWith?: string;
  readySinceMs?: number;
}

interface PodTrial {
  sinceMs: number;
  restarts?: ReadonlyMap<string, number>;
}

/** Restarts of one container after which a new image has failed. */
const MAX_RESTARTS = 3;
/** A file that holds updates off is looked for this often, while an update waits for it. */
const LOCK_PERIOD_MS = 60_000;
/** Wall clocks jump: schedules are compared with the time at least this often. */
const LONGEST_WAIT_MS = 3_600_000;
const MAX_LOOK_UPS = 2;
/** Workloads are without pods for a moment while they are replaced. */
const FORGET_AFTER_MS = 7 * 24 * 3_600_000;

/**
 * Keeps images of pods that ask for it up to date: asks registries by a schedule, pulls the new image next to the running
 * container, exchanges it pod by pod, and goes back to the former image when a pod does not become Ready. Without such
 * pods it does nothing.
 */
export class ImageUpdateManager {
  readonly #deps: ImageUpdateManagerDeps;
  readonly #records = new Map<string, ImageUpdateRecord>();
  readonly #observed = new Map<PodUID, Observed>();
  readonly #trials = new Map<PodUID, PodTrial>();
  readonly #busy = new Set<string>();
  readonly #asked = new Set<string>();
  readonly #atOnce = new Set<string>();
  readonly #unseenSinceMs = new Map<string, number>();
  readonly #lookUps = new ConcurrencyLimit(MAX_LOOK_UPS);
  readonly #stop = new AbortController();
  #targets = new Map<string, Target>();
  #cancelWake: (() => void) | undefined;
  #isSyncing = false;
  #needsSync = false;

  constructor(deps: ImageUpdateManagerDeps) {
    this.#deps = deps;
    for (const record of deps.file.read() ?? []) this.#records.set(idOf(record), noteStarted(record));
    if ([...this.#records.values()].some(({ trial }) => trial)) this.#store();
  }

  /** Gives each pod the images that it runs. @param isComplete every source has answered */
  apply(state: DesiredState, isComplete: boolean): DesiredState {
    const defaults = this.#deps.defaults();
    this.#targets = findTargets(state, defaults);
    if (this.#targets.size === 0 && this.#records.size === 0) return state;
    if (isComplete) this.#forget(state);
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
    const uid = observation.pod.metadata.uid!;
    const { status, rollout } = observation;
    const before = this.#observed.get(uid);
    const isReady = rollout === "live" && isRevisionReady(status);
    const readyWith = isReady ? JSON.stringify([...restartCountsOf(status)]) : undefined;
    const sinceMs = readyWith === before?.readyWith ? before?.readySinceMs : this.#deps.clock.monotonicMs();
    this.#observed.set(uid, {
      ...observation,
      ...(readyWith !== undefined && { readyWith, readySinceMs: sinceMs ?? this.#deps.clock.monotonicMs() }),
    });
    const trial = this.#trials.get(uid);
    if (trial && this.#hasWantedImages(uid) && rollout === "live") trial.restarts ??= restartCountsOf(status);
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
   * Looks up now, and exchanges images without waiting for the window. A pod that holds updates off is left alone.
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

  /** Goes back to the former images; the present ones are not tried again. @returns images that were taken back */
  undo(owner: string): string[] {
    const undone: string[] = [];
    for (const target of this.#targetsOf(owner)) {
      const record = undoUpdate(this.#recordOf(target), this.#deps.clock.now());
      if (!record) continue;
      this.#put(record);
      this.#endTrial(target);
      this.#tell(target, "Normal", "ImageUpdateUndone", `Image ${target.image}: back to ${nameOf(record.current)}`);
      undone.push(target.image);
    }
    if (undone.length > 0) this.#deps.onChange();
    return undone;
  }

  /** Ends look-ups and pulls; pods keep running. */
  stop(): void {
    this.#stop.abort(new Error("kubelet-ts is stopping"));
    this.#cancelWake?.();
  }

  #targetsOf(owner: string | undefined): Target[] {
    return [...this.#targets.values()].filter((target) => owner === undefined || target.owner === owner);
  }

  #recordOf({ id, owner, image }: Target): ImageUpdateRecord {
    return this.#records.get(id) ?? { owner, image, rejected: [] };
  }

  /** Forgets images that no pod has any more. */
  #forget(state: DesiredState): void {
    const owners = new Set(state.pods.flatMap(({ pod }) => updateOwnerOf(pod) ?? []));
    const nowMs = this.#deps.clock.monotonicMs();
    let isChanged = false;
    for (const [id, { owner }] of this.#records) {
      if (this.#targets.has(id)) {
        this.#unseenSinceMs.delete(id);
        continue;
      }
      const isWorkload = owner.split("/").length > 2;
      const sinceMs = this.#unseenSinceMs.get(id) ?? nowMs;
      this.#unseenSinceMs.set(id, sinceMs);
      if (isWorkload && !owners.has(owner) && nowMs - sinceMs < FORGET_AFTER_MS) continue;
      this.#records.delete(id);
      this.#unseenSinceMs.delete(id);
      isChanged = true;
    }
    const uids = new Set(state.pods.map(({ pod }) => pod.metadata.uid!));
    for (const uid of this.#observed.keys()) if (!uids.has(uid)) this.#observed.delete(uid);
    for (const uid of this.#trials.keys()) if (!uids.has(uid)) this.#trials.delete(uid);
    if (isChanged) this.#store();
  }

  /** Reported containers are those with the images that are wanted now. */
  #hasWantedImages(uid: PodUID): boolean {
    const observed = this.#observed.get(uid);
    return [...this.#targets.values()].every(({ id, image, pods }) => {
      if (!pods.some(({ pod }) => pod.metadata.uid === uid)) return true;
      const record = this.#records.get(id);
      return (record && pinFor(record, uid)?.ref) === observed?.pins?.get(image)?.ref;
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
    this.#arm();
    if (isChanged) this.#deps.onChange();
  }

  /** @returns whether other images are to run now */
  #step(target: Target): boolean {
    const { clock, onResult } = this.#deps;
    this.#plan(target);
    const record = this.#recordOf(target);
    const now = clock.now();
    const step = decideUpdateStep(record, {
      now,
      pods: target.pods.map(({ pod }) => this.#judge(pod, target)),
      isWindowOpen: this.#atOnce.has(target.id) || target.settings.window.isOpen(now),
      hold: this.#holdOf(target),
      isCheckAsked: this.#asked.has(target.id),
    });
    switch (step.do) {
      case "nothing":
        if (!record.current) void this.#adopt(target);
        return false;
      case "look-up":
        void this.#lookUp(target);
        return false;
      case "pull":
        void this.#pull(target, step.candidate.ref);
        return false;
      case "swap": {
        const message = `Image ${target.image}: updating from ${nameOf(record.current)} to ${nameOf(step.candidate)}`;
        this.#tell(target, "Normal", "ImageUpdating", message);
        this.#trials.set(step.uid, { sinceMs: clock.monotonicMs() });
        this.#put(noteSwapped(record, step.uid));
        return true;
      }
      case "keep":
        this.#tell(target, "Normal", "ImageUpdated", `Image ${target.image}: ${nameOf(step.candidate)} is kept`);
        this.#endTrial(target);
        this.#put(noteKept(record, now));
        onResult?.(target.owner, "kept");
        return true;
      case "take-back": {
        const message = `Image ${target.image}: ${nameOf(step.candidate)} failed, ${nameOf(record.current)} runs again: ${step.why}`;
        this.#tell(target, "Warning", "ImageUpdateFailed", message);
        this.#deps.logger.warn(`Pod "${target.owner}": ${message}`);
        this.#endTrial(target);
        this.#put(noteTakenBack(record, step.why, now));
        onResult?.(target.owner, "taken-back");
        return true;
      }
      default:
        return step satisfies never;
    }
  }

  /** Sets the time of the next look-up when there is none, or when the schedule or the clock has changed. */
  #plan(target: Target): void {
    const record = this.#recordOf(target);
    if (!record.current || record.error !== undefined) return;
    const { schedule, scheduleText } = target.settings;
    const now = this.#deps.clock.now();
    const regular = schedule.next(now, now);
    const known = record.nextCheckAt === undefined ? undefined : new Date(record.nextCheckAt);
    const isStale =
      record.schedule !== scheduleText ||
      known === undefined ||
      (regular !== undefined && known.getTime() > regular.getTime() + this.#deps.jitterMs());
    if (!isStale) return;
    const next = this.#nextCheck(target);
    const { nextCheckAt: _, ...rest } = record;
    this.#put({ ...rest, schedule: scheduleText, ...(next && { nextCheckAt: next.toISOString() }) });
  }

  #nextCheck({ settings }: Target): Date | undefined {
    const { clock, random, jitterMs } = this.#deps;
    const regular = settings.schedule.next(clock.now(), clock.now());
    return regular && new Date(regular.getTime() + Math.floor(random() * jitterMs()));
  }

  #judge(pod: Pod, target: Target): UpdatePod {
    const { clock } = this.#deps;
    const uid = pod.metadata.uid!;
    const observed = this.#observed.get(uid);
    const isCurrent = observed !== undefined && observed.pod === pod && this.#hasWantedImages(uid);
    const rollout = isCurrent ? observed.rollout : "pending";
    let trial = this.#trials.get(uid);
    if (!trial && this.#recordOf(target).trial?.pods.includes(uid)) {
      // The trial of an earlier process goes on.
      trial = { sinceMs: clock.monotonicMs() };
      this.#trials.set(uid, trial);
    }
    if (!trial) return { uid, isLive: rollout === "live", verdict: { state: "ready" } };
    const elapsedMs = clock.monotonicMs() - trial.sinceMs;
    const limits = { deadlineMs: target.settings.deadlineMs, maxRestarts: MAX_RESTARTS };
    const status = isCurrent ? observed.status : undefined;
    const verdict = judgeTrial({ ...trial, elapsedMs, limits }, status, rollout);
    const isStable =
      observed?.readySinceMs !== undefined && clock.monotonicMs() - observed.readySinceMs >= MIN_READY_MS;
    const isPending = verdict.state === "ready" && !isStable;
    return { uid, isLive: rollout === "live", verdict: isPending ? { state: "pending" } : verdict };
  }

  /** Why an update waits although it is its time. */
  #holdOf({ settings, pods }: Target): string | undefined {
    if (settings.isHeld) return "held by its annotation";
    const { lock } = settings;
    if (lock === undefined) return undefined;
    return pods.some(({ pod }) => this.#deps.isLocked(pod, lock)) ? `held by the file ${lock}` : undefined;
  }

  /** Notes the image that runs under the name of the manifest, so that it stays. */
  async #adopt(target: Target): Promise<void> {
    const found = target.pods.flatMap(({ pod }) => {
      const observed = this.#observed.get(pod.metadata.uid!);
      if (observed?.pod !== pod || observed.readyWith === undefined) return [];
      const names = containersOf(pod.spec).filter(({ image }) => image === target.image);
      return names.flatMap(({ name }) => observed.containers.find((one) => one.name === name)?.imageId ?? []);
    })[0];
    if (found === undefined) return;
    await this.#work(target, async (signal) => {
      const { ref, tag } = await this.#deps.describe(found, target.image, signal);
      this.#put({ ...this.#recordOf(target), current: { ref, tag, isBaseline: true } });
      this.#deps.onChange();
    });
  }

  async #lookUp(target: Target): Promise<void> {
    this.#asked.delete(target.id);
    const { settings, image, pullSecrets } = target;
    const present = this.#recordOf(target).current?.tag ?? "";
    await this.#work(target, async (signal) => {
      const found = await this.#lookUps.run(signal, () =>
        this.#deps.lookUp(image, settings.policy, present, pullSecrets, signal),
      );
      const record = noteLookedUp(this.#recordOf(target), found, this.#deps.clock.now(), this.#nextCheck(target));
      this.#put(record);
      if (!record.candidate) this.#atOnce.delete(target.id);
      else this.#tell(target, "Normal", "ImageUpdateFound", `Image ${image}: ${nameOf(record.candidate)} is newer`);
    });
  }

  async #pull(target: Target, ref: string): Promise<void> {
    await this.#work(target, async (signal) => {
      const id = await this.#deps.pull(ref, target.pullSecrets, signal);
      const record = this.#recordOf(target);
      if (record.candidate?.ref !== ref) return;
      const isSame = target.pods.every(({ pod }) => {
        const running = this.#observed.get(pod.metadata.uid!)?.containers ?? [];
        const names = new Set(containersOf(pod.spec).flatMap((one) => (one.image === target.image ? one.name : [])));
        const ours = running.filter(({ name, state }) => state === "running" && names.has(name));
        return ours.length > 0 && ours.every(({ imageId }) => imageId === id);
      });
      this.#put(isSame ? noteSame(record) : notePulled(record));
    });
  }

  /** One piece of work for an image at a time; a failure is noted. */
  async #work(target: Target, work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { clock, logger, onResult } = this.#deps;
    this.#busy.add(target.id);
    try {
      await work(this.#stop.signal);
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      const message = error instanceof Error ? error.message : String(error);
      const record = this.#recordOf(target);
      if (record.error !== message)
        logger.warn(`Image ${target.image} of "${target.owner}" is not updated: ${message}`);
      this.#put(noteFailed(record, message, clock.now()));
      this.#atOnce.delete(target.id);
      onResult?.(target.owner, "error");
    } finally {
      this.#busy.delete(target.id);
      this.#requestSync();
    }
  }

  /** One timer for whatever comes next. */
  #arm(): void {
    this.#cancelWake?.();
    this.#cancelWake = undefined;
    const delays = [...this.#targets.values()].flatMap((target) => this.#delaysOf(target));
    if (delays.length === 0) return;
    const delayMs = Math.max(1, Math.min(...delays, LONGEST_WAIT_MS));
    this.#cancelWake = this.#deps.clock.schedule(delayMs, () => this.#requestSync());
  }

  #delaysOf(target: Target): number[] {
    const { clock } = this.#deps;
    if (this.#busy.has(target.id)) return [];
    const record = this.#recordOf(target);
    const now = clock.now();
    const until = (date: Date | undefined) => (date ? [date.getTime() - now.getTime()] : []);
    const nowMs = clock.monotonicMs();
    if (record.trial) {
      return record.trial.pods.flatMap((uid) => {
        const trial = this.#trials.get(uid);
        const since = this.#observed.get(uid)?.readySinceMs;
        const left = [
          ...(trial ? [trial.sinceMs + target.settings.deadlineMs - nowMs] : []),
          ...(since === undefined ? [] : [since + MIN_READY_MS - nowMs]),
        ].filter((ms) => ms > 0);
        // A deadline that is over without a verdict: the pod waits for another one.
        return left.length > 0 ? left : [MIN_READY_MS];
      });
    }
    const check = until(record.nextCheckAt === undefined ? undefined : new Date(record.nextCheckAt));
    if (!record.candidate?.isPulled) return check;
    if (this.#holdOf(target) !== undefined)
      return target.settings.lock === undefined ? check : [...check, LOCK_PERIOD_MS];
    return [...check, ...until(target.settings.window.nextOpening(now))];
  }

  #endTrial(target: Target): void {
    for (const { pod } of target.pods) this.#trials.delete(pod.metadata.uid!);
    this.#atOnce.delete(target.id);
  }

  #tell({ pods }: Target, type: PodEvent["type"], reason: string, message: string): void {
    for (const { pod } of pods) this.#deps.recorder.record(podRefOf(pod), { type, reason, message });
  }

  #put(record: ImageUpdateRecord): void {
    this.#records.set(idOf(record), record);
    this.#store();
  }

  #store(): void {
    this.#deps.file.write([...this.#records.values()]);
  }
}
