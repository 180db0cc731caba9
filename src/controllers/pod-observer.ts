import type { Pod, PodStatus } from "../base/api/pod.ts";
import type { Clock } from "../base/model/clock.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { PodFacts } from "./controller.ts";

/** The kubelet's view of pods. */
export interface ObservedPods {
  pods(): readonly Pod[];
  /** All containers were inspected, and nothing is left of this pod. */
  isGone(uid: PodUID): boolean;
  /** All containers were inspected at least once. */
  readonly isSynced: boolean;
  onChange(listener: () => void): () => void;
}

export type Statuses = ReadonlyMap<PodUID, PodStatus | undefined>;

const statusesOf = (pods: readonly Pod[]): Statuses =>
  new Map(pods.map(({ metadata, status }) => [metadata.uid!, status]));

/** Pods as controllers see them: their statuses, and since when each one is Ready. */
export class PodObserver {
  readonly #kubelet: ObservedPods;
  readonly #clock: Clock;
  /** Monotonic; of pods that are Ready. */
  readonly #readySinceMs = new Map<PodUID, number>();
  /** Every source was read: a pod without a worker is not one that is still to come. */
  isRead = false;
  /** Pods that this process has seen running. */
  readonly #knownUids = new Set<PodUID>();

  constructor(kubelet: ObservedPods, clock: Clock) {
    this.#kubelet = kubelet;
    this.#clock = clock;
  }

  /** Notes which pods are Ready. A pod that was Ready before this process keeps that time, by the wall clock. */
  update(pods: readonly Pod[]): Statuses {
    const statuses = statusesOf(pods);
    for (const uid of this.#readySinceMs.keys()) if (!statuses.has(uid)) this.#readySinceMs.delete(uid);
    for (const uid of this.#knownUids) if (!statuses.has(uid)) this.#knownUids.delete(uid);
    for (const [uid, status] of statuses) {
      const ready = status?.conditions?.find(({ type }) => type === "Ready");
      if (ready?.status !== "True") this.#readySinceMs.delete(uid);
      else if (!this.#readySinceMs.has(uid)) {
        const elapsedMs = this.#clock.now().getTime() - Date.parse(ready.lastTransitionTime ?? "");
        const earlierMs = this.#knownUids.has(uid) || !(elapsedMs > 0) ? 0 : elapsedMs;
        this.#readySinceMs.set(uid, this.#clock.monotonicMs() - earlierMs);
      }
      if (status?.phase !== "Pending") this.#knownUids.add(uid);
    }
    return statuses;
  }

  /** Facts about pods as of now. */
  reader(statuses: Statuses = statusesOf(this.#kubelet.pods())): (uid: PodUID) => PodFacts {
    const nowMs = this.#clock.monotonicMs();
    return (uid) => {
      const readySinceMs = this.#readySinceMs.get(uid);
      const status = statuses.get(uid);
      return {
        ...(status && { status }),
        phase: (status?.phase as PodFacts["phase"] | undefined) ?? "Pending",
        isReady: readySinceMs !== undefined,
        readyForMs: readySinceMs === undefined ? 0 : Math.max(0, nowMs - readySinceMs),
        isGone: this.isGone(uid),
      };
    };
  }

  isGone(uid: PodUID): boolean {
    return this.isRead && this.#kubelet.isGone(uid);
  }
}
