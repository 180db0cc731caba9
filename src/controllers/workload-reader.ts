import { REVISION_ANNOTATION } from "../base/api/annotations.ts";
import type { Condition, ObjectMeta } from "../base/api/meta.ts";
import type { Service } from "../base/api/service.ts";
import { type DesiredObject, objectKey, type WorkloadKind, type WorkloadObject } from "../base/model/desired-state.ts";
import { memoized } from "../base/model/memoized.ts";
import { canonicalJson, hex32, isRecord } from "../base/text/json.ts";
import type { ClaimBinder } from "./claims.ts";
import type { PodFacts, PodObserver } from "./controller.ts";
import type { IngressManager } from "./ingress-manager.ts";
import type { ServiceManager } from "./service-manager.ts";
import {
  controllerReference,
  objectUid,
  type PodRecord,
  type RevisionRecord,
  replicaSetAnnotations,
  type WorkloadRecord,
  type WorkloadRecords,
} from "./workload-records.ts";

export interface WorkloadReaderDeps {
  nodeName: string;
  records: WorkloadRecords;
  observer: PodObserver;
  claims: ClaimBinder;
  services: Pick<ServiceManager, "specOf" | "statusOf" | "inputs">;
  ingresses?: Pick<IngressManager, "statusOf"> | undefined;
}

/**
 * Workloads as the API shows them: identities, statuses, and the objects that controllers derive from them. Of identities and
 * objects only what is stored: no crash undoes what a client has seen.
 */
export class WorkloadReader {
  readonly #deps: WorkloadReaderDeps;
  /** Objects derived from a record, made again when its Ready pods change. */
  readonly #toDerived = memoized((record: WorkloadRecord, desired: DesiredObject, _ready: string) =>
    toDerivedObjects({ desired, record, pod: this.#deps.observer.reader() }),
  );

  constructor(deps: WorkloadReaderDeps) {
    this.#deps = deps;
  }

  /** The ReplicaSets of Deployments, the Jobs of CronJobs and the like, with their statuses. */
  derivedObjects(): WorkloadObject[] {
    const { records, observer, claims } = this.#deps;
    const pod = observer.reader();
    const derived = records.entries().flatMap(({ desired }) => {
      const record = records.stored.get(objectKey(desired.kind, desired.object.metadata));
      if (!record) return [];
      const ready = record.pods.flatMap(({ uid }) => (pod(uid).isReady ? [uid] : [])).join();
      return this.#toDerived(record, desired, ready);
    });
    return [...derived, ...claims.derived()];
  }

  /** Uid of an object of the sources in the API, and the time since which it is known. */
  identityOf(kind: string, metadata: ObjectMeta): { uid: string; creationTimestamp?: string } {
    const record = this.#deps.records.stored.get(objectKey(kind, metadata));
    if (record) return { uid: record.uid, creationTimestamp: record.createdAt };
    const { namespace = "default", name = "" } = metadata;
    return { uid: metadata.uid ?? objectUid(this.#deps.nodeName, kind, namespace, name) };
  }

  /** The status of a workload, claim or volume; undefined while it is unknown. */
  statusOf(kind: string, object: { metadata: ObjectMeta; spec?: unknown }): object | undefined {
    const { records, observer, claims, services, ingresses } = this.#deps;
    if (kind === "Ingress") return ingresses?.statusOf(object);
    if (kind === "Service") return services.statusOf(object as Service);
    if (kind === "PersistentVolumeClaim" || kind === "PersistentVolume") return claims.statusOf(kind, object);
    const entry = records.entry(objectKey(kind, object.metadata));
    if (!entry) return undefined;
    const { desired, record } = entry;
    const { minReadySeconds } = desired.object.spec as { minReadySeconds?: number };
    const { spec } = object;
    const isCurrent = isRecord(spec) && isFollowed(spec, desired.submittedSpec ?? desired.object.spec);
    const generation = isCurrent ? object.metadata.generation : undefined;
    const { namespace = "default" } = object.metadata;
    const jobOf = (name: string) => {
      const { uid } = this.identityOf("Job", { namespace, name });
      return { apiVersion: "batch/v1", kind: "Job", namespace, name, uid };
    };
    const pod = observer.reader();
    const status = computeWorkloadStatus({ kind: desired.kind, record, pod, minReadySeconds, generation, jobOf });
    if (desired.unclaimed === undefined) return status;
    const notLive = { type: "ManifestLive", status: "False", reason: "Unclaimed", message: desired.unclaimed };
    const { conditions = [] } = status as { conditions?: readonly object[] };
    return { ...status, conditions: [...conditions, notLive] };
  }

  /** All on which status, annotations and fields of the spec depend besides the object; others each time where that is not known. */
  inputsOf(kind: string): readonly unknown[] {
    return kind === "Service" ? this.#deps.services.inputs : [{}];
  }

  /** Fields of the spec that an object was given; undefined where it was given none. */
  specOf(kind: string, object: { metadata: ObjectMeta; spec?: unknown }): object | undefined {
    return kind === "Service" ? this.#deps.services.specOf(object as Service) : undefined;
  }

  /** Annotations that the controller writes on a workload; undefined where it writes none. */
  annotationsOf(kind: string, { metadata }: { metadata: ObjectMeta }): Record<string, string> | undefined {
    if (kind !== "Deployment") return undefined;
    const record = this.#deps.records.entry(objectKey(kind, metadata))?.record;
    const current = record?.revisions[record.updateRevision ?? ""];
    return current && { [REVISION_ANNOTATION]: String(current.revision) };
  }
}

/** Whether a workload follows this spec of the API, as JSON has it. */
const isFollowed = memoized((spec: object, followed: object): boolean =>
  Bun.deepEquals(JSON.parse(JSON.stringify(followed)), spec),
);

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
  if (desired.kind !== "Job") return [];
  const { metadata, spec } = desired.object;
  if (!metadata.ownerReferences?.some(({ kind }) => kind === "CronJob")) return [];
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
      ...(revision.minReadySeconds && { minReadySeconds: revision.minReadySeconds }),
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
    data: toTemplatePatch(template),
    revision: revision.revision,
  };
}

/**
 * Clients compare these bytes with the patch that they make of the workload's template, as `kubectl rollout undo` does for
 * "skipped rollback": names in order, and the zero time that Go writes. Source: `getPatch` of daemon/update.go.
 */
function toTemplatePatch(template: RevisionRecord["template"]): object {
  const metadata = { ...template.metadata, creationTimestamp: null };
  return JSON.parse(canonicalJson({ spec: { template: { ...template, metadata, $patch: "replace" } } }));
}

/** Inputs of a workload's status. */
export interface StatusInput {
  kind: WorkloadKind;
  record: WorkloadRecord;
  /** Facts of a pod by uid. */
  pod: (uid: string) => Pick<PodFacts, "isReady" | "readyForMs">;
  minReadySeconds: number | undefined;
  /** The core/v1 `ObjectReference` of a Job of a CronJob. */
  jobOf: (name: string) => object;
  /** Generation of the object the record follows; undefined while it follows an older one. */
  generation: number | undefined;
}

/** Jobs whose end was not seen yet are active, as upstream counts them. */
function cronJobStatus({ cron }: WorkloadRecord, jobOf: StatusInput["jobOf"]): object {
  const active = (cron?.jobs ?? []).filter(({ isSeen }) => !isSeen).map(({ name }) => jobOf(name));
  return {
    ...(active.length > 0 && { active }),
    ...(cron?.lastScheduleTime !== undefined && { lastScheduleTime: cron.lastScheduleTime }),
    ...(cron?.lastSuccessfulTime !== undefined && { lastSuccessfulTime: cron.lastSuccessfulTime }),
  };
}

/** The `status` of a workload as the API shows it. Source: apps/v1 and batch/v1. */
export function computeWorkloadStatus(input: StatusInput): object {
  const { kind, record, generation, minReadySeconds = 0 } = input;
  const pods = record.pods.filter(({ leaving }) => !leaving);
  const facts = pods
    .map(({ uid, revision }) => ({ ...input.pod(uid), seconds: record.revisions[revision]?.minReadySeconds }))
    .filter(({ isReady }) => isReady);
  const ready = facts.length;
  const available = facts.filter((pod) => pod.readyForMs >= (pod.seconds ?? minReadySeconds) * 1000).length;
  const newest = Object.entries(record.revisions).sort(([, a], [, b]) => b.revision - a.revision)[0]?.[0];
  const updated = pods.filter(({ revision }) => revision === newest).length;
  const observed = generation !== undefined && { observedGeneration: generation };
  switch (kind) {
    case "Deployment": {
      // Pods wanted of all ReplicaSets. Source: `calculateStatus`.
      const total = Object.values(record.revisions).reduce((sum, revision) => sum + revision.replicas, 0);
      const ofTemplate = pods.filter(({ revision }) => revision === record.updateRevision).length;
      return {
        ...observed,
        ...(pods.length > 0 && { replicas: pods.length }),
        ...(ofTemplate > 0 && { updatedReplicas: ofTemplate }),
        ...(ready > 0 && { readyReplicas: ready }),
        ...(available > 0 && { availableReplicas: available }),
        ...(available < total && { unavailableReplicas: total - available }),
        conditions: record.conditions ?? [],
      };
    }
    case "StatefulSet": {
      const revisionName = (key: string | undefined) => key && `${record.revisions[key]?.name}-${key}`;
      return {
        ...observed,
        replicas: pods.length,
        readyReplicas: ready,
        availableReplicas: available,
        updatedReplicas: updated,
        currentReplicas: pods.filter(({ revision }) => revision === (record.currentRevision ?? newest)).length,
        currentRevision: revisionName(record.currentRevision ?? newest),
        updateRevision: revisionName(newest),
      };
    }
    case "DaemonSet":
      return {
        ...observed,
        currentNumberScheduled: pods.length,
        desiredNumberScheduled: pods.length,
        numberMisscheduled: 0,
        numberReady: ready,
        numberAvailable: available,
        ...(available < pods.length && { numberUnavailable: pods.length - available }),
        updatedNumberScheduled: updated,
      };
    case "Job":
      return jobStatus(record, pods, ready);
    case "CronJob":
      return cronJobStatus(record, input.jobOf);
    default:
      return {
        ...observed,
        replicas: pods.length,
        fullyLabeledReplicas: pods.length,
        readyReplicas: ready,
        availableReplicas: available,
      };
  }
}

/** The `status` of a Job. @param pods those that are not being removed */
function jobStatus({ job }: WorkloadRecord, pods: readonly PodRecord[], ready: number): object {
  const countOf = (phase: "Succeeded" | "Failed") => pods.filter((pod) => pod.ended?.phase === phase).length;
  const succeeded = job?.expired?.succeeded ?? countOf("Succeeded");
  const active = pods.filter((pod) => !pod.ended).length;
  const { finished, startTime } = job ?? {};
  const failed = (job?.expired?.failed ?? countOf("Failed")) + (finished?.stopped ?? 0);
  const conditions: Condition[] = [];
  if (finished) {
    const { type, reason, message, at } = finished;
    conditions.push({
      type,
      status: "True",
      ...(reason && { reason }),
      ...(message && { message }),
      lastTransitionTime: at,
    });
  } else if (job?.isSuspended)
    conditions.push({ type: "Suspended", status: "True", reason: "JobSuspended", message: "Job suspended" });
  return {
    ...(startTime && { startTime }),
    ...(active > 0 && !finished && { active, ready }),
    ...(succeeded > 0 && { succeeded }),
    ...(failed > 0 && { failed }),
    ...(finished?.type === "Complete" && { completionTime: finished.at }),
    ...(conditions.length > 0 && { conditions }),
  };
}
