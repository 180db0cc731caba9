import type { OwnerReference } from "../api/meta.ts";
import type { Pod } from "../api/pod.ts";
import type { DesiredObject } from "../model/desired-object.ts";
import type { DesiredPod } from "../model/desired-pod.ts";
import { hex32 } from "../text/canonical-json.ts";
import type { PodRecord, RevisionRecord, WorkloadRecord } from "./workload-record.ts";

/** The pod of a record, complete: name, labels and owner as a cluster's controller would give it. */
export function toDesiredPod(
  desired: DesiredObject,
  record: WorkloadRecord,
  { name, uid, revision: hash, createdAt }: PodRecord,
  nodeName: string,
): DesiredPod {
  const revision = record.revisions[hash]!;
  const { template } = revision;
  const pod: Pod = {
    metadata: {
      name,
      generateName: `${revision.name}-`,
      namespace: desired.object.metadata.namespace ?? "default",
      uid,
      creationTimestamp: createdAt,
      labels: Object.assign(Object.create(null), template.metadata.labels, controllerLabels(desired, revision)),
      ...(template.metadata.annotations && {
        annotations: Object.assign(Object.create(null), template.metadata.annotations),
      }),
      ownerReferences: [ownerOf(desired, record, revision)],
    },
    spec: { ...template.spec, nodeName },
    status: { phase: "Pending" },
  };
  const { source, origin, sourceId } = desired;
  return { pod, source, origin, ...(sourceId !== undefined && { sourceId }), revision: hex32(`${hash}\n${uid}`) };
}

/** Labels by which a controller knows the revision of its pods. */
function controllerLabels({ kind }: DesiredObject, { hash }: RevisionRecord): Record<string, string> {
  return kind === "Deployment" ? { "pod-template-hash": hash } : {};
}

function ownerOf({ kind, object }: DesiredObject, { uid }: WorkloadRecord, revision: RevisionRecord): OwnerReference {
  const flags = { controller: true, blockOwnerDeletion: true };
  if (kind === "Deployment") {
    return { apiVersion: "apps/v1", kind: "ReplicaSet", name: revision.name, uid: revision.uid, ...flags };
  }
  const apiVersion = kind === "ReplicationController" ? "v1" : "apps/v1";
  return { apiVersion, kind, name: object.metadata.name ?? "", uid, ...flags };
}
