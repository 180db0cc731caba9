import type { ConfigMap } from "../base/api/config-map.ts";
import type { Pod } from "../base/api/pod.ts";
import type { Secret } from "../base/api/secret.ts";
import type { DesiredObject, TypedObject } from "../base/model/desired-object.ts";
import type { DesiredPod } from "../base/model/desired-pod.ts";
import type { Finding } from "../base/model/finding.ts";
import type { ManifestLocation, SourceKind } from "../base/model/manifest-origin.ts";
import type { FieldPath } from "./field.ts";

/**
 * Treatment of unknown fields and objects without effect. `strict`: both are errors, and names must follow Kubernetes'
 * rules. `standard`: unknown fields are errors; objects without effect on one node, what `podman kube play` accepts, and
 * container declarations without apiVersion are accepted with a warning. `warn`, `ignore`: as `standard`, but unknown fields are
 * warnings or are ignored (as the kubelet does).
 */
export type Strictness = "strict" | "standard" | "warn" | "ignore";

export interface ReadManifestOptions {
  /** File path, masked URL or `-`; used in findings and `DesiredPod.origin`. */
  file: string;
  /** Lower case; suffix of every pod name. */
  nodeName: string;
  source: SourceKind;
  /** Default `strict`. */
  strictness?: Strictness;
  /** Whether containers may be privileged. Default true, as the kubelet has it. */
  allowPrivileged?: boolean;
  /** Whether pods may have ephemeral containers, as running pods do. Default false. */
  allowEphemeralContainers?: boolean;
  /** Fill in `ObjectResult.positions`, which keeps the whole text in memory. Default false. */
  keepPositions?: boolean;
}

/** Maps fields of an object to positions in the text. */
export interface ObjectPositions {
  /** Path of the object in its document. */
  path: FieldPath;
  locate(path: FieldPath): { line: number; column: number };
  /** "" where the line may be part of a Secret. */
  lineText(line: number): string;
}

/** Result for one object of the stream, as `validate` prints it. A list is represented by its items. */
export interface ObjectResult {
  file: string;
  /** 1-based number of the YAML document. */
  document: number;
  /** Kind as written; "" when not known. */
  kind: string;
  /** Name as written, without the node suffix; "" when not known. */
  name: string;
  namespace: string;
  /** Kubernetes' verdict: no `syntax` or `invalid` finding, and a kind that the kubelet accepts. */
  valid: boolean;
  /** Valid, runnable here, and without findings that the strictness makes errors. */
  ok: boolean;
  findings: Finding[];
  /** The defaulted pod with its static-pod identity; present whenever it is valid or runs here. */
  pod?: Pod;
  /** Objects of other kinds, defaulted. */
  desired?: TypedObject;
  positions?: ObjectPositions;
}

/** Contents of one manifest. */
export interface ManifestResult {
  /** Only pods that are valid and runnable here, in the order of the text. */
  pods: DesiredPod[];
  /** Namespace filled in; values of `binaryData` in base64. */
  configMaps: ConfigMap[];
  /** Namespace filled in; `stringData` merged into `data` (base64). */
  secrets: Secret[];
  /** Objects of the other kinds, in the order of the text. */
  objects: DesiredObject[];
  /** Where each object other than a pod begins, by {@link ObjectKey}; the first of a name counts. */
  locations: Record<string, ManifestLocation>;
  /** All findings of all objects, in the order of the text. */
  findings: Finding[];
  results: ObjectResult[];
}
