import type { PersistentVolume } from "../base/api/persistent-volume.ts";
import type { PersistentVolumeClaim } from "../base/api/workload.ts";
import { claimVolumeOf } from "../base/model/claim-volume.ts";
import { type DesiredWorkload, type ObjectKey, objectKey } from "../base/model/desired-object.ts";
import type { WorkloadObject } from "../base/model/workload-object.ts";
import { hex32 } from "../base/text/canonical-json.ts";
import type { Bindings } from "./claims.ts";
import type { WorkloadRecord } from "./workload-record.ts";

/** A claim that a StatefulSet made. */
export interface ClaimRecord {
  uid: string;
  /** RFC 3339, whole seconds. */
  createdAt: string;
  labels?: Record<string, string>;
  spec: PersistentVolumeClaim["spec"];
}

/** Claims of StatefulSets by `namespace/name`, also of those that are gone or have fewer pods now. */
export type ClaimRecords = Readonly<Record<string, ClaimRecord>>;

interface NewClaim {
  /** `namespace/name` */
  key: string;
  owner: ObjectKey;
  claim: ClaimRecord;
}

/** Claims of the pods that StatefulSets have now and that are not known yet. Pure. */
export function findNewClaims(
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
export const toClaims = (records: ClaimRecords): (PersistentVolumeClaim & WorkloadObject)[] =>
  Object.entries(records).map(([key, { uid, createdAt, labels, spec }]) => {
    const [namespace, name] = key.split("/");
    const metadata = { name, namespace, uid, creationTimestamp: createdAt, ...(labels && { labels }) };
    return { apiVersion: "v1", kind: "PersistentVolumeClaim", metadata, spec } as PersistentVolumeClaim &
      WorkloadObject;
  });

/** The volume behind a claim. It is shown as part of the spec, and is not part of the text of the claim. */
interface BoundVolume {
  name: string;
  isDockerVolume: boolean;
}

/** Source: core/v1 `PersistentVolumeClaimStatus`. */
interface ClaimStatus {
  phase: "Bound";
  accessModes?: string[];
  capacity?: Record<string, string>;
  volume: BoundVolume;
}

/** The status of a claim; undefined while it is not bound. Pure. */
export function computeClaimStatus(
  { metadata, spec }: Pick<PersistentVolumeClaim, "metadata" | "spec">,
  bindings: Bindings,
  volumes: ReadonlyMap<string, PersistentVolume>,
): ClaimStatus | undefined {
  const { namespace = "default", name = "" } = metadata;
  const bound = bindings[`${namespace}/${name}`];
  if (bound === undefined) return undefined;
  const volume = volumes.get(bound);
  const accessModes = volume?.spec.accessModes ?? spec.accessModes;
  const storage = volume?.spec.capacity?.storage ?? spec.resources.requests?.storage;
  return {
    phase: "Bound",
    ...(accessModes && { accessModes: [...accessModes] }),
    ...(storage !== undefined && { capacity: { storage } }),
    volume:
      bound === ""
        ? { name: claimVolumeOf(namespace, name), isDockerVolume: true }
        : { name: bound, isDockerVolume: false },
  };
}

/** Source: core/v1 `PersistentVolumeStatus`; the claim is shown as part of the spec. */
interface VolumeStatus {
  phase: "Available" | "Bound";
  claim?: { namespace: string; name: string };
}

/** The status of a PersistentVolume. Pure. */
export function computeVolumeStatus(volumeName: string, bindings: Bindings): VolumeStatus {
  const key = Object.keys(bindings).find((claim) => bindings[claim] === volumeName);
  if (key === undefined) return { phase: "Available" };
  const [namespace = "", name = ""] = key.split("/");
  return { phase: "Bound", claim: { namespace, name } };
}
