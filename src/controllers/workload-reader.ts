import { REVISION_ANNOTATION } from "../base/api/annotations.ts";
import type { ObjectMeta } from "../base/api/meta.ts";
import { objectKey } from "../base/model/desired-object.ts";
import type { WorkloadObject } from "../base/model/workload-object.ts";
import type { ClaimBinder } from "./claim-binder.ts";
import type { PodObserver } from "./pod-observer.ts";
import { objectUid } from "./workload-record.ts";
import type { WorkloadRecords } from "./workload-records.ts";
import { computeWorkloadStatus, type JobReference } from "./workload-status.ts";
import { toDerivedObjects } from "./workload-view.ts";

interface WorkloadReaderDeps {
  nodeName: string;
  records: WorkloadRecords;
  observer: PodObserver;
  claims: ClaimBinder;
}

/** Workloads as the API shows them: identities, statuses, and the objects that controllers derive from them. */
export class WorkloadReader {
  readonly #deps: WorkloadReaderDeps;

  constructor(deps: WorkloadReaderDeps) {
    this.#deps = deps;
  }

  /** The ReplicaSets of Deployments, the Jobs of CronJobs and the like, with their statuses. */
  derivedObjects(): WorkloadObject[] {
    const { records, observer, claims } = this.#deps;
    const pod = observer.reader();
    const derived = records.entries().flatMap(({ desired, record }) => toDerivedObjects({ desired, record, pod }));
    return [...derived, ...claims.derived()];
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
    const { records, observer, claims } = this.#deps;
    if (kind === "PersistentVolumeClaim" || kind === "PersistentVolume") return claims.statusOf(kind, object);
    const entry = records.entry(objectKey(kind, object.metadata));
    if (!entry) return undefined;
    const { desired, record } = entry;
    const { minReadySeconds } = desired.object.spec as { minReadySeconds?: number };
    const isCurrent = Bun.deepEquals(JSON.parse(JSON.stringify(desired.object.spec)), object.spec);
    const generation = isCurrent ? object.metadata.generation : undefined;
    const { namespace = "default" } = object.metadata;
    const jobOf = (name: string): JobReference => {
      const { uid } = this.identityOf("Job", { namespace, name });
      return { apiVersion: "batch/v1", kind: "Job", namespace, name, uid };
    };
    const pod = observer.reader();
    return computeWorkloadStatus({ kind: desired.kind, record, pod, minReadySeconds, generation, jobOf });
  }

  /** Annotations that the controller writes on a workload; undefined where it writes none. */
  annotationsOf(kind: string, { metadata }: { metadata: ObjectMeta }): Record<string, string> | undefined {
    const record = this.#deps.records.entry(objectKey(kind, metadata))?.record;
    const current = record?.revisions[record.updateRevision ?? ""];
    return kind === "Deployment" && current ? { [REVISION_ANNOTATION]: String(current.revision) } : undefined;
  }
}
