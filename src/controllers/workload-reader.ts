import { REVISION_ANNOTATION } from "../base/api/annotations.ts";
import type { ObjectMeta } from "../base/api/meta.ts";
import type { Service } from "../base/api/service.ts";
import { type DesiredObject, objectKey, type WorkloadObject } from "../base/model/desired-object.ts";
import { hex32 } from "../base/text/canonical-json.ts";
import type { ClaimBinder } from "./claim-binder.ts";
import type { PodFacts } from "./controller.ts";
import type { PodObserver } from "./pod-observer.ts";
import type { ServiceManager } from "./service-manager.ts";
import {
  controllerReference,
  objectUid,
  type RevisionRecord,
  replicaSetAnnotations,
  type WorkloadRecord,
} from "./workload-record.ts";
import type { WorkloadRecords } from "./workload-records.ts";
import { computeWorkloadStatus, type JobReference, jobStatus } from "./workload-status.ts";

interface WorkloadReaderDeps {
  nodeName: string;
  records: WorkloadRecords;
  observer: PodObserver;
  claims: ClaimBinder;
  services: Pick<ServiceManager, "derivedObjects" | "specOf" | "statusOf">;
}

/** Workloads as the API shows them: identities, statuses, and the objects that controllers derive from them. */
export class WorkloadReader {
  readonly #deps: WorkloadReaderDeps;

  constructor(deps: WorkloadReaderDeps) {
    this.#deps = deps;
  }

  /** The ReplicaSets of Deployments, the Jobs of CronJobs and the like, with their statuses. */
  derivedObjects(): WorkloadObject[] {
    const { records, observer, claims, services } = this.#deps;
    const pod = observer.reader();
    const derived = records.entries().flatMap(({ desired, record }) => toDerivedObjects({ desired, record, pod }));
    return [...derived, ...claims.derived(), ...services.derivedObjects()];
  }

  /** Uid of an object of the sources in the API, and the time since which it is known. */
  identityOf(kind: string, metadata: ObjectMeta): { uid: string; creationTimestamp?: string } {
    const record = this.#deps.records.get(objectKey(kind, metadata));
    if (record) return { uid: record.uid, creationTimestamp: record.createdAt };
    const { namespace = "default", name = "" } = metadata;
    return { uid: metadata.uid ?? objectUid(this.#deps.nodeName, kind, namespace, name) };
  }

  /** The status of a workload, claim or volume; undefined while it is unknown. */
  statusOf(kind: string, object: { metadata: ObjectMeta; spec?: unknown }): object | undefined {
    const { records, observer, claims, services } = this.#deps;
    if (kind === "Service") return services.statusOf(object as Service);
    if (kind === "PersistentVolumeClaim" || kind === "PersistentVolume") return claims.statusOf(kind, object);
    const entry = records.entry(objectKey(kind, object.metadata));
    if (!entry) return undefined;
    const { desired, record } = entry;
    const { minReadySeconds } = desired.object.spec as { minReadySeconds?: number };
    const isCurrent = Bun.deepEquals(
      JSON.parse(JSON.stringify(desired.submittedSpec ?? desired.object.spec)),
      object.spec,
    );
    const generation = isCurrent ? object.metadata.generation : undefined;
    const { namespace = "default" } = object.metadata;
    const jobOf = (name: string): JobReference => {
      const { uid } = this.identityOf("Job", { namespace, name });
      return { apiVersion: "batch/v1", kind: "Job", namespace, name, uid };
    };
    const pod = observer.reader();
    return computeWorkloadStatus({ kind: desired.kind, record, pod, minReadySeconds, generation, jobOf });
  }

  /** Fields of the spec that an object was given; undefined where it was given none. */
  specOf(kind: string, object: { metadata: ObjectMeta; spec?: unknown }): object | undefined {
    return kind === "Service" ? this.#deps.services.specOf(object as Service) : undefined;
  }

  /** Annotations that the controller writes on a workload; undefined where it writes none. */
  annotationsOf(kind: string, { metadata }: { metadata: ObjectMeta }): Record<string, string> | undefined {
    const record = this.#deps.records.entry(objectKey(kind, metadata))?.record;
    const current = record?.revisions[record.updateRevision ?? ""];
    return kind === "Deployment" && current ? { [REVISION_ANNOTATION]: String(current.revision) } : undefined;
  }
}

interface DerivedFrom {
  desired: DesiredObject;
  record: WorkloadRecord;
  pod: (uid: string) => PodFacts;
}

/**
 * Objects that a controller derives from a workload: the ReplicaSets of a Deployment, the revisions of a StatefulSet or
 * DaemonSet, the Jobs of a CronJob. Pure.
 */
export function toDerivedObjects(state: DerivedFrom): WorkloadObject[] {
  const { desired, record, pod } = state;
  if (desired.kind === "Deployment") {
    return Object.values(record.revisions).map((revision) => toReplicaSet(state, revision));
  }
  if (desired.kind === "StatefulSet" || desired.kind === "DaemonSet") {
    return Object.values(record.revisions).map((revision) => toControllerRevision(state, revision));
  }
  const { metadata, spec } = desired.object;
  const isChild = metadata.ownerReferences?.some(({ kind }) => kind === "CronJob") ?? false;
  if (desired.kind !== "Job" || !isChild) return [];
  const live = record.pods.filter(({ leaving }) => !leaving);
  const own = { ...metadata, uid: record.uid, creationTimestamp: record.createdAt };
  return [
    {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: own,
      spec,
      status: jobStatus(record, live, live.filter(({ uid }) => pod(uid).isReady).length),
    },
  ];
}

function toReplicaSet({ desired, record, pod }: DerivedFrom, revision: RevisionRecord): WorkloadObject {
  const label = { "pod-template-hash": revision.hash };
  const { template } = revision;
  const labels = { ...template.metadata.labels, ...label };
  const pods = record.pods.filter((it) => !it.leaving && it.revision === revision.hash);
  const { metadata, spec } = desired.object;
  const { selector } = spec as { selector?: { matchLabels?: object } };
  const readyReplicas = pods.filter(({ uid }) => pod(uid).isReady).length;
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: {
      name: revision.name,
      namespace: metadata.namespace,
      uid: revision.uid,
      creationTimestamp: revision.createdAt,
      labels,
      annotations: replicaSetAnnotations(revision),
      ownerReferences: [controllerReference("Deployment", metadata.name, record.uid)],
    },
    spec: {
      replicas: revision.replicas,
      selector: { ...selector, matchLabels: { ...selector?.matchLabels, ...label } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
    status: {
      replicas: pods.length,
      readyReplicas,
      availableReplicas: readyReplicas,
      fullyLabeledReplicas: pods.length,
    },
  };
}

/** The object that `kubectl rollout history` and `undo` read. Source: `history.NewControllerRevision`; the data is a patch. */
function toControllerRevision({ desired, record }: DerivedFrom, revision: RevisionRecord): WorkloadObject {
  const { name = "", namespace } = desired.object.metadata;
  const { template, hash, annotations = {} } = revision;
  return {
    apiVersion: "apps/v1",
    kind: "ControllerRevision",
    metadata: {
      name: `${name}-${hash}`,
      namespace,
      uid: hex32(`${record.uid}\n${hash}`),
      creationTimestamp: revision.createdAt,
      labels: { ...template.metadata.labels, "controller-revision-hash": hash },
      ...(Object.keys(annotations).length > 0 && { annotations }),
      ownerReferences: [controllerReference(desired.kind, name, record.uid)],
    },
    data: { spec: { template: { ...template, $patch: "replace" } } },
    revision: revision.revision,
  };
}
