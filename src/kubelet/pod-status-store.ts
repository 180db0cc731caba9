import type { Pod, PodStatus } from "../api/pod.ts";
import type { Clock } from "../model/clock.ts";
import type { DesiredPod } from "../model/desired-pod.ts";
import type { PodUID } from "../model/identity.ts";
import { rejectedStatus } from "../status/compute-pod-status.ts";
import { formatTime } from "../status/container-status.ts";
import type { Rejection } from "./kubelet.ts";

const SEEN_ANNOTATION = "kubernetes.io/config.seen";

/** A wanted pod without a worker of its own: refused, or waiting for somebody to leave. */
export type BlockedPod = { rejection: Rejection; since: Date } | { waitsFor: string };

/** Where a wanted pod stands: with a worker, whose status it has, or outside; neither before anything was done for it. */
export interface PodStanding {
  blocked: BlockedPod | undefined;
  workerStatus: PodStatus | undefined;
}

/**
 * Wanted pods as the API shows them: the manifest, when its revision was first seen, and a status. What did not change
 * is the same object as before, so that whoever serves it need not look inside.
 */
export class PodStatusStore {
  readonly #clock: Clock;
  readonly #statusStore = new Map<PodUID, { pod: Pod; status: PodStatus; full: Pod }>();
  /** When the revision that is wanted now was first seen. */
  readonly #seen = new Map<PodUID, { revision: string; at: string; atMs: number }>();
  /** Statuses of pods nothing was done for yet. */
  readonly #pending = new Map<PodUID, PodStatus>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be told of everything that is wanted, at each change. */
  noteSeen(wanted: readonly DesiredPod[]): void {
    const at = this.#clock.now().toISOString();
    const atMs = this.#clock.monotonicMs();
    const uids = new Set(wanted.map(({ pod }) => pod.metadata.uid!));
    for (const uid of this.#seen.keys()) if (!uids.has(uid)) this.#seen.delete(uid);
    for (const { pod, revision } of wanted) {
      const uid = pod.metadata.uid!;
      if (this.#seen.get(uid)?.revision !== revision) this.#seen.set(uid, { revision, at, atMs });
    }
  }

  /** When the revision that is wanted now was first seen, monotonic; now for a pod that nobody wants. */
  desiredSinceMs(uid: PodUID): number {
    return this.#seen.get(uid)?.atMs ?? this.#clock.monotonicMs();
  }

  forget(uid: PodUID): void {
    this.#statusStore.delete(uid);
    this.#pending.delete(uid);
  }

  publish(pod: Pod, standing: PodStanding): Pod {
    const uid = pod.metadata.uid!;
    const status = this.#statusOf(uid, standing);
    const known = this.#statusStore.get(uid);
    if (known && known.pod === pod && known.status === status) return known.full;
    const seen = this.#seen.get(uid)?.at ?? "";
    const annotations = { ...pod.metadata.annotations, [SEEN_ANNOTATION]: seen };
    const full: Pod = { ...pod, metadata: { ...pod.metadata, annotations }, status };
    this.#statusStore.set(uid, { pod, status, full });
    return full;
  }

  #statusOf(uid: PodUID, { blocked, workerStatus }: PodStanding): PodStatus {
    if (blocked && "rejection" in blocked) {
      const { rejection, since } = blocked;
      return rejectedStatus(rejection.reason, rejection.message, since);
    }
    if (workerStatus && !blocked) {
      this.#pending.delete(uid);
      return workerStatus;
    }
    const message = blocked ? `waits until pod "${blocked.waitsFor}" is gone` : undefined;
    const known = this.#pending.get(uid);
    if (known && known.message === message) return known;
    const lastTransitionTime = formatTime(this.#clock.now());
    const pending: PodStatus = {
      phase: "Pending",
      conditions: [{ type: "PodScheduled", status: "True", lastTransitionTime }],
      ...(message !== undefined && { message }),
    };
    this.#pending.set(uid, pending);
    return pending;
  }
}
