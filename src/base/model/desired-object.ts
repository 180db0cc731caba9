import type { EndpointSlice, Endpoints } from "../api/endpoints.ts";
import type { Ingress, IngressClass } from "../api/ingress.ts";
import type { CronJob, Job } from "../api/job.ts";
import type { ObjectMeta } from "../api/meta.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { Service } from "../api/service.ts";
import type {
  DaemonSet,
  Deployment,
  PersistentVolumeClaim,
  PodTemplateSpec,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from "../api/workload.ts";
import type { ManifestOrigin } from "./manifest-origin.ts";

interface NoSpec {
  spec?: never;
}

/** Kinds other than Pod, ConfigMap and Secret that a manifest can hold, with the type of their objects. */
export interface ObjectOfKind {
  Deployment: Deployment;
  ReplicaSet: ReplicaSet;
  ReplicationController: ReplicationController;
  StatefulSet: StatefulSet;
  DaemonSet: DaemonSet;
  Job: Job;
  CronJob: CronJob;
  Service: Service;
  Endpoints: Endpoints & NoSpec;
  EndpointSlice: EndpointSlice & NoSpec;
  Ingress: Ingress;
  IngressClass: IngressClass;
  PersistentVolumeClaim: PersistentVolumeClaim;
  PersistentVolume: PersistentVolume;
}
export type ObjectKind = keyof ObjectOfKind;

/** An object with its kind. */
interface TypedObjectOf<K extends ObjectKind> {
  kind: K;
  object: ObjectOfKind[K];
}
export type TypedObject = { [K in ObjectKind]: TypedObjectOf<K> }[ObjectKind];

/** An object of a manifest, defaulted and validated, with its namespace filled in. */
export interface DesiredObjectOf<K extends ObjectKind> extends TypedObjectOf<K>, ManifestOrigin {
  /** Says that its source is not configured any more, as the notice `Unclaimed` of a pod. */
  unclaimed?: string;
}
/** Whether the objects of a kind have pods, or objects with pods. */
const HAS_PODS = {
  Deployment: true,
  ReplicaSet: true,
  ReplicationController: true,
  StatefulSet: true,
  DaemonSet: true,
  Job: true,
  CronJob: true,
  Service: false,
  Endpoints: false,
  EndpointSlice: false,
  Ingress: false,
  IngressClass: false,
  PersistentVolumeClaim: false,
  PersistentVolume: false,
} as const satisfies Record<ObjectKind, boolean>;

/** Kinds that have pods, or objects with pods. */
export type WorkloadKind = { [K in ObjectKind]: (typeof HAS_PODS)[K] extends true ? K : never }[ObjectKind];
export type DesiredWorkload = { [K in WorkloadKind]: DesiredObjectOf<K> }[WorkloadKind];

export const isWorkload = (desired: DesiredObject): desired is DesiredWorkload => HAS_PODS[desired.kind];

export const WORKLOAD_KINDS = (Object.keys(HAS_PODS) as ObjectKind[]).filter((kind) => HAS_PODS[kind]);

/** The template of the pods of an object, for a CronJob that of its Jobs; undefined for kinds without pods. */
export function podTemplateOf({ kind, object }: TypedObject): PodTemplateSpec | undefined {
  if (kind === "CronJob") return object.spec.jobTemplate.spec.template;
  return object.spec && "template" in object.spec ? object.spec.template : undefined;
}

export type DesiredObject = { [K in ObjectKind]: DesiredObjectOf<K> }[ObjectKind];

/** `Kind namespace/name`: identifies an object on the node. */
export type ObjectKey = `${string} ${string}/${string}`;

export function objectKey(
  kind: string,
  meta: { namespace?: string | undefined; name?: string | undefined },
): ObjectKey {
  return `${kind} ${meta.namespace ?? "default"}/${meta.name ?? ""}`;
}

/** An object of a workload's kind as the API shows it, with its status. */
export interface WorkloadObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
  /** Absent: of a ControllerRevision. */
  spec?: object;
  status?: object;
  /** Addresses of Endpoints, by their ports. */
  subsets?: readonly object[];
  /** Type, endpoints and ports of an EndpointSlice. */
  addressType?: string;
  endpoints?: readonly object[];
  ports?: readonly object[];
  /** The patch of a ControllerRevision, and its number. */
  data?: object;
  revision?: number;
}
