import type { StatefulSet } from "../base/api/workload.ts";
import type { Draft } from "./controller.ts";
import type { PodRecord, RevisionRecord } from "./workload-records.ts";

/**
 * The next state of a StatefulSet. Source: `pkg/controller/statefulset/stateful_set_control.go` of 1.20, but for
 * one rule: a pod that is not Ready and not of the newest template is replaced at once. Upstream waits for it to become
 * Ready, so that the correction of a bad template has no effect until the pod is deleted.
 */
export const reconcileStatefulSet = (draft: Draft, spec: StatefulSet["spec"]): void =>
  new StatefulRollout(draft, spec).run();

class StatefulRollout {
  readonly #draft: Draft;
  readonly #spec: StatefulSet["spec"];
  readonly #update: RevisionRecord;
  readonly #current: RevisionRecord;
  readonly #isOrdered: boolean;

  constructor(draft: Draft, spec: StatefulSet["spec"]) {
    this.#draft = draft;
    this.#spec = spec;
    this.#isOrdered = spec.podManagementPolicy !== "Parallel";
    this.#update = draft.takeUpRevision(spec.template, "as-owner");
    const { record } = draft;
    this.#current = record.revisions[record.currentRevision ?? ""] ?? this.#update;
    record.currentRevision = this.#current.hash;
  }

  run(): void {
    if (this.#createAndHeal() && this.#scaleDown()) this.#roll();
    this.#finishRollout();
  }

  get #start(): number {
    return this.#spec.ordinals?.start ?? 0;
  }

  /** Those that fit on the node, and those that have a pod already. */
  get #ordinals(): number[] {
    const fitting = Math.min(this.#spec.replicas, this.#draft.world.node.maxPods);
    const made = this.#draft.record.pods
      .map(({ ordinal = -1 }) => ordinal)
      .filter((ordinal) => this.#isWanted(ordinal));
    const all = new Set([...Array.from({ length: fitting }, (_, index) => this.#start + index), ...made]);
    return [...all].sort((a, b) => a - b);
  }

  #isWanted(ordinal: number): boolean {
    return ordinal >= this.#start && ordinal < this.#start + this.#spec.replicas;
  }

  #podAt(ordinal: number): PodRecord | undefined {
    const name = `${this.#draft.name}-${ordinal}`;
    const all = this.#draft.record.pods.filter((pod) => pod.name === name);
    return all.find(({ leaving }) => !leaving) ?? all[0];
  }

  #isHealthy(pod: PodRecord): boolean {
    return !pod.leaving && this.#draft.isAvailable(pod, this.#spec.minReadySeconds);
  }

  /** Ordinals below it keep the template they have. */
  get #partition(): number {
    return this.#spec.updateStrategy.rollingUpdate?.partition ?? 0;
  }

  /** @returns whether all pods are there, and, if in order, Ready */
  #createAndHeal(): boolean {
    let isWhole = true;
    for (const ordinal of this.#ordinals) {
      const pod = this.#podAt(ordinal);
      if (!pod) {
        const { name } = this.#create(ordinal);
        this.#draft.recordEvent("SuccessfulCreate", `create Pod ${name} in StatefulSet ${this.#draft.name} successful`);
        if (this.#isOrdered || this.#draft.isBatchFull) return false;
        continue;
      }
      if (this.#isHealthy(pod)) continue;
      isWhole = false;
      const isRolled = this.#spec.updateStrategy.type === "RollingUpdate" && ordinal >= this.#partition;
      const mayRemove = isRolled && !pod.leaving && !this.#draft.world.pod(pod.uid).isUnknown;
      if (mayRemove && pod.revision !== this.#update.hash) this.#remove(pod);
      if (this.#isOrdered) return false;
    }
    return isWhole || !this.#isOrdered;
  }

  #create(ordinal: number): PodRecord {
    const isRolling = this.#spec.updateStrategy.type === "RollingUpdate";
    const revision = isRolling && ordinal < this.#partition ? this.#current : this.#update;
    const name = `${this.#draft.name}-${ordinal}`;
    const count = revision.incarnations?.[ordinal] ?? 0;
    revision.incarnations = { ...revision.incarnations, [ordinal]: count + 1 };
    const pod = this.#draft.addPod(name, revision, `${revision.hash}/${count}`);
    pod.ordinal = ordinal;
    return pod;
  }

  #remove(pod: PodRecord): void {
    this.#draft.remove(pod);
    this.#draft.recordEvent("SuccessfulDelete", `delete Pod ${pod.name} in StatefulSet ${this.#draft.name} successful`);
  }

  /** From the highest ordinal down. @returns whether nothing is left to do */
  #scaleDown(): boolean {
    const condemned = this.#draft.record.pods
      .filter(({ ordinal = -1 }) => !this.#isWanted(ordinal))
      .sort((a, b) => (b.ordinal ?? 0) - (a.ordinal ?? 0));
    for (const pod of condemned) {
      if (!pod.leaving) this.#remove(pod);
      if (this.#isOrdered) return false;
    }
    return condemned.length === 0;
  }

  /** One pod at a time, from the highest ordinal down; the next one when it is Ready. */
  #roll(): void {
    if (this.#spec.updateStrategy.type !== "RollingUpdate") return;
    for (const ordinal of this.#ordinals.reverse()) {
      if (ordinal < this.#partition) return;
      const pod = this.#podAt(ordinal);
      if (!pod || pod.leaving) return;
      if (pod.revision !== this.#update.hash) return this.#remove(pod);
      if (!this.#isHealthy(pod)) return;
    }
  }

  /** Source: `completeRollingUpdate`. */
  #finishRollout(): void {
    const { record } = this.#draft;
    const { pods } = record;
    const isDone = pods.length === this.#spec.replicas && pods.every((pod) => pod.revision === this.#update.hash);
    if (isDone && pods.every((pod) => this.#isHealthy(pod))) record.currentRevision = this.#update.hash;
    this.#draft.limitHistory(this.#spec.revisionHistoryLimit, [this.#update.hash, record.currentRevision ?? ""]);
  }
}
