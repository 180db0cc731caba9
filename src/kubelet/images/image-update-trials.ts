import type { Pod, PodStatus } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { DesiredPod } from "../../base/model/desired-pod.ts";
import type { PodUID } from "../../base/model/identity.ts";
import { containersOf } from "../../base/model/pod-containers.ts";
import type { ContainerSnapshot } from "../../base/model/pod-snapshot.ts";
import type { ImageTrial, UpdatePod } from "../../plan/image-updates.ts";
import {
  isRevisionReady,
  judgeTrial,
  MIN_READY_MS,
  type RolloutProgress,
  restartCountsOf,
} from "../../plan/rollout.ts";
import type { Target } from "./image-update-targets.ts";

/** Restarts of one container after which a new image has failed. */
const MAX_RESTARTS = 3;

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

/** Pods as image updates see them: what each one runs, since when it is Ready, and how it does with a new image. */
export class ImageUpdateTrials {
  readonly #clock: Clock;
  readonly #hasWantedImages: (uid: PodUID, pins: DesiredPod["imagePins"]) => boolean;
  readonly #observed = new Map<PodUID, Observed>();
  readonly #trials = new Map<PodUID, PodTrial>();

  /** @param hasWantedImages whether a pod with these pins runs the images that it should run now */
  constructor(clock: Clock, hasWantedImages: (uid: PodUID, pins: DesiredPod["imagePins"]) => boolean) {
    this.#clock = clock;
    this.#hasWantedImages = hasWantedImages;
  }

  observe(observation: ImageUpdateObservation): void {
    const uid = observation.pod.metadata.uid!;
    const { status, rollout, pins } = observation;
    const before = this.#observed.get(uid);
    const isReady = rollout === "live" && isRevisionReady(status);
    const readyWith = isReady ? JSON.stringify([...restartCountsOf(status)]) : undefined;
    const sinceMs = readyWith === before?.readyWith ? before?.readySinceMs : this.#clock.monotonicMs();
    this.#observed.set(uid, {
      ...observation,
      ...(readyWith !== undefined && { readyWith, readySinceMs: sinceMs ?? this.#clock.monotonicMs() }),
    });
    const trial = this.#trials.get(uid);
    if (trial && this.#hasWantedImages(uid, pins) && rollout === "live") trial.restarts ??= restartCountsOf(status);
  }

  /** Forgets pods that are not in this set. */
  prune(uids: ReadonlySet<PodUID>): void {
    for (const map of [this.#observed, this.#trials]) {
      for (const uid of map.keys()) if (!uids.has(uid)) map.delete(uid);
    }
  }

  begin(uid: PodUID): void {
    this.#trials.set(uid, { sinceMs: this.#clock.monotonicMs() });
  }

  end({ pods }: Target): void {
    for (const { pod } of pods) this.#trials.delete(pod.metadata.uid!);
  }

  /** The verdict on a pod. @param isOnTrial a trial of an earlier process continues */
  judge(pod: Pod, deadlineMs: number, isOnTrial: boolean): UpdatePod {
    const nowMs = this.#clock.monotonicMs();
    const uid = pod.metadata.uid!;
    const observed = this.#observed.get(uid);
    const isCurrent = observed !== undefined && observed.pod === pod && this.#hasWantedImages(uid, observed.pins);
    const rollout = isCurrent ? observed.rollout : "pending";
    if (isOnTrial && !this.#trials.has(uid)) this.begin(uid);
    const trial = this.#trials.get(uid);
    if (!trial) return { uid, isLive: rollout === "live", verdict: { state: "ready" } };
    const limits = { deadlineMs, maxRestarts: MAX_RESTARTS };
    const status = isCurrent ? observed.status : undefined;
    const verdict = judgeTrial({ ...trial, elapsedMs: nowMs - trial.sinceMs, limits }, status, rollout);
    const isStable = observed?.readySinceMs !== undefined && nowMs - observed.readySinceMs >= MIN_READY_MS;
    const isPending = verdict.state === "ready" && !isStable;
    return { uid, isLive: rollout === "live", verdict: isPending ? { state: "pending" } : verdict };
  }

  /** Times after which the verdict on a trial may be another. Unit: milliseconds. */
  verdictDelaysMs({ pods }: ImageTrial, deadlineMs: number): number[] {
    const nowMs = this.#clock.monotonicMs();
    return pods.flatMap((uid) => {
      const trial = this.#trials.get(uid);
      const since = this.#observed.get(uid)?.readySinceMs;
      const left = [
        ...(trial ? [trial.sinceMs + deadlineMs - nowMs] : []),
        ...(since === undefined ? [] : [since + MIN_READY_MS - nowMs]),
      ].filter((ms) => ms > 0);
      // A deadline that expires without a verdict: the pod waits for another one.
      return left.length > 0 ? left : [MIN_READY_MS];
    });
  }

  /** Id of the image that a Ready pod runs under the name of its manifest; undefined while none is Ready. */
  runningImageOf({ pods, image }: Target): string | undefined {
    return pods.flatMap(({ pod }) => {
      const observed = this.#observed.get(pod.metadata.uid!);
      if (observed?.pod !== pod || observed.readyWith === undefined) return [];
      const names = containersOf(pod.spec).filter((container) => container.image === image);
      return names.flatMap(({ name }) => observed.containers.find((one) => one.name === name)?.imageId ?? []);
    })[0];
  }

  /** Whether all pods run this image already, under any name. */
  allRun({ pods, image }: Target, imageId: string): boolean {
    return pods.every(({ pod }) => {
      const containers = this.#observed.get(pod.metadata.uid!)?.containers ?? [];
      const names = new Set(containersOf(pod.spec).flatMap((one) => (one.image === image ? one.name : [])));
      const running = containers.filter(({ name, state }) => state === "running" && names.has(name));
      return running.length > 0 && running.every((container) => container.imageId === imageId);
    });
  }
}
