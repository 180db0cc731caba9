import type { ObjectMeta } from "../base/api/meta.ts";
import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { PodSpec } from "../base/api/pod.ts";
import type { PersistentVolumeClaim } from "../base/api/workload.ts";
import { claimVolumeOf } from "../base/model/claim-volume.ts";
import { type DesiredWorkload, type ObjectKey, objectKey, type WorkloadObject } from "../base/model/desired-object.ts";
import { podFullName } from "../base/model/identity.ts";
import { hex32 } from "../base/text/canonical-json.ts";
import { bindClaims, type ClaimRecord, type ClaimRecords, retainBindings } from "./claims.ts";
import type { PreparedState } from "./prepare-state.ts";
import type { WorkloadRecord } from "./workload-record.ts";
import type { WorkloadRecords } from "./workload-records.ts";

/** Records claims of StatefulSets and binds all claims. */
export class ClaimBinder {
  readonly #records: WorkloadRecords;
  /** Claims of the manifests. */
  #written: readonly PersistentVolumeClaim[] = [];
  /** PersistentVolumes by name: those of the manifests, and removed ones that a claim is bound to. */
  #volumes: ReadonlyMap<string, PersistentVolume> = new Map();

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
    const claims = [...this.#written, ...this.#made()];
    // A claim that is only unknown keeps its volume.
    if (isComplete) known = { ...retainBindings(known, claims, this.#pods(prepared)) };
    const bindings = bindClaims(claims, [...prepared.volumes.values()], known);
    const bound = new Set(Object.values(bindings));
    const kept = Object.entries(records.volumes).filter(([name]) => bound.has(name));
    this.#volumes = new Map([...kept, ...prepared.volumes]);
    const volumes = Object.fromEntries([...this.#volumes].filter(([name]) => bound.has(name)));
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
    return this.#made().map((claim) => ({ ...claim, status: this.#statusOfClaim(claim) ?? {} }));
  }

  /** The PersistentVolume that a claim is bound to. */
  volumeOf(fullName: string): PersistentVolume | undefined {
    return this.#volumes.get(this.#records.bindings[fullName] ?? "");
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
    return kind === "PersistentVolume"
      ? this.#statusOfVolume(object.metadata)
      : this.#statusOfClaim(object as PersistentVolumeClaim);
  }

  /** Source: core/v1 `PersistentVolumeClaimStatus`, with the volume, which the API shows as part of the spec. */
  #statusOfClaim({ metadata, spec }: Pick<PersistentVolumeClaim, "metadata" | "spec">) {
    const { namespace = "default", name = "" } = metadata;
    const bound = this.#records.bindings[`${namespace}/${name}`];
    if (bound === undefined) return undefined;
    const volume = this.#volumes.get(bound);
    const accessModes = volume?.spec.accessModes ?? spec.accessModes;
    const storage = volume?.spec.capacity?.storage ?? spec.resources.requests?.storage;
    return {
      phase: "Bound",
      ...(accessModes && { accessModes: [...accessModes] }),
      ...(storage !== undefined && { capacity: { storage } }),
      volume: { name: bound || claimVolumeOf(namespace, name), isDockerVolume: bound === "" },
    };
  }

  /** Source: core/v1 `PersistentVolumeStatus`, with the claim, which the API shows as part of the spec. */
  #statusOfVolume({ name: volumeName }: ObjectMeta) {
    const { bindings } = this.#records;
    const key = Object.keys(bindings).find((claim) => bindings[claim] === volumeName);
    if (key === undefined) return { phase: "Available" };
    const [namespace = "", name = ""] = key.split("/");
    return { phase: "Bound", claim: { namespace, name } };
  }

  /** Claims of StatefulSets that no manifest describes. */
  #made(): (PersistentVolumeClaim & WorkloadObject)[] {
    const written = new Set(this.#written.map(({ metadata }) => podFullName(metadata)));
    return toClaims(this.#records.claims).filter(({ metadata }) => !written.has(podFullName(metadata)));
  }

  *#pods(prepared: PreparedState): Iterable<{ namespace: string | undefined; spec: Pick<PodSpec, "volumes"> }> {
    for (const { pod } of prepared.pods) yield { namespace: pod.metadata.namespace, spec: pod.spec };
    for (const { kind, object } of prepared.workloads) {
      const { template } = kind === "CronJob" ? object.spec.jobTemplate.spec : object.spec;
      yield { namespace: object.metadata.namespace, spec: template.spec };
    }
  }
}

interface NewClaim {
  /** `namespace/name` */
  key: string;
  owner: ObjectKey;
  claim: ClaimRecord;
}

/** Claims of the pods that StatefulSets have now and that are not known yet. Pure. */
function findNewClaims(
  known: ClaimRecords,
  workloads: Iterable<{ desired: DesiredWorkload; record: WorkloadRecord }>,
): NewClaim[] {
  const found: NewClaim[] = [];
  for (const { desired, record } of workloads) {
    if (desired.kind !== "StatefulSet") continue;
    const { metadata, spec } = desired.object;
    const labels = spec.selector?.matchLabels;
    for (const template of spec.volumeClaimTemplates ?? []) {
      for (const pod of record.pods) {
        const name = `${template.metadata.name}-${pod.name}`;
        const key = `${metadata.namespace ?? "default"}/${name}`;
        if (pod.leaving || known[key]) continue;
        const uid = hex32(`${pod.uid}\n${name}`);
        const claim = { uid, createdAt: pod.createdAt, ...(labels && { labels }), spec: template.spec };
        found.push({ key, owner: objectKey(desired.kind, metadata), claim });
      }
    }
  }
  return found;
}

/** The claims of StatefulSets as objects. Pure. */
const toClaims = (records: ClaimRecords): (PersistentVolumeClaim & WorkloadObject)[] =>
  Object.entries(records).map(([key, { uid, createdAt, labels, spec }]) => {
    const [namespace, name] = key.split("/");
    const metadata = { name, namespace, uid, creationTimestamp: createdAt, ...(labels && { labels }) };
    return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec } as PersistentVolumeClaim &
      WorkloadObject;
  });
