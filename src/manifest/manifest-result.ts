import type { ConfigMap } from "../api/config-map.ts";
import type { Pod } from "../api/pod.ts";
import type { Secret } from "../api/secret.ts";
import type { DesiredPod, SourceKind } from "../model/desired-pod.ts";
import type { Finding } from "../model/finding.ts";
import type { FieldPath } from "./field-path.ts";

/** What is done with a field nobody knows: refuse the object, warn, or say nothing (as the kubelet does). */
export type Strictness = "strict" | "warn" | "ignore";

export interface ReadManifestOptions {
  /** File path, masked URL or `-`; only for findings and `DesiredPod.origin`. */
  file: string;
  /** Lower case; suffix of every pod name. */
  nodeName: string;
  source: SourceKind;
  /** Default `strict`. */
  strictness?: Strictness;
  /** Whether containers may be privileged. Default true, as the kubelet has it. */
  allowPrivileged?: boolean;
  /** Fill in `ObjectResult.places`, which keeps the whole text alive. Default false. */
  keepPlaces?: boolean;
}

/** The way from a field of an object back to the text. */
export interface ObjectPlaces {
  /** Where the object stands in its document. */
  path: FieldPath;
  locate(path: FieldPath): { line: number; column: number };
  lineText(line: number): string;
}

/** What became of one object of the stream; what `validate` prints. A list counts as its items. */
export interface ObjectResult {
  file: string;
  /** 1-based number of the YAML document. */
  document: number;
  /** As written; "" when not known. */
  kind: string;
  /** As written (without the node suffix); "" when not known. */
  name: string;
  namespace: string;
  /** Kubernetes' own verdict: no `syntax` or `invalid` finding, and a kind that it takes. */
  valid: boolean;
  /** Valid, runnable here, and clean under the strictness asked for. */
  ok: boolean;
  findings: Finding[];
  /** The defaulted pod with its static-pod identity; present whenever it is valid. */
  pod?: Pod;
  places?: ObjectPlaces;
}

/** Everything one manifest text holds. */
export interface ManifestResult {
  /** Only pods that are valid and runnable here, in the order of the text. */
  pods: DesiredPod[];
  /** Namespace filled in; values of `binaryData` in base64. */
  configMaps: ConfigMap[];
  /** Namespace filled in; `stringData` merged into `data` (base64). */
  secrets: Secret[];
  /** All findings of all objects, in the order of the text. */
  findings: Finding[];
  results: ObjectResult[];
}
