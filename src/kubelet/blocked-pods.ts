import type { PodStatus } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { DesiredPod, DesiredState } from "../base/model/desired-state.ts";
import { type PodFullName, type PodUID, podFullName, podRefOf } from "../base/model/pod.ts";
import type { EventRecorder } from "../base/model/pod-event.ts";
import type { Admission, Rejection } from "../plan/admission.ts";
import type { PodRevision } from "./edit-rules.ts";
import type { PodRecords } from "./pod-records.ts";
import type { PodWorker } from "./pod-worker.ts";

/** A disk that hangs does not keep pods from being evicted. */
const MAX_SAVE_WAIT_MS = 1_000;

/** A desired pod without a worker of its own: refused, waiting for a terminating pod, or not assigned to the node. */
export type BlockedPod =
  /** Since: the start of the pod, as its status shows it. */
  { rejection: Rejection; since: Date } | { waits: Partial<PodStatus> } | { unschedulable: string; since: Date };

interface BlockedPodsDeps {
  clock: Pick<Clock, "now" | "sleep">;
  recorder: EventRecorder;
  records: Pick<PodRecords, "evictions">;
}

/** The blocked pods of the current sync; a refusal is reported when it differs from that of the sync before. */
export class BlockedPods {
  readonly #deps: BlockedPodsDeps;
  #current = new Map<PodUID, BlockedPod>();
  #before: ReadonlyMap<PodUID, BlockedPod> = new Map();
  readonly #unstored = new Set<PodUID>();

  constructor(deps: BlockedPodsDeps) {
    this.#deps = deps;
  }

  /** See {@link PodRecords.evictions}; without those that are still being stored. */
  get evictions(): ReadonlyMap<PodUID, Rejection> {
    return new Map([...this.#deps.records.evictions].filter(([uid]) => !this.#unstored.has(uid)));
  }

  get(uid: PodUID): BlockedPod | undefined {
    return this.#current.get(uid);
  }

  rejection(uid: PodUID): Rejection | undefined {
    const blocked = this.#current.get(uid);
    return blocked && "rejection" in blocked ? blocked.rejection : undefined;
  }

  /** Begins a sync, in which every desired pod is judged again. */
  begin(): void {
    this.#before = this.#current;
    this.#current = new Map();
  }

  wait(uid: PodUID, waitsFor: PodFullName): void {
    this.#current.set(uid, { waits: { message: `waits until pod "${waitsFor}" is gone` } });
  }

  /** A pod of the API or of a controller begins here. Source: the scheduler's event; static pods pass none. */
  assign({ pod, source, isBound }: DesiredPod): void {
    if (isBound || (source !== "api" && !pod.metadata.ownerReferences)) return;
    const message = `Successfully assigned ${podFullName(pod.metadata)} to ${pod.spec.nodeName}`;
    this.#deps.recorder.record(podRefOf(pod), { type: "Normal", reason: "Scheduled", message });
  }

  /** @param why message of the condition PodScheduled */
  hold({ pod }: DesiredPod, why: string): void {
    const ref = podRefOf(pod);
    const before = this.#before.get(ref.uid);
    const isKnown = before && "unschedulable" in before && before.unschedulable === why;
    if (!isKnown) {
      this.#deps.recorder.record(ref, { type: "Warning", reason: "FailedScheduling", message: why });
    }
    this.#current.set(ref.uid, { unschedulable: why, since: isKnown ? before.since : this.#deps.clock.now() });
  }

  /**
   * An eviction reports itself. It takes effect when it is stored, or a little later: it would be undone by the end of the process.
   * @param startTime of its status, which keeps it. Source: the kubelet's status manager.
   */
  async evict(
    { pod, revision }: DesiredPod,
    rejection: Rejection,
    startTime: string | null | undefined,
  ): Promise<void> {
    const { clock, records } = this.#deps;
    const uid = pod.metadata.uid!;
    const since = startTime ? new Date(startTime) : clock.now();
    this.#unstored.add(uid);
    records.evictions.set(uid, { ...rejection, revision, since: since.toISOString() });
    await Promise.race([records.evictions.saved(), clock.sleep(MAX_SAVE_WAIT_MS)]);
    this.#unstored.delete(uid);
    if (records.evictions.has(uid)) this.#current.set(uid, { rejection, since });
  }

  readmit(uids: Iterable<PodUID>): void {
    for (const uid of uids) this.#deps.records.evictions.delete(uid);
  }

  /**
   * Forgets evictions of pods that were edited or deleted.
   * @param revisionOf of the manifest; undefined: the pod is not desired
   * @param isComplete every source was read
   */
  forgetEdited(revisionOf: (uid: PodUID) => string | undefined, isComplete: boolean): void {
    const { evictions } = this.#deps.records;
    for (const [uid, { revision }] of evictions) {
      const desired = revisionOf(uid);
      if (desired === undefined ? isComplete : desired !== revision) evictions.delete(uid);
    }
  }

  reject({ pod }: DesiredPod, why: Rejection): void {
    const { clock, recorder, records } = this.#deps;
    const ref = podRefOf(pod);
    const before = this.#before.get(ref.uid);
    const isKnown = before && "rejection" in before && before.rejection.message === why.message;
    if (!isKnown) {
      // The status has "Pod " before the message of the event. Source: the kubelet's rejectPod.
      recorder.record(ref, { type: "Warning", reason: why.reason, message: why.message.replace(/^Pod /, "") });
    }
    const evicted = records.evictions.get(ref.uid);
    const since = isKnown ? before.since : evicted ? new Date(evicted.since) : clock.now();
    this.#current.set(ref.uid, { rejection: why, since });
  }
}

/** The rules by which this node takes pods: a revision of each, and admission. */
export interface PodRules {
  /** Revision hashes, QoS class and the like of one pod. @throws Error when the pod cannot run on this engine */
  toPodRevision(desired: DesiredPod, state: DesiredState): PodRevision;
  /**
   * Which of these pods the node refuses.
   * @param running pods that were admitted before
   * @param earlier manifests of before, of those that were edited
   */
  admit(
    pods: readonly DesiredPod[],
    running: ReadonlySet<PodUID>,
    isComplete: boolean,
    earlier: ReadonlyMap<PodUID, DesiredPod>,
  ): Admission;
  /** Why a pod that does not run yet is not assigned to the node; undefined: it is. */
  holdOf(desired: DesiredPod, state: DesiredState): string | undefined;
}

interface AdmissionInput {
  desired: DesiredState;
  workers: ReadonlyMap<PodUID, PodWorker>;
  /** Pods of which the engine has containers. */
  observed: Iterable<PodUID>;
  evictions: ReadonlyMap<PodUID, Rejection>;
  /** The manifest of a running pod before its edit; undefined: it was not edited. */
  earlierOf: (desired: DesiredPod) => DesiredPod | undefined;
  isComplete: boolean;
  rules: Pick<PodRules, "admit" | "holdOf">;
}

/**
 * The desired pods that are not assigned to the node, with the reason, and those that it refuses or has evicted. A pod that
 * runs already is admitted first.
 */
export function decideAdmission(input: AdmissionInput): Admission & { held: ReadonlyMap<PodUID, string> } {
  const { workers, evictions } = input;
  const desired = input.desired.pods;
  const desiredUids = new Set(desired.map(({ pod }) => pod.metadata.uid!));
  const running = new Set([...workers].filter(([, { isRemoving }]) => !isRemoving).map(([uid]) => uid));
  for (const uid of input.observed) if (desiredUids.has(uid)) running.add(uid);
  for (const uid of evictions.keys()) running.delete(uid);
  const held = new Map<PodUID, string>();
  for (const one of desired) {
    const uid = one.pod.metadata.uid!;
    const hold = running.has(uid) ? undefined : input.rules.holdOf(one, input.desired);
    if (hold !== undefined) held.set(uid, hold);
  }
  const candidates = desired.filter((one) => {
    const uid = one.pod.metadata.uid!;
    return !evictions.has(uid) && !held.has(uid) && !hasEnded(one, workers);
  });
  const earlier = new Map<PodUID, DesiredPod>();
  for (const one of candidates) {
    const before = input.earlierOf(one);
    if (before) earlier.set(one.pod.metadata.uid!, before);
  }
  const admission = input.rules.admit(candidates, running, input.isComplete, earlier);
  return { ...admission, held, rejections: new Map([...admission.rejections, ...evictions]) };
}

/**
 * An ended pod that never runs again, of an API server or a Job, uses no resources. Source: the kubelet's
 * filterOutTerminatedPods.
 */
function hasEnded({ isBound, runsOnce, pod }: DesiredPod, workers: ReadonlyMap<PodUID, PodWorker>): boolean {
  const phase = (isBound || runsOnce) && workers.get(pod.metadata.uid!)?.status?.phase;
  return phase === "Succeeded" || phase === "Failed";
}
