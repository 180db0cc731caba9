import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { DesiredWorkload } from "../base/model/desired-object.ts";
import type { DesiredPod, DesiredState, PodDeletion } from "../base/model/desired-pod.ts";
import { compareFullNames, type PodUID, podFullName } from "../base/model/identity.ts";
import { type Bindings, replacedClaims, resolveClaims } from "./claims.ts";
import type { PreparedState } from "./prepare-state.ts";
import { toDesiredPod } from "./to-desired-pod.ts";
import type { WorkloadRecord } from "./workload-record.ts";

interface WorkloadPodsInput {
  /** The state of the sources. */
  state: DesiredState;
  prepared: PreparedState;
  bindings: Bindings;
  /** PersistentVolumes by name. */
  volumes: ReadonlyMap<string, PersistentVolume>;
  workloads: Iterable<{ desired: DesiredWorkload; record: WorkloadRecord }>;
  isGone: (uid: PodUID) => boolean;
}

/** The pods of the workloads, merged with those of the sources. A pod that did not change is the same object as before. */
export class WorkloadPods {
  readonly #nodeName: string;
  readonly #pods = new Map<PodUID, DesiredPod>();
  /** Grace periods of pods that clients deleted. */
  readonly #deletions = new Map<PodUID, PodDeletion>();
  /** UIDs of the last {@link merge}. */
  #merged = "";

  constructor(nodeName: string) {
    this.#nodeName = nodeName;
  }

  /** A client deleted this pod. */
  delete(uid: PodUID, deletion: PodDeletion): void {
    this.#deletions.set(uid, deletion);
    this.#merged = "";
  }

  /** @returns the state to run; undefined when it is that of the last call. @param isNewState the input has changed */
  merge(input: WorkloadPodsInput, isNewState: boolean): DesiredState | undefined {
    const { state, prepared, bindings, volumes, isGone } = input;
    const made = this.#make(input);
    const merged = made.map(({ pod }) => pod.metadata.uid).join(" ");
    if (!isNewState && merged === this.#merged) return undefined;
    this.#merged = merged;
    const uids = new Set(made.map(({ pod }) => pod.metadata.uid));
    // A pod that a workload took over is in the API as a pod of its own until that has noticed.
    const own = prepared.pods.filter(({ pod }) => !uids.has(pod.metadata.uid));
    const pods = [...own, ...made].map((desired) => {
      const pod = resolveClaims(desired.pod, bindings, volumes);
      return pod === desired.pod ? desired : { ...desired, pod, claims: replacedClaims(desired.pod, pod) };
    });
    if (made.length > 0) {
      pods.sort((a, b) => compareFullNames(podFullName(a.pod.metadata), podFullName(b.pod.metadata)));
    }
    for (const uid of this.#deletions.keys()) if (isGone(uid)) this.#deletions.delete(uid);
    const deletions = new Map([...(state.deletions ?? []), ...this.#deletions]);
    return { ...state, pods, ...(this.#deletions.size > 0 && { deletions }) };
  }

  #make({ workloads }: WorkloadPodsInput): DesiredPod[] {
    const pods: DesiredPod[] = [];
    for (const { desired, record } of workloads) {
      for (const pod of record.pods) {
        if (pod.leaving || pod.isDeleted) continue;
        const made = this.#pods.get(pod.uid) ?? toDesiredPod(desired, record, pod, this.#nodeName);
        this.#pods.set(pod.uid, made);
        pods.push(made);
      }
    }
    const uids = new Set(pods.map(({ pod }) => pod.metadata.uid!));
    for (const uid of this.#pods.keys()) if (!uids.has(uid)) this.#pods.delete(uid);
    return pods;
  }
}
