import type { ConfigMap } from "../api/config-map.ts";
import type { Pod } from "../api/pod.ts";
import type { Secret } from "../api/secret.ts";
import type { DesiredObject } from "./desired-object.ts";
import type { PodUID } from "./identity.ts";
import type { ManifestLocation, ManifestOrigin } from "./manifest-origin.ts";

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
