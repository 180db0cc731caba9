import type { DesiredPod } from "../base/model/desired-pod.ts";
import { type PodFullName, type PodUID, podFullName } from "../base/model/identity.ts";
import type { Logger } from "../base/model/logger.ts";
import { podRefOf } from "../base/model/pod-ref.ts";
import type { Admission, Rejection } from "../plan/admission.ts";
import type { PodEventRecorder } from "./event-recorder.ts";
import type { PodWorker } from "./pod-worker.ts";

/** A desired pod without a worker of its own: refused, waiting for a terminating pod, or not assigned to the node. */
export type BlockedPod =
  | { rejection: Rejection; since: Date }
  | { waitsFor: PodFullName }
  | { unschedulable: string; since: Date };

interface BlockedPodsDeps {
  now: () => Date;
  logger: Logger;
  recorder: Pick<PodEventRecorder, "record">;
}

/** The blocked pods of the current pass; a refusal is reported when it differs from that of the pass before. */
export class BlockedPods {
  readonly #deps: BlockedPodsDeps;
  #current = new Map<PodUID, BlockedPod>();
  #before: ReadonlyMap<PodUID, BlockedPod> = new Map();

  constructor(deps: BlockedPodsDeps) {
    this.#deps = deps;
  }

  get(uid: PodUID): BlockedPod | undefined {
    return this.#current.get(uid);
  }

  rejection(uid: PodUID): Rejection | undefined {
    const blocked = this.#current.get(uid);
    return blocked && "rejection" in blocked ? blocked.rejection : undefined;
  }

  /** Begins a pass, in which every desired pod is judged again. */
  begin(): void {
    this.#before = this.#current;
    this.#current = new Map();
  }

  wait(uid: PodUID, waitsFor: PodFullName): void {
    this.#current.set(uid, { waitsFor });
  }

  /** @param why message of the condition PodScheduled */
  hold({ pod }: DesiredPod, why: string): void {
    const ref = podRefOf(pod);
    const before = this.#before.get(ref.uid);
    const isKnown = before && "unschedulable" in before && before.unschedulable === why;
    if (!isKnown) {
      this.#deps.recorder.record(ref, { type: "Warning", reason: "FailedScheduling", message: why });
    }
    this.#current.set(ref.uid, { unschedulable: why, since: isKnown ? before.since : this.#deps.now() });
  }

  /** An eviction reports itself. */
  evict(uid: PodUID, rejection: Rejection, since: Date): void {
    this.#current.set(uid, { rejection, since });
  }

  /** @param evictedAt of an evicted pod */
  reject({ pod }: DesiredPod, why: Rejection, evictedAt: Date | undefined): void {
    const { now, logger, recorder } = this.#deps;
    const ref = podRefOf(pod);
    const before = this.#before.get(ref.uid);
    const isKnown = before && "rejection" in before && before.rejection.message === why.message;
    if (!isKnown) {
      logger.error(`Pod "${podFullName(ref)}" is refused: ${why.reason}: ${why.message}`);
      // The status has "Pod " before the message of the event. Source: the kubelet's rejectPod.
      recorder.record(ref, { type: "Warning", reason: why.reason, message: why.message.replace(/^Pod /, "") });
    }
    this.#current.set(ref.uid, { rejection: why, since: isKnown ? before.since : (evictedAt ?? now()) });
  }
}

export interface AdmissionInput {
  desired: readonly DesiredPod[];
  workers: ReadonlyMap<PodUID, PodWorker>;
  /** Pods of which the engine has containers. */
  observed: Iterable<PodUID>;
  evictions: ReadonlyMap<PodUID, Rejection>;
  /** Every source has answered. */
  isComplete: boolean;
  /** Which of these pods the node refuses. @param running pods that already have their place */
  admit: (pods: readonly DesiredPod[], running: ReadonlySet<PodUID>, isComplete: boolean) => Admission;
  /** Why a pod that does not run yet is not assigned to the node; undefined: it is. */
  holdOf: ((desired: DesiredPod) => string | undefined) | undefined;
}

/**
 * The desired pods that are not assigned to the node, with the reason, and those that it refuses or has evicted. A pod that
 * runs already is admitted first.
 */
export function decideAdmission(input: AdmissionInput): Admission & { held: ReadonlyMap<PodUID, string> } {
  const { desired, workers, evictions } = input;
  const desiredUids = new Set(desired.map(({ pod }) => pod.metadata.uid!));
  const running = new Set([...workers].filter(([, { isRemoving }]) => !isRemoving).map(([uid]) => uid));
  for (const uid of input.observed) if (desiredUids.has(uid)) running.add(uid);
  for (const uid of evictions.keys()) running.delete(uid);
  const held = new Map<PodUID, string>();
  for (const one of desired) {
    const uid = one.pod.metadata.uid!;
    const hold = running.has(uid) ? undefined : input.holdOf?.(one);
    if (hold !== undefined) held.set(uid, hold);
  }
  const candidates = desired.filter((one) => {
    const uid = one.pod.metadata.uid!;
    return !evictions.has(uid) && !held.has(uid) && !hasEnded(one, workers);
  });
  const { rejections, resizes } = input.admit(candidates, running, input.isComplete);
  return { held, rejections: new Map([...rejections, ...evictions]), resizes };
}

/**
 * An ended pod that never runs again, of an API server or a Job, uses no resources. Source: the kubelet's
 * filterOutTerminatedPods.
 */
function hasEnded({ isBound, runsOnce, pod }: DesiredPod, workers: ReadonlyMap<PodUID, PodWorker>): boolean {
  const phase = (isBound || runsOnce) && workers.get(pod.metadata.uid!)?.status?.phase;
  return phase === "Succeeded" || phase === "Failed";
}
