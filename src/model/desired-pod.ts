import type { ConfigMap } from "../api/config-map.ts";
import type { Pod } from "../api/pod.ts";
import type { Secret } from "../api/secret.ts";
import type { DesiredObject } from "./desired-object.ts";
import type { PodUID } from "./identity.ts";

/** Where a pod was found; `kubernetes.io/config.source`. `api`: submitted to the local API server. */
export type SourceKind = "file" | "http" | "api";

/** A pod somebody wants, defaulted, validated and with its static-pod identity (name suffix, uid, nodeName, …). */
export interface DesiredPod {
  pod: Pod;
  source: SourceKind;
  /** For people: the file path or URL (masked), with document number where it helps. */
  origin: string;
  /** `kubernetes.io/config.hash`: 32 hex of the canonical manifest; changes with any edit that means something. */
  revision: string;
}

/** ConfigMaps and Secrets by `namespace/name`, from documents beside the pods. */
export interface ObjectIndex {
  configMaps: ReadonlyMap<string, ConfigMap>;
  secrets: ReadonlyMap<string, Secret>;
}

/** Something people should know about a wanted pod that does not keep it from running. */
export interface PodNotice {
  /** `InvalidManifest`: runs by an older text, the newest is bad. `DuplicateManifest`: a second text is ignored. */
  reason: "InvalidManifest" | "DuplicateManifest";
  message: string;
}

/** Everything that is wanted on this node now: the outcome of merging all sources. */
export interface DesiredState extends ObjectIndex {
  /** Sorted by namespace, then name. */
  pods: readonly DesiredPod[];
  /** By UID; to be shown as a condition of the pod. Absent or without an entry: nothing to say. */
  notices?: ReadonlyMap<PodUID, readonly PodNotice[]>;
  /** Workloads and the like, sorted by kind, namespace and name; their pods are not in `pods` yet. Absent: none. */
  objects?: readonly DesiredObject[];
}
