import type { ConfigMap, Secret } from "../api/config-objects.ts";
import type { EndpointSlice, Endpoints } from "../api/endpoints.ts";
import type { Ingress, IngressClass } from "../api/ingress.ts";
import type { CronJob, Job } from "../api/job.ts";
import type { ObjectMeta } from "../api/meta.ts";
import type { PersistentVolume } from "../api/persistent-volume.ts";
import type { Pod } from "../api/pod.ts";
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
import type { PodUID } from "./pod.ts";

/** Kind of source; `kubernetes.io/config.source`. `api`: submitted to the local API server. */
export type SourceKind = "file" | "http" | "api";

/** Where a pod is written down. */
export interface ManifestLocation {
  /** Path or URL (masked). */
  file: string;
  /** 1-based number of the document in its stream. */
  document?: number;
  /** 1-based line at which the document begins. */
  line?: number;
}

/** Source and revision of a desired object. */
interface ManifestOrigin {
  source: SourceKind;
  /** For users: the file path or URL (masked), with document number where it helps. */
  origin: string;
  /** Absent for sources that have no text, e.g. an API. */
  location?: ManifestLocation;
  /** Identifies the source in checkpoints and state files: 32 hex digits, or a word. Absent: not known. */
  sourceId?: string;
  /** 32 hex digits of the canonical object, of a pod `kubernetes.io/config.hash`; every edit with a meaning changes it. */
  revision: string;
  /** The manifest itself says `dnsPolicy: ClusterFirst` of the pod or template, which is also the default. */
  asksForClusterDns?: true;
}

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

/** The source of pods that flags of the node ask for: always known completely. */
export const NODE_SOURCE = "node";

/** A pod this node should run, defaulted, validated and with its static-pod identity (name suffix, uid, nodeName, …). */
export interface DesiredPod extends ManifestOrigin {
  pod: Pod;
  /** The pod of a Job: once it has ended it never runs again, even if an object it refers to changes. */
  runsOnce?: true;
  /** Made from the template of a workload, which no scheduler has placed. */
  isFromTemplate?: true;
  /**
   * A cluster assigned it: it never runs again once it has ended, and a changed ConfigMap or Secret restarts nothing.
   */
  isBound?: true;
  /** The version of its API object when it was first seen: orders pods that were created in the same second. */
  resourceVersion?: number;
  /** Claims that were replaced by the volumes they are bound to, by the name of the volume. Absent: none. */
  claims?: Readonly<Record<string, string>>;
  /** Changes when files have to be written again for another reason than the pod and its objects, e.g. new tokens. */
  filesRevision?: string;
  /** Images in place of those of the manifest, by the name in the manifest; see `ImageUpdateManager`. Absent: none. */
  imagePins?: ReadonlyMap<string, ImagePinRef>;
}

/** The image of a container in place of that of its manifest. */
export interface ImagePinRef {
  /** For the engine: a name with a digest, or an image id. */
  ref: string;
  /** It is what the manifest's name meant when the container was started: no reason to restart it. */
  isBaseline: boolean;
}

/** ConfigMaps and Secrets by `namespace/name`, from documents next to the pods. */
export interface ObjectIndex {
  configMaps: ReadonlyMap<string, ConfigMap>;
  secrets: ReadonlyMap<string, Secret>;
  /** Secrets with a value in a file that could not be read since this process started. Absent: none. */
  unreadSecrets?: ReadonlySet<string>;
}

/** Information about a desired pod that does not keep it from running. */
export interface PodNotice {
  /**
   * `InvalidManifest`: an older text runs, since the newest is bad or the source cannot be read. `DuplicateManifest`: a
   * second text is ignored. `Unclaimed`: the source is not configured any more. `RolledBack`: the edit failed and an
   * earlier revision runs. `RolloutPaused`: the edit waits for that of another pod.
   */
  reason: "InvalidManifest" | "DuplicateManifest" | "Unclaimed" | "RolledBack" | "RolloutPaused";
  message: string;
}

/** How a pod that is no longer desired is deleted. */
export interface PodDeletion {
  /** In place of `terminationGracePeriodSeconds`; 0 kills at once. Absent: the pod's own. */
  graceSeconds?: number;
  /** The pod, for a process that finds only its containers: hooks and volumes are in it. */
  desired?: DesiredPod;
}

/**
 * Everything this node should run now. A pod is deleted by leaving it out; `deletions` has those with a grace period.
 */
export interface DesiredState extends ObjectIndex {
  /** Sorted by namespace, then name. */
  pods: readonly DesiredPod[];
  /** Notices by UID, shown as a condition of the pod. Absent or without an entry: nothing to report. */
  notices?: ReadonlyMap<PodUID, readonly PodNotice[]>;
  /** Workloads and the like, sorted by kind, namespace and name; their pods are not in `pods` yet. Absent: none. */
  objects?: readonly DesiredObject[];
  /** Where objects other than pods begin, by `ObjectKey`; absent or without an entry: not known. */
  locations?: Readonly<Record<string, ManifestLocation>>;
  /** Sources that were read completely: of their pods, those that are not in `pods` may be removed. Absent: all. */
  completeSources?: ReadonlySet<string>;
  /** Why claims are not bound, by `namespace/name`. */
  claimProblems?: ReadonlyMap<string, string>;
  /** Deletions by UID, for pods that are not in `pods`. */
  deletions?: ReadonlyMap<PodUID, PodDeletion>;
}

/** A stage on the way from the sources to the kubelet, which is the last one: each hands what it has made of a state to the next. */
export interface DesiredStateStage {
  /** @param isComplete what is not in the state is removed */
  setDesired(state: DesiredState, isComplete: boolean): void;
}
