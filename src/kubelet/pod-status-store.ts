import type { Pod, PodStatus } from "../base/api/pod.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import type { Clock } from "../base/model/clock.ts";
import type { DesiredPod } from "../base/model/desired-state.ts";
import { isSameList } from "../base/model/memoized.ts";
import { type PodUID, podFullName } from "../base/model/pod.ts";
import { withImageProbes } from "../plan/image-healthcheck.ts";
import { formatTime, rejectedStatus } from "../plan/status/compute-pod-status.ts";
import type { BlockedPod } from "./blocked-pods.ts";
import type { DeletionInfo, PodWorker } from "./pod-worker.ts";

const SEEN_ANNOTATION = "kubernetes.io/config.seen";

/** A worker as far as statuses depend on it. */
export type PublishedWorker = Pick<PodWorker, "status" | "revision" | "snapshot" | "deletion">;

/**
 * Pods as the API shows them: the manifest, when its revision was first seen, the deletion and the status. An unchanged
 * pod is the same object as before, so that servers can compare by identity.
 */
export class PodStatusStore {
  /** Calls of {@link changed}, with its argument. */
  readonly changes = new Listeners<PodUID | undefined>();
  readonly #clock: Clock;
  readonly #published = new Map<
    PodUID,
    { pod: Pod; status: PodStatus; deletion: DeletionInfo | undefined; full: Pod }
  >();
  /** When the desired revision was first seen. */
  readonly #seen = new Map<PodUID, { revision: string; at: string; atMs: number }>();
  /** Statuses of pods that are refused, or for which nothing was done yet. */
  readonly #idle = new Map<PodUID, PodStatus>();
  /** The last list, and whether it may be another one now. */
  #listed: readonly Pod[] = [];
  #isListOld = true;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * A status, the set of pods or the health of the engine changed.
   * @param uid the pod whose status alone has changed
   */
  changed(uid?: PodUID): void {
    this.#isListOld = true;
    this.changes.emit(uid);
  }

  /**
   * To be called with all desired pods at each change.
   * @param isTerminating pods whose time of first sight is kept until {@link forget}
   */
  noteSeen(desired: readonly DesiredPod[], isTerminating: (uid: PodUID) => boolean): void {
    this.#isListOld = true;
    const at = this.#clock.now().toISOString();
    const atMs = this.#clock.monotonicMs();
    const uids = new Set(desired.map(({ pod }) => pod.metadata.uid!));
    for (const uid of this.#seen.keys()) if (!uids.has(uid) && !isTerminating(uid)) this.#seen.delete(uid);
    for (const { pod, revision } of desired) {
      const uid = pod.metadata.uid!;
      if (this.#seen.get(uid)?.revision !== revision) this.#seen.set(uid, { revision, at, atMs });
    }
  }

  /** When the desired revision was first seen, monotonic; now for a pod that is not desired. */
  desiredSinceMs(uid: PodUID): number {
    return this.#seen.get(uid)?.atMs ?? this.#clock.monotonicMs();
  }

  /** The pod is gone. Its successor with the same UID may already be desired. */
  forget(uid: PodUID): void {
    this.#published.delete(uid);
    this.#idle.delete(uid);
  }

  /** Every desired pod and every pod that still terminates, by namespace and name; the same list while these are the same. */
  list(
    desired: readonly DesiredPod[],
    blockedOf: (uid: PodUID) => BlockedPod | undefined,
    workers: ReadonlyMap<PodUID, PublishedWorker>,
  ): readonly Pod[] {
    if (this.#isListOld) {
      const pods = this.#publishAll(desired, blockedOf, workers);
      const uids = new Set(pods.map(({ metadata }) => metadata.uid));
      for (const uid of this.#published.keys()) if (!uids.has(uid)) this.#published.delete(uid);
      if (!isSameList(this.#listed, pods)) this.#listed = pods;
      this.#isListOld = false;
    }
    return this.#listed;
  }

  #publishAll(...[desired, blockedOf, workers]: Parameters<PodStatusStore["list"]>): Pod[] {
    const pods = desired.map(({ pod }) => {
      const uid = pod.metadata.uid!;
      return this.#publish(pod, blockedOf(uid), workers.get(uid));
    });
    const uids = new Set(pods.map(({ metadata }) => metadata.uid!));
    const terminating = [...workers].flatMap(([uid, worker]) => {
      const { revision, deletion } = worker;
      return revision && !uids.has(uid) ? this.#publish(revision.pod, undefined, worker, deletion) : [];
    });
    return terminating.length === 0 ? pods : [...pods, ...terminating].sort(byNamespaceAndName);
  }

  /** @param deletion the pod is terminating */
  #publish(
    pod: Pod,
    blocked: BlockedPod | undefined,
    worker: PublishedWorker | undefined,
    deletion?: DeletionInfo | undefined,
  ): Pod {
    const uid = pod.metadata.uid!;
    const status = this.#statusOf(uid, blocked, worker);
    const known = this.#published.get(uid);
    if (known && known.pod === pod && known.status === status && known.deletion === deletion) return known.full;
    const annotations = { ...pod.metadata.annotations, [SEEN_ANNOTATION]: this.#seen.get(uid)?.at ?? "" };
    const metadata: Pod["metadata"] = {
      ...pod.metadata,
      annotations,
      ...(deletion && {
        deletionTimestamp: formatTime(deletion.timestamp),
        deletionGracePeriodSeconds: deletion.gracePeriodSeconds,
      }),
    };
    // Not assigned to a node: kubectl drain lists the pods of the node by this field.
    const { spec } = withImageProbes(pod, worker?.snapshot.containers ?? []);
    const { nodeName: _nodeName, ...unassigned } = spec;
    const isUnassigned = blocked !== undefined && "unschedulable" in blocked;
    const full: Pod = { ...pod, metadata, spec: isUnassigned ? unassigned : spec, status };
    this.#published.set(uid, { pod, status, deletion, full });
    return full;
  }

  /** Why the pod is blocked, else what its worker knows; before anything was done for it neither. */
  #statusOf(uid: PodUID, blocked: BlockedPod | undefined, worker: PublishedWorker | undefined): PodStatus {
    if (worker?.status && !blocked) {
      this.#idle.delete(uid);
      return worker.status;
    }
    const status =
      blocked && "rejection" in blocked
        ? rejectedStatus(blocked.rejection.reason, blocked.rejection.message, blocked.since)
        : pendingStatus(blocked, this.#clock.now());
    const known = this.#idle.get(uid);
    if (known && textOf(known) === textOf(status)) return known;
    this.#idle.set(uid, status);
    return status;
  }
}

/** The status of a pod for which nothing was done yet. */
function pendingStatus(blocked: Exclude<BlockedPod, { rejection: unknown }> | undefined, now: Date): PodStatus {
  const isHeld = blocked !== undefined && "unschedulable" in blocked;
  const held = isHeld && { status: "False", reason: "Unschedulable", message: blocked.unschedulable };
  const lastTransitionTime = formatTime(isHeld ? blocked.since : now);
  const conditions = [{ type: "PodScheduled", status: "True", ...held, lastTransitionTime }] as PodStatus["conditions"];
  return { phase: "Pending", conditions, ...(blocked && !isHeld && blocked.waits) };
}

/** A status without the times of its conditions. */
const textOf = ({ conditions, ...rest }: PodStatus): string => JSON.stringify([rest, conditions?.[0]?.message]);

function byNamespaceAndName({ metadata: a }: Pod, { metadata: b }: Pod): number {
  const [left, right] = [podFullName(a), podFullName(b)];
  return left < right ? -1 : left > right ? 1 : 0;
}
