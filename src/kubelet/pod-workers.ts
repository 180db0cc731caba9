import type { Pod } from "../base/api/pod.ts";
import type { DesiredPod, DesiredState, ObjectIndex } from "../base/model/desired-pod.ts";
import { type PodUID, podFullName } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { type PodRef, podRefOf } from "../base/model/pod-ref.ts";
import { messageOf } from "../base/text/error-message.ts";
import { computeSurplusDead, type DeadContainerPolicy } from "../plan/dead-container-limit.ts";
import type { PodRevision } from "./edit-rules.ts";
import type { Completion } from "./pod-status-tracker.ts";
import { PodWorker, type PodWorkerDeps } from "./pod-worker.ts";
import { StoredMap } from "./stored-map.ts";

/** A pod with something to clean up. */
export interface PodToCleanUp extends PodRef {
  /** `DesiredPod.sourceId`: the source whose sets show whether the pod is still described. Absent: not known. */
  sourceId?: string;
}

/** Dependencies that all workers share. */
export interface SharedWorkerDeps
  extends Pick<
    PodWorkerDeps,
    "clock" | "logger" | "recorder" | "services" | "probes" | "hostIp" | "imageNames" | "learnImage" | "work"
  > {
  completions: Persisted<Record<PodUID, Completion>>;
  podCleanup: Persisted<readonly PodToCleanUp[]>;
  /** Whether two pods cannot run at the same time, e.g. by a common host port: the later one waits for the end of the other. */
  conflict: (a: Pod, b: Pod) => boolean;
}

interface PodWorkersDeps
  extends SharedWorkerDeps,
    Pick<PodWorkerDeps, "cache" | "shutdownTerminated" | "desiredSinceMs" | "findHold" | "onStatus" | "onRollout"> {
  /** The pod was removed completely, and its worker forgotten. */
  onGone: (uid: PodUID) => void;
}

/** The pod workers of the node, by UID. */
export class PodWorkers {
  readonly #deps: PodWorkersDeps;
  readonly #workers = new Map<PodUID, PodWorker>();
  /** How pods ended. */
  readonly #completions: StoredMap<PodUID, Completion, Record<PodUID, Completion>>;
  /**
   * Pods with something to clean up: directory, volumes, cgroup, log links. If the process ends after the last container
   * of a pod was removed, no container shows the rest to the next process; this does.
   */
  readonly #cleanup: StoredMap<PodUID, PodToCleanUp, readonly PodToCleanUp[]>;
  /** Pods of unknown sources that were reported. */
  readonly #unclaimed = new Set<PodUID>();

  constructor(deps: PodWorkersDeps) {
    this.#deps = deps;
    this.#completions = new StoredMap(deps.completions, Object.entries, Object.fromEntries);
    this.#cleanup = new StoredMap(
      deps.podCleanup,
      (pods) => pods.map((pod) => [pod.uid, pod]),
      (pods) => [...pods.values()],
    );
  }

  get byUid(): ReadonlyMap<PodUID, PodWorker> {
    return this.#workers;
  }

  get(uid: PodUID): PodWorker | undefined {
    return this.#workers.get(uid);
  }

  has(uid: PodUID): boolean {
    return this.#workers.has(uid);
  }

  values(): Iterable<PodWorker> {
    return this.#workers.values();
  }

  /** @param sourceId source that describes the pod now; absent for a pod that is only to be removed */
  ensure(ref: PodRef, sourceId?: string): PodWorker {
    const { onGone } = this.#deps;
    const { uid, name, namespace } = ref;
    const left = this.#cleanup.get(uid);
    if (!left || (sourceId !== undefined && left.sourceId !== sourceId))
      this.#cleanup.set(uid, { uid, name, namespace, ...(sourceId !== undefined && { sourceId }) });
    const known = this.#workers.get(uid);
    if (known) return known;
    const worker = new PodWorker(
      ref,
      {
        ...this.#deps,
        onCompletion: (_, end) => (end ? this.#completions.set(uid, end) : this.#completions.delete(uid)),
        onGone: () => {
          this.#workers.delete(uid);
          this.#cleanup.delete(uid);
          this.#completions.delete(uid);
          onGone(uid);
        },
      },
      this.#completions.get(uid),
    );
    this.#workers.set(uid, worker);
    return worker;
  }

  /** Workers of terminating pods. */
  removing(): PodWorker[] {
    return [...this.#workers.values()].filter(({ isRemoving }) => isRemoving);
  }

  /** Which of these terminating pods still holds the name or a host port of this one. */
  findHolder(pod: Pod, removing: readonly PodWorker[]): PodWorker | undefined {
    const fullName = podFullName(pod.metadata);
    for (const worker of removing) {
      if (worker.ref.uid === pod.metadata.uid) continue;
      if (podFullName(worker.ref) === fullName) return worker;
      if (worker.revision && this.#deps.conflict(pod, worker.revision.pod)) return worker;
    }
    return undefined;
  }

  /** Removes a pod within the grace period of its deletion, if there is one, else within its own. */
  remove(worker: PodWorker, { deletions }: DesiredState): void {
    const graceSeconds = deletions?.get(worker.ref.uid)?.graceSeconds;
    if (graceSeconds !== undefined) worker.limitGrace(graceSeconds, true);
    worker.remove();
  }

  /** Removes pods whose deletion describes them and of which an earlier process left containers. */
  removeDescribed(
    state: DesiredState,
    toPodRevision: (desired: DesiredPod, objects: ObjectIndex) => PodRevision,
  ): void {
    const { cache, logger } = this.#deps;
    for (const [uid, { desired }] of state.deletions ?? []) {
      if (!desired || this.#workers.has(uid) || !cache.refOf(uid)) continue;
      const worker = this.ensure(podRefOf(desired.pod), desired.sourceId ?? desired.source);
      try {
        worker.setRevision(toPodRevision(desired, state));
      } catch (error) {
        logger.debug(`Pod "${podFullName(worker.ref)}" is removed without its spec: ${messageOf(error)}`);
      }
      this.remove(worker, state);
    }
  }

  /** Removes our containers, and what is left of pods without containers, that belong to no desired pod. */
  removeOrphans(desired: DesiredState, isRejected: (uid: PodUID) => boolean): void {
    const { cache, logger } = this.#deps;
    const seen = [...cache.uids()].flatMap((uid) => cache.refOf(uid) ?? []);
    const { remove, unclaimed } = findOrphans({
      refs: [...seen, ...this.#cleanup.values()],
      desired,
      hasWorker: (uid) => this.#workers.has(uid),
      isRejected,
      sourceOf: (uid) => this.#cleanup.get(uid)?.sourceId,
    });
    for (const ref of unclaimed) this.#reportUnclaimed(ref);
    for (const { ref, why } of remove) {
      logger.info(`Removing pod "${podFullName(ref)}": ${why}`);
      this.remove(this.ensure(ref), desired);
    }
  }

  /** Removes dead containers beyond these limits, over all pods. @returns how many are removed */
  removeSurplusDead(policy: DeadContainerPolicy): number {
    const dead = [...this.#workers.values()].flatMap((worker) => worker.deadContainers());
    const surplus = computeSurplusDead(dead, policy, this.#deps.clock.monotonicMs());
    for (const container of surplus) this.#workers.get(container.podUid)?.removeDead(container);
    return surplus.length;
  }

  /** Whether there is something of the pod to clean up. */
  hasLeftovers(uid: PodUID): boolean {
    return this.#cleanup.has(uid);
  }

  #reportUnclaimed(ref: PodRef): void {
    if (this.#unclaimed.has(ref.uid)) return;
    this.#unclaimed.add(ref.uid);
    this.#deps.logger.warn(
      `Pod "${podFullName(ref)}" keeps running unsupervised: its manifest and its source are not known; ` +
        `to remove it, stop this kubelet and run "kubelet-ts delete pod ${ref.name} --namespace=${ref.namespace}"`,
    );
  }
}

/** `DesiredPod.source` of pods of the local API server, which are known as soon as anything is. */
const API_SOURCE = "api";

export interface OrphanInput {
  /** Pods with containers or with something left to clean up; a pod may occur twice. */
  refs: Iterable<PodRef>;
  desired: DesiredState;
  /** Pods that are already taken care of. */
  hasWorker: (uid: PodUID) => boolean;
  isRejected: (uid: PodUID) => boolean;
  /** The source that described the pod when it was last desired; undefined: not known. */
  sourceOf: (uid: PodUID) => string | undefined;
}

interface Orphans {
  remove: { ref: PodRef; why: string }[];
  /** Their manifest and their source are not known: nothing shows that they were deleted. */
  unclaimed: PodRef[];
}

/** Sorts pods that belong to no desired pod: a pod is removed only when the source that described it was read. Pure. */
export function findOrphans({ refs, desired, hasWorker, isRejected, sourceOf }: OrphanInput): Orphans {
  const { completeSources, deletions } = desired;
  const isDeleted = (uid: PodUID) => {
    if (completeSources === undefined || deletions?.has(uid)) return true;
    const source = sourceOf(uid);
    return source === API_SOURCE || (source !== undefined && completeSources.has(source));
  };
  const desiredUids = new Set(desired.pods.map(({ pod }) => pod.metadata.uid));
  const orphans: Orphans = { remove: [], unclaimed: [] };
  const seen = new Set<PodUID>();
  for (const ref of refs) {
    const { uid } = ref;
    if (seen.has(uid) || hasWorker(uid)) continue;
    seen.add(uid);
    if (isRejected(uid)) orphans.remove.push({ ref, why: "the node refuses it" });
    else if (desiredUids.has(uid)) continue;
    else if (isDeleted(uid)) orphans.remove.push({ ref, why: "no manifest describes it" });
    else orphans.unclaimed.push(ref);
  }
  return orphans;
}
