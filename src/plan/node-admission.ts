import type { Pod } from "../base/api/pod.ts";
import type { DesiredPod } from "../base/model/desired-pod.ts";
import type { PodUID } from "../base/model/identity.ts";
import type { Persisted } from "../base/model/persisted.ts";
import { type Admission, type AdmissionNode, admitPods } from "./admission.ts";
import { allocationOf, hasResources, type PodAllocation } from "./pod-resize.ts";

/** Resources of pods with requests or limits, by UID. */
export type StoredAllocations = Readonly<Record<PodUID, PodAllocation>>;

/**
 * Remembers what each pod held when it was admitted last; everything else is {@link admitPods}. The resources outlive the
 * process: a pod that waits for those of an edit must not be refused for it after a restart.
 */
export class NodeAdmission {
  readonly #file: Persisted<StoredAllocations>;
  #node: AdmissionNode;
  #held = new Map<PodUID, Pod>();
  readonly #allocations: Map<PodUID, PodAllocation>;

  constructor(node: AdmissionNode, file: Persisted<StoredAllocations>) {
    this.#node = node;
    this.#file = file;
    this.#allocations = new Map(Object.entries(file.read() ?? {}));
  }

  /** Labels that selectors and affinities are compared with from now on. */
  setLabels(labels: AdmissionNode["labels"]): void {
    this.#node = { ...this.#node, labels };
  }

  /**
   * @param running pods that have their place already
   * @param isComplete these are all pods: what others held is forgotten
   */
  admit(pods: readonly DesiredPod[], running: ReadonlySet<PodUID>, isComplete: boolean): Admission {
    const admission = admitPods({
      pods,
      running,
      held: this.#held,
      allocations: this.#allocations,
      node: this.#node,
    });
    const before = this.#held;
    this.#held = new Map();
    let isChanged = false;
    for (const { pod } of pods) {
      const uid = pod.metadata.uid!;
      if (admission.rejections.has(uid)) {
        isChanged = this.#allocations.delete(uid) || isChanged;
        continue;
      }
      const given = admission.resizes.get(uid)?.pod ?? pod;
      this.#held.set(uid, given);
      if (given !== before.get(uid)) isChanged = this.#setAllocation(uid, allocationOf(given)) || isChanged;
    }
    if (isComplete) {
      for (const uid of this.#allocations.keys()) {
        if (!this.#held.has(uid)) isChanged = this.#allocations.delete(uid) || isChanged;
      }
    }
    if (isChanged) this.#file.write(Object.fromEntries(this.#allocations));
    return admission;
  }

  /** @returns whether it is another one than before */
  #setAllocation(uid: PodUID, allocation: PodAllocation): boolean {
    if (!hasResources(allocation)) return this.#allocations.delete(uid);
    if (Bun.deepEquals(this.#allocations.get(uid), allocation)) return false;
    this.#allocations.set(uid, allocation);
    return true;
  }
}
