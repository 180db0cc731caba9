import type { ObjectMeta } from "../base/api/meta.ts";
import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { PodSpec } from "../base/api/pod.ts";
import type { PersistentVolumeClaim } from "../base/api/workload.ts";
import type { WorkloadObject } from "../base/model/workload-object.ts";
import { computeClaimStatus, computeVolumeStatus, findNewClaims, toClaims } from "./claim-records.ts";
import { bindClaims, retainBindings } from "./claims.ts";
import type { PreparedState } from "./prepare-state.ts";
import type { WorkloadRecords } from "./workload-records.ts";

/** Records claims of StatefulSets and binds all claims. */
export class ClaimBinder {
  readonly #records: WorkloadRecords;
  /** Claims of the manifests. */
  #written: readonly PersistentVolumeClaim[] = [];
  /** PersistentVolumes by name: those of the manifests, and removed ones that a claim is bound to. */
  volumes: ReadonlyMap<string, PersistentVolume> = new Map();

  constructor(records: WorkloadRecords) {
    this.#records = records;
  }

  /**
   * Takes over a state of the sources and the pods that workloads have now.
   * @param isComplete a claim that is not in it is deleted
   * @returns whether a claim was made, bound or is gone
   */
  update(prepared: PreparedState, isComplete: boolean, isNewState: boolean): boolean {
    const records = this.#records;
    this.#written = prepared.claims;
    const made = findNewClaims(records.claims, records.entries());
    if (!isNewState && made.length === 0) return false;
    const before = records.bindings;
    let known: Record<string, string> = { ...before };
    for (const { key, owner, claim } of made) {
      records.claims = { ...records.claims, [key]: claim };
      if (records.hadUnrecordedClaims(owner)) known[key] ??= "";
    }
    const claims = this.#all();
    // A claim that is only unknown keeps its volume.
    if (isComplete) known = { ...retainBindings(known, claims, this.#pods(prepared)) };
    const bindings = bindClaims(claims, [...prepared.volumes.values()], known);
    const bound = new Set(Object.values(bindings));
    const kept = Object.entries(records.volumes).filter(([name]) => bound.has(name));
    this.volumes = new Map([...kept, ...prepared.volumes]);
    const volumes = Object.fromEntries([...this.volumes].filter(([name]) => bound.has(name)));
    const isChanged =
      made.length > 0 ||
      JSON.stringify(bindings) !== JSON.stringify(before) ||
      JSON.stringify(volumes) !== JSON.stringify(records.volumes);
    records.bindings = bindings;
    records.volumes = volumes;
    return isChanged;
  }

  /** Claims of StatefulSets that no manifest describes. */
  derived(): WorkloadObject[] {
    const written = this.#writtenNames();
    const claims = toClaims(this.#records.claims).filter(({ metadata }) => !written.has(fullNameOf(metadata)));
    return claims.map((claim) => ({ ...claim, status: this.statusOf("PersistentVolumeClaim", claim) ?? {} }));
  }

  /** Deletes a claim of a StatefulSet. @returns false for one that is used, and for every other claim */
  delete(fullName: string): boolean {
    const records = this.#records;
    if (!records.claims[fullName] || this.userOf(fullName) !== undefined) return false;
    const { [fullName]: _claim, ...claims } = records.claims;
    records.claims = claims;
    return true;
  }

  /** Name of the pod of a StatefulSet that uses the claim it made. */
  userOf(fullName: string): string | undefined {
    if (!this.#records.claims[fullName]) return undefined;
    for (const { desired, record } of this.#records.entries()) {
      if (desired.kind !== "StatefulSet") continue;
      const { metadata, spec } = desired.object;
      for (const template of spec.volumeClaimTemplates ?? []) {
        const user = record.pods.find(
          ({ name }) => `${metadata.namespace ?? "default"}/${template.metadata.name}-${name}` === fullName,
        );
        if (user) return user.name;
      }
    }
    return undefined;
  }

  /** The status of a claim or a PersistentVolume; undefined while nothing is known of it. */
  statusOf(kind: "PersistentVolumeClaim" | "PersistentVolume", object: { metadata: ObjectMeta; spec?: unknown }) {
    const { bindings } = this.#records;
    return kind === "PersistentVolume"
      ? computeVolumeStatus(object.metadata.name ?? "", bindings)
      : computeClaimStatus(object as PersistentVolumeClaim, bindings, this.volumes);
  }

  #writtenNames = () => new Set(this.#written.map(({ metadata }) => fullNameOf(metadata)));

  #all(): PersistentVolumeClaim[] {
    const written = this.#writtenNames();
    return [
      ...this.#written,
      ...toClaims(this.#records.claims).filter(({ metadata }) => !written.has(fullNameOf(metadata))),
    ];
  }

  *#pods(prepared: PreparedState): Iterable<{ namespace: string | undefined; spec: Pick<PodSpec, "volumes"> }> {
    for (const { pod } of prepared.pods) yield { namespace: pod.metadata.namespace, spec: pod.spec };
    for (const { kind, object } of prepared.workloads) {
      const { template } = kind === "CronJob" ? object.spec.jobTemplate.spec : object.spec;
      yield { namespace: object.metadata.namespace, spec: template.spec };
    }
  }
}

const fullNameOf = ({ namespace = "default", name = "" }: ObjectMeta): string => `${namespace}/${name}`;
