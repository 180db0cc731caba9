import { hasCondition } from "../base/api/meta.ts";
import type { Pod } from "../base/api/pod.ts";
import { Listeners } from "../base/concurrency/listeners.ts";
import { type DesiredPod, type DesiredState, NODE_SOURCE } from "../base/model/desired-state.ts";
import { controllerOf, nameWithoutNode, type PodRef, type PodUID, podFullName, podRefOf } from "../base/model/pod.ts";
import { isRunning } from "../base/model/pod-snapshot.ts";
import { messageOf } from "../base/text/error-message.ts";
import { computeSurplusDead, type DeadContainerPolicy } from "../plan/dead-container-limit.ts";
import {
  type DependencyState,
  dependenciesOf,
  findDependencyProblems,
  findHold,
  findStopsBefore,
  isDependencyOn,
} from "../plan/pod-dependencies.ts";
import { conflictOverPorts } from "../plan/pod-network.ts";
import type { PodEnd, WaitingReason } from "../plan/pod-plan.ts";
import type { PodRules } from "./blocked-pods.ts";
import type { PodManager } from "./pod-records.ts";
import type { PodStatusStore } from "./pod-status-store.ts";
import { PodStatusTracker } from "./pod-status-tracker.ts";
import { PodWorker, type PodWorkerDeps } from "./pod-worker.ts";

export interface PodWorkersDeps {
  worker: PodWorkerDeps;
  podManager: PodManager;
  statuses: PodStatusStore;
  rules: PodRules;
}

/** How long a removed pod is remembered. The engine gives up a request before that. */
const REMEMBER_REMOVED_MS = 15 * 60_000;

export class PodWorkers {
  /** A pod was removed completely, and its worker forgotten. */
  readonly gone = new Listeners<PodUID>();
  /** The status of a pod, its revision, or the progress of that changed. */
  readonly progress = new Listeners<PodWorker>();
  readonly dependencies: DependencyOrder;
  readonly halts: HaltedPods;
  readonly #deps: PodWorkersDeps;
  readonly #workers = new Map<PodUID, PodWorker>();
  readonly byUid: ReadonlyMap<PodUID, PodWorker> = this.#workers;
  /** Since when removed pods are remembered. Monotonic; those of an earlier process since the start of this one. */
  readonly #removedAtMs = new Map<PodUID, number>();
  /** Pods of unknown sources that were reported. */
  readonly #unclaimed = new Set<PodUID>();

  constructor(deps: PodWorkersDeps) {
    this.#deps = deps;
    this.dependencies = new DependencyOrder(deps.podManager, this.#workers);
    this.halts = new HaltedPods(deps.worker);
    const nowMs = deps.worker.clock.monotonicMs();
    for (const { uid, isRemoved } of deps.worker.records.cleanup.values()) {
      if (!isRemoved) continue;
      this.#removedAtMs.set(uid, nowMs);
      // The process before may have ended between the writes of these files.
      this.#forgetEnd(uid);
    }
  }

  /** @param sourceId source that describes the pod now; absent for a pod that is only to be removed */
  ensure(ref: PodRef, sourceId?: string): PodWorker {
    const { worker: deps } = this.#deps;
    const { records } = deps;
    const { uid, name, namespace } = ref;
    const left = records.cleanup.get(uid);
    const source = sourceId ?? left?.sourceId;
    if (!left || left.isRemoved || left.sourceId !== source) {
      records.cleanup.set(uid, { uid, name, namespace, ...(source !== undefined && { sourceId: source }) });
    }
    this.#removedAtMs.delete(uid);
    const { completions, conditions } = records;
    const status = () => new PodStatusTracker(deps, completions.get(uid), conditions.get(uid));
    return this.#workers.getOrInsertComputed(uid, () => new PodWorker(ref, deps, this, status()));
  }

  desiredSinceMs(uid: PodUID): number {
    return this.#deps.statuses.desiredSinceMs(uid);
  }

  findHold(uid: PodUID, pod: Pod, waitedMs: number): WaitingReason | undefined {
    return this.dependencies.findHold(uid, pod, waitedMs);
  }

  isSubstituted(worker: PodWorker): boolean {
    const owner = controllerOf(worker.revision?.pod)?.uid;
    const isOther = (it: PodWorker) => it !== worker && controllerOf(it.revision?.pod)?.uid === owner && !it.isRemoving;
    return owner !== undefined && this.#workers.values().some((it) => isOther(it) && hasCondition(it.status, "Ready"));
  }

  onStatus(worker: PodWorker): void {
    const { uid } = worker.ref;
    const { conditions } = this.#deps.worker.records;
    const now = worker.status?.conditions ?? [];
    if (!Bun.deepEquals(conditions.get(uid), now)) conditions.set(uid, now);
    this.#deps.statuses.changed(uid);
    this.onRollout(worker);
  }

  onRollout(worker: PodWorker): void {
    if (!worker.revision) return;
    this.progress.emit(worker);
    this.dependencies.wakeDependents(worker.revision.pod);
  }

  onGone({ ref: { uid } }: PodWorker): void {
    const { cleanup } = this.#deps.worker.records;
    this.#workers.delete(uid);
    cleanup.set(uid, { ...cleanup.get(uid)!, isRemoved: true });
    this.#removedAtMs.set(uid, this.#deps.worker.clock.monotonicMs());
    this.#forgetEnd(uid);
    this.gone.emit(uid);
  }

  #forgetEnd(uid: PodUID): void {
    const { completions, conditions } = this.#deps.worker.records;
    completions.delete(uid);
    conditions.delete(uid);
  }

  removing(): PodWorker[] {
    return [...this.#workers.values()].filter(({ isRemoving }) => isRemoving);
  }

  /** Removes the pods that ran under an earlier name of the node and whose successors are desired now. */
  removePredecessors(desired: readonly DesiredPod[]): void {
    const { cache, node } = this.#deps.worker;
    if (!node.formerNames?.length) return;
    const desiredUids = new Set(desired.map(({ pod }) => pod.metadata.uid));
    const refs = [...cache.uids()].flatMap((uid) => (desiredUids.has(uid) ? [] : (cache.refOf(uid) ?? [])));
    const observed = new Map<string, PodRef>(refs.map((ref) => [podFullName(ref), ref]));
    for (const { pod } of desired) {
      for (const name of this.#formerNamesOf(pod)) {
        const ref = observed.get(name);
        if (ref) this.ensure(ref).remove();
      }
    }
  }

  #formerNamesOf(pod: Pod): string[] {
    const { name = "", namespace } = pod.metadata;
    const base = nameWithoutNode(pod);
    if (base === name) return [];
    return (this.#deps.worker.node.formerNames ?? []).map((former) =>
      podFullName({ name: `${base}-${former}`, namespace }),
    );
  }

  /** Which of these terminating pods still holds the name or a host port of this one. */
  findHolder(pod: Pod, removing: readonly PodWorker[]): PodWorker | undefined {
    const names = new Set([podFullName(pod.metadata), ...this.#formerNamesOf(pod)]);
    for (const worker of removing) {
      if (worker.ref.uid === pod.metadata.uid) continue;
      if (names.has(podFullName(worker.ref))) return worker;
      if (worker.revision && conflictOverPorts(pod, worker.revision.pod)) return worker;
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
  removeDescribed(state: DesiredState): void {
    const { cache, logger } = this.#deps.worker;
    for (const [uid, { desired }] of state.deletions ?? []) {
      if (!desired || this.#workers.has(uid) || !cache.refOf(uid)) continue;
      const worker = this.ensure(podRefOf(desired.pod), desired.sourceId ?? desired.source);
      try {
        worker.setRevision(this.#deps.rules.toPodRevision(desired, state));
      } catch (error) {
        logger.debug(`Pod "${podFullName(worker.ref)}" is removed without its spec: ${messageOf(error)}`);
      }
      this.remove(worker, state);
    }
  }

  /** Removes our containers, and what is left of pods without containers, that belong to no desired pod. */
  removeOrphans(desired: DesiredState, isRejected: (uid: PodUID) => boolean): void {
    const { cache, logger } = this.#deps.worker;
    const { cleanup } = this.#deps.worker.records;
    const seen = [...cache.uids()].flatMap((uid) => cache.refOf(uid) ?? []);
    const { remove, unclaimed } = findOrphans({
      refs: [...seen, ...[...cleanup.values()].filter(({ isRemoved }) => !isRemoved)],
      desired,
      hasWorker: (uid) => this.#workers.has(uid),
      isRejected,
      hasContainers: (uid) => cache.refOf(uid) !== undefined,
      sourceOf: (uid) => cleanup.get(uid)?.sourceId,
    });
    this.#reportUnclaimed(unclaimed);
    for (const { ref, why } of remove) {
      logger.info(`Removing pod "${podFullName(ref)}": ${why}`);
      this.remove(this.ensure(ref), desired);
    }
  }

  /** Removes dead containers beyond these limits, over all pods. @returns how many are removed */
  removeSurplusDead(policy: DeadContainerPolicy): number {
    const dead = [...this.#workers.values()].flatMap((worker) => worker.deadContainers());
    const surplus = computeSurplusDead(dead, policy, this.#deps.worker.clock.monotonicMs());
    for (const container of surplus) this.#workers.get(container.podUid)?.removeDead(container);
    return surplus.length;
  }

  /** Forgets the pods that were removed long ago. To be called after a list of all containers. */
  forgetRemoved(): void {
    const { worker } = this.#deps;
    const endMs = worker.clock.monotonicMs() - REMEMBER_REMOVED_MS;
    for (const [uid, removedAtMs] of this.#removedAtMs) {
      if (removedAtMs > endMs || worker.cache.refOf(uid)) continue;
      this.#removedAtMs.delete(uid);
      worker.records.cleanup.delete(uid);
    }
  }

  hasLeftovers(uid: PodUID): boolean {
    const left = this.#deps.worker.records.cleanup.get(uid);
    return left !== undefined && !left.isRemoved;
  }

  /** One warning for all of them: they may be the pods of one workload. */
  #reportUnclaimed(refs: readonly PodRef[]): void {
    const found = refs.filter(({ uid }) => !this.#unclaimed.has(uid));
    const [first] = found;
    if (!first) return;
    for (const { uid } of found) this.#unclaimed.add(uid);
    const more = found.length - 10;
    const names = found.slice(0, 10).map((ref) => `"${podFullName(ref)}"`);
    this.#deps.worker.logger.warn(
      `Pod ${names.join(", ")}${more > 0 ? ` and ${more} more` : ""} keeps running unsupervised: its manifest and its ` +
        "source are not known; to remove it, stop this kubelet and run " +
        `"kubelet-ts delete pod ${first.name} --namespace=${first.namespace}"`,
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
  hasContainers: (uid: PodUID) => boolean;
  /** The source that described the pod when it was last desired; undefined: not known. */
  sourceOf: (uid: PodUID) => string | undefined;
}

interface Orphans {
  remove: { ref: PodRef; why: string }[];
  /** With containers. Their manifest and their source are not known: nothing shows that they were deleted. */
  unclaimed: PodRef[];
}

/** Sorts pods that belong to no desired pod: a pod is removed only when the source that described it was read. Pure. */
export function findOrphans({ refs, desired, hasWorker, isRejected, hasContainers, sourceOf }: OrphanInput): Orphans {
  const { completeSources, deletions } = desired;
  const isDeleted = (uid: PodUID) => {
    if (completeSources === undefined || deletions?.has(uid)) return true;
    const source = sourceOf(uid);
    return source === API_SOURCE || source === NODE_SOURCE || (source !== undefined && completeSources.has(source));
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
    else if (hasContainers(uid)) orphans.unclaimed.push(ref);
  }
  return orphans;
}

/** Order among pods that depend on each other: what holds a start, which workers a change concerns, what stops first. */
class DependencyOrder {
  readonly #podManager: PodManager;
  readonly #workers: ReadonlyMap<PodUID, PodWorker>;
  #problems: ReadonlyMap<PodUID, WaitingReason> = new Map();
  /** Desired pods that have dependencies: few or none. */
  #dependents: readonly PodUID[] = [];

  constructor(podManager: PodManager, workers: ReadonlyMap<PodUID, PodWorker>) {
    this.#podManager = podManager;
    this.#workers = workers;
  }

  /** To be called after each change of the desired pods. @param isComplete else a missing pod may only be late */
  check(isComplete: boolean): void {
    const pods = this.#podManager.state.pods.map(({ pod }) => pod);
    this.#dependents = pods.flatMap((pod) => (dependenciesOf(pod).length > 0 ? [pod.metadata.uid!] : []));
    this.#problems = isComplete ? findDependencyProblems(pods) : new Map();
  }

  findHold(uid: PodUID, pod: Pod, waitedMs: number): WaitingReason | undefined {
    return this.#problems.get(uid) ?? findHold(pod, () => this.#states(), waitedMs);
  }

  wakeDependents(pod: Pod): void {
    for (const uid of this.#dependents) {
      const worker = this.#workers.get(uid);
      const dependencies = worker?.revision ? dependenciesOf(worker.revision.pod) : [];
      if (dependencies.some((dependency) => isDependencyOn(dependency, pod))) worker?.wake();
    }
  }

  /** Workers of undesired pods that may stop now: a pod that others depend on goes after them. */
  removable(undesired: readonly PodWorker[]): PodWorker[] {
    const stopping = undesired.flatMap(({ revision }) => revision?.pod ?? []);
    return undesired.filter(({ revision }) => !revision || findStopsBefore(revision.pod, stopping).length === 0);
  }

  #states(): DependencyState[] {
    return this.#podManager.state.pods.map(({ pod }) => {
      const worker = this.#workers.get(pod.metadata.uid!);
      return { pod, status: worker?.status, rollout: worker?.rollout ?? "pending" };
    });
  }
}

/**
 * Halted pods: stopped, but not removed. Pods that are halted in the same turn stop in the reverse order of their
 * dependencies.
 */
class HaltedPods {
  readonly #requests = new Map<PodUID, [end: PodEnd, maxGraceSeconds: number]>();
  readonly #halting = new Map<PodWorker, Promise<void>>();
  readonly #deps: Pick<PodWorkerDeps, "records" | "cache">;

  constructor(deps: Pick<PodWorkerDeps, "records" | "cache">) {
    this.#deps = deps;
  }

  /** @returns a promise that resolves when no container of the pod runs */
  async halt(uid: PodUID, worker: PodWorker | undefined, end: PodEnd, maxGraceSeconds: number): Promise<void> {
    this.#requests.set(uid, [end, maxGraceSeconds]);
    if (!worker) return;
    const { records, cache } = this.#deps;
    const { shutdownTerminated: terminated } = records;
    // Those of an earlier shutdown go, so that the file does not grow.
    for (const id of terminated.keys()) if (!cache.has(id)) terminated.delete(id);
    for (const { id } of worker.snapshot.containers.filter(isRunning)) terminated.set(id, true);
    const halting = Promise.resolve().then(async () => {
      await Promise.all(this.#stopsBefore(worker));
      if (this.#requests.has(uid)) await worker.halt(end, maxGraceSeconds);
    });
    this.#halting.set(worker, halting);
    await halting.finally(() => this.#halting.delete(worker));
  }

  /** Halts a worker that was created after its pod was halted. */
  apply(worker: PodWorker): void {
    const request = this.#requests.get(worker.ref.uid);
    if (request && !this.#halting.has(worker)) void worker.halt(...request);
  }

  clear(): void {
    this.#requests.clear();
  }

  #stopsBefore({ revision }: PodWorker): Promise<void>[] {
    if (!revision) return [];
    const halting = [...this.#halting];
    const pods = halting.flatMap(([worker]) => worker.revision?.pod ?? []);
    const before = findStopsBefore(revision.pod, pods);
    return halting.filter(([worker]) => worker.revision && before.includes(worker.revision.pod)).map(([, end]) => end);
  }
}
