import type { Pod } from "../base/api/pod.ts";
import type { DesiredPod } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";
import {
  type DependencyState,
  dependenciesOf,
  findDependencyProblems,
  findHold,
  findStopsBefore,
  isDependencyOn,
} from "../plan/pod-dependencies.ts";
import type { WaitingReason } from "../plan/pod-plan.ts";
import type { PodWorker } from "./pod-worker.ts";

/** Order among pods that depend on each other: what holds a start, which workers a change concerns, what stops first. */
export class DependencyOrder {
  readonly #desired: () => readonly DesiredPod[];
  readonly #workers: ReadonlyMap<PodUID, PodWorker>;
  #problems: ReadonlyMap<PodUID, WaitingReason> = new Map();
  /** Desired pods that have dependencies: few or none. */
  #dependents: readonly PodUID[] = [];

  constructor(desired: () => readonly DesiredPod[], workers: ReadonlyMap<PodUID, PodWorker>) {
    this.#desired = desired;
    this.#workers = workers;
  }

  /** To be called after each change of the desired pods. @param isComplete else a missing pod may only be late */
  check(isComplete: boolean): void {
    this.#dependents = this.#desired().flatMap(({ pod }) =>
      dependenciesOf(pod).length > 0 ? [pod.metadata.uid!] : [],
    );
    this.#problems = isComplete ? findDependencyProblems(this.#desired().map(({ pod }) => pod)) : new Map();
  }

  /** Why the pod may not start now. */
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
    return this.#desired().map(({ pod }) => {
      const worker = this.#workers.get(pod.metadata.uid!);
      return { pod, status: worker?.status, rollout: worker?.rollout ?? "pending" };
    });
  }
}
