import type { Pod } from "../../base/api/pod.ts";
import type { Clock } from "../../base/model/clock.ts";
import type { Logger } from "../../base/model/logger.ts";
import type { NodeSignals, PressureState, PressureType } from "../../base/model/node.ts";
import { type PodUID, podFullName, podRefOf } from "../../base/model/pod.ts";
import { type EventRecorder, nodeTarget } from "../../base/model/pod-event.ts";
import type { Rejection } from "../../plan/admission.ts";
import {
  computeNodePressure,
  type DueThreshold,
  type EvictionCandidate,
  type EvictionSettings,
  findExceededLimit,
  findPressureRefusal,
  hasDiskLimit,
  isDiskSignal,
  NO_HISTORY,
  type NodePressure,
  type PodDiskUsage,
  type PodUsage,
  rankForEviction,
  resourceOf,
  toEvictionMessage,
} from "../../plan/eviction.ts";
import { computeQosClass } from "../../plan/pod-resources.ts";
import type { KubeletMetrics } from "../../stats/metrics/kubelet-metrics.ts";
import type { Kubelet } from "../kubelet.ts";

interface EvictionDeps {
  clock: Clock;
  logger: Logger;
  recorder: EventRecorder;
  kubelet: Pick<Kubelet, "pods" | "evict" | "readmit" | "evicted" | "removeSurplusDead" | "onChange"> & {
    /** undefined for a pod that is gone, all of it. */
    workers: Pick<ReadonlyMap<PodUID, { readonly isRemoving: boolean }>, "get">;
  };
  usage: EvictionUsage;
  /** Grace period limit of a pod evicted by a soft threshold; -1 = the pod's own. */
  settings: EvictionSettings & { maxPodGraceSeconds: number };
  metrics: KubeletMetrics;
  nodeName: string;
}

/** Measurements of the node and its pods, and the way to free disk. */
interface EvictionUsage {
  readSignals(): NodeSignals;
  /** Brings what the signals are made of up to date; resolves soon even where a disk hangs. */
  refreshSignals(): Promise<void>;
  readPods(): ReadonlyMap<PodUID, PodUsage>;
  /** Disk usage of these pods as last measured; starts a new measurement when one is due. */
  askDisk(uids: ReadonlySet<PodUID>): ReadonlyMap<PodUID, PodDiskUsage>;
  /** Resolves when no measurement is under way. */
  diskSettled(): Promise<void>;
  /** Removes unused images. @returns how many */
  reclaimImages(signal: AbortSignal): Promise<number>;
}

/** Source: upstream's evictionMonitoringPeriod. */
const PERIOD_MS = 10_000;
/** Time for which changes of pods are gathered while nothing has to be observed. */
const CHANGES_MS = 1_000;

/**
 * Keeps the node from running out of memory, disk and processes: checks every ten seconds while there are pods (without
 * thresholds: pods with disk limits), and stops one pod at a time until there is enough again. Pods over their own disk
 * limits are evicted too. All come back when the pressure has been gone for the transition period, the most important first.
 */
export class EvictionManager {
  readonly #deps: EvictionDeps;
  #seen: NodePressure = { history: NO_HISTORY, pressures: new Set(), due: [] };
  #seenAtMs = Number.NEGATIVE_INFINITY;
  readonly #startedAt: Date;
  readonly #changedAt = new Map<PressureType, Date>();
  /** When each pod was evicted, in that order: pods evicted first are the least important. Monotonic. */
  readonly #evictedAtMs = new Map<PodUID, number>();

  constructor(deps: EvictionDeps) {
    this.#deps = deps;
    this.#startedAt = deps.clock.now();
    // Evicted by an earlier process, at an unknown time: they wait as if they were evicted now.
    for (const uid of deps.kubelet.evicted.keys()) this.#evictedAtMs.set(uid, deps.clock.monotonicMs());
  }

  /** Pressures that are there, or were until a short while ago. */
  get pressures(): ReadonlySet<PressureType> {
    return this.#seen.pressures;
  }

  /** All pressures, present or not, with the time of the last change. Observes first when the last observation is old. */
  states(): ReadonlyMap<PressureType, PressureState> {
    if (this.#deps.clock.monotonicMs() - this.#seenAtMs >= PERIOD_MS) this.#observe();
    const state = (type: PressureType): [PressureType, PressureState] => [
      type,
      { is: this.pressures.has(type), since: this.#changedAt.get(type) ?? this.#startedAt },
    ];
    return new Map([state("MemoryPressure"), state("DiskPressure"), state("PIDPressure")]);
  }

  /** Why the node rejects this pod now; undefined when it does not. */
  refusalOf(pod: Pod): Rejection | undefined {
    // The first pods after a start must not bring back a shortage that was not observed yet.
    if (this.#seenAtMs === Number.NEGATIVE_INFINITY) this.#observe();
    const message = findPressureRefusal(pod, computeQosClass(pod) === "BestEffort", this.pressures);
    return message === undefined ? undefined : { reason: "Evicted", message };
  }

  /** Resolves when the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#untilNeeded(signal);
      await this.#deps.clock.sleep(PERIOD_MS, signal).catch(() => {});
      if (signal.aborted) return;
      await this.synchronize(signal).catch((error: Error) => {
        if (!signal.aborted) this.#deps.logger.warn(`Cannot check memory and disk: ${error.message}`);
      });
    }
  }

  async synchronize(signal: AbortSignal): Promise<void> {
    this.#forgetUnwanted();
    await this.#deps.usage.refreshSignals();
    this.#observe();
    this.#evictOverLimit();
    const [due] = this.#seen.due;
    if (due) await this.#relieve(due, signal);
    else this.#readmit();
  }

  get #isNeeded(): boolean {
    if (this.#evictedAtMs.size > 0 || this.pressures.size > 0) return true;
    const { hard, soft } = this.#deps.settings;
    const candidates = this.#candidates();
    return hard.length + soft.length > 0 ? candidates.length > 0 : candidates.some(hasDiskLimit);
  }

  async #untilNeeded(signal: AbortSignal): Promise<void> {
    if (this.#isNeeded || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    let cancelCheck: (() => void) | undefined;
    // Many pods change at a time, and all are looked through.
    const stopListening = this.#deps.kubelet.onChange(() => {
      cancelCheck ??= this.#deps.clock.schedule(CHANGES_MS, () => {
        cancelCheck = undefined;
        if (this.#isNeeded) resolve();
      });
    });
    const stop = () => resolve();
    signal.addEventListener("abort", stop, { once: true });
    await promise;
    signal.removeEventListener("abort", stop);
    stopListening();
    cancelCheck?.();
  }

  #candidates(): Pod[] {
    const { kubelet } = this.#deps;
    return kubelet.pods().filter(({ metadata, status }) => {
      const worker = kubelet.workers.get(metadata.uid ?? "");
      return worker && !worker.isRemoving && status?.phase !== "Succeeded" && status?.phase !== "Failed";
    });
  }

  #forgetUnwanted(): void {
    for (const uid of this.#evictedAtMs.keys()) if (!this.#deps.kubelet.evicted.has(uid)) this.#evictedAtMs.delete(uid);
  }

  #observe(): void {
    const { usage, settings, clock, logger, kubelet } = this.#deps;
    const before = this.pressures;
    this.#seenAtMs = clock.monotonicMs();
    this.#seen = computeNodePressure(this.#seen.history, usage.readSignals(), settings, this.#seenAtMs);
    const come = [...this.pressures].filter((type) => !before.has(type));
    const gone = [...before].filter((type) => !this.pressures.has(type));
    for (const type of come) logger.warn(`The node is under ${type}`);
    for (const type of gone) logger.info(`The node is no longer under ${type}`);
    for (const type of [...come, ...gone]) this.#changedAt.set(type, clock.now());
    // Pods rejected during the pressure may run now.
    if (gone.length > 0) kubelet.readmit([]);
  }

  #evictOverLimit(): void {
    const limited = this.#candidates().filter(hasDiskLimit);
    if (limited.length === 0) return;
    const measured = this.#deps.usage.askDisk(new Set(limited.map(uidOf)));
    for (const pod of limited) {
      const disk = measured.get(uidOf(pod));
      const exceeded = disk && findExceededLimit(pod, disk);
      if (exceeded) this.#evict(pod, exceeded, 0);
    }
  }

  async #relieve(due: DueThreshold, signal: AbortSignal): Promise<void> {
    const { kubelet, logger, recorder, usage, nodeName: name } = this.#deps;
    const message = `Attempting to reclaim ${resourceOf(due.signal)}`;
    recorder.record(nodeTarget(name), { type: "Warning", reason: "EvictionThresholdMet", message });
    if (isDiskSignal(due.signal)) {
      const removed = kubelet.removeSurplusDead({ maxInAll: 0, minTtlMs: 0 }) + (await usage.reclaimImages(signal));
      // The space freed may be enough; the next observation, after the engine is done, decides.
      if (removed > 0) return;
    }
    // The resources of the last evicted pod are not free before the pod is gone.
    if ([...this.#evictedAtMs.keys()].some((uid) => kubelet.workers.get(uid))) return;
    const victim = await this.#choose(due);
    if (!victim) return logger.debug(`No pod to evict for ${resourceOf(due.signal)}`);
    const { maxPodGraceSeconds: max } = this.#deps.settings;
    const graceSeconds = due.kind === "hard" ? 0 : max >= 0 ? max : Number.POSITIVE_INFINITY;
    const why = { signal: due.signal, message: toEvictionMessage(due, victim) };
    this.#evict(victim.pod, why, graceSeconds);
  }

  async #choose(due: DueThreshold): Promise<EvictionCandidate | undefined> {
    const { usage } = this.#deps;
    const pods = this.#candidates();
    let disks: ReadonlyMap<PodUID, PodDiskUsage> = new Map();
    if (isDiskSignal(due.signal)) {
      const uids = new Set(pods.map(uidOf));
      usage.askDisk(uids);
      await usage.diskSettled();
      disks = usage.askDisk(uids);
    }
    const usages = usage.readPods();
    const candidates = pods.map((pod): EvictionCandidate => {
      const uid = uidOf(pod);
      const disk = disks.get(uid);
      const used = usages.get(uid) ?? { memoryBytes: new Map(), processes: 0 };
      return { pod, usage: { ...used, ...(disk && { disk }) } };
    });
    const [first] = rankForEviction(candidates, resourceOf(due.signal));
    return first;
  }

  #evict(pod: Pod, { signal, message }: { signal: string; message: string }, maxGraceSeconds: number): void {
    const { kubelet, recorder, clock, metrics } = this.#deps;
    recorder.record(podRefOf(pod), { type: "Warning", reason: "Evicted", message });
    this.#evictedAtMs.set(uidOf(pod), clock.monotonicMs());
    kubelet.evict(uidOf(pod), { reason: "Evicted", message }, maxGraceSeconds);
    metrics.evictions.inc([signal]);
  }

  /** One at a time: the pressure may come back. */
  #readmit(): void {
    const { clock, settings, kubelet, logger } = this.#deps;
    if (this.pressures.size > 0) return;
    const nowMs = clock.monotonicMs();
    const last = [...this.#evictedAtMs].findLast(([, atMs]) => nowMs - atMs >= settings.transitionMs);
    if (!last) return;
    const [uid] = last;
    this.#evictedAtMs.delete(uid);
    const pod = kubelet.pods().find(({ metadata }) => metadata.uid === uid);
    if (pod) logger.info(`Pod "${podFullName(pod.metadata)}" was evicted and may run again`);
    kubelet.readmit([uid]);
  }
}

const uidOf = ({ metadata }: Pod): PodUID => metadata.uid ?? "";
