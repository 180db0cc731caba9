import type { DesiredPod } from "../model/desired-pod.ts";
import { type PodFullName, type PodUID, podFullName } from "../model/identity.ts";
import type { Logger } from "../model/logger.ts";
import { podRefOf } from "../model/pod-ref.ts";
import type { Rejection } from "../plan/admission.ts";
import type { PodEventRecorder } from "./event-recorder.ts";

/** A desired pod without a worker of its own: refused, waiting for a terminating pod, or not assigned to the node. */
export type BlockedPod =
  | { rejection: Rejection; since: Date }
  | { waitsFor: PodFullName }
  | { unschedulable: string; since: Date };

export interface BlockedPodsDeps {
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
