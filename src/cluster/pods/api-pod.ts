import { type Pod, PodSchema, type PodStatus } from "../../base/api/pod.ts";
import type { DesiredPod } from "../../base/model/desired-state.ts";
import { type DecodeIssue, decodeObject, isTypeIssue } from "../../manifest/decode/decode.ts";
import { objectShapeOf } from "../../manifest/decode/shape.ts";
import { applyPodDefaults, CONFIG_SOURCE_ANNOTATION, computeRevision } from "../../manifest/defaults.ts";
import { FieldPath } from "../../manifest/field.ts";
import { parseJson } from "../../manifest/yaml/json-parser.ts";
import { sourceId } from "../../sources/checkpoint-store.ts";
import type { ObjectOfApi } from "../client/reflector.ts";

/** `v1.Pod` as far as it is used before it is decoded. */
export interface ApiPod extends ObjectOfApi {
  spec: { nodeName?: string; restartPolicy?: string; readinessGates?: readonly { conditionType: string }[] };
  status?: PodStatus;
}

/**
 * `DesiredPod.sourceId` of pods of the API server. One cluster after the other is the same source: pods of the former go
 * when the latter has answered.
 */
export const CLUSTER_SOURCE_ID = sourceId("kubernetes API");
/** Value: the hash of the static pod that the mirror pod shows. */
export const MIRROR_ANNOTATION = "kubernetes.io/config.mirror";

export const isMirrorPod = ({ metadata }: ApiPod): boolean => metadata.annotations?.[MIRROR_ANNOTATION] !== undefined;

export const isTerminating = ({ metadata }: ApiPod): boolean => metadata.deletionTimestamp !== undefined;

/** The pod has terminated, as far as the API server knows. */
export const hasEnded = ({ status }: ApiPod): boolean => status?.phase === "Failed" || status?.phase === "Succeeded";

/** One that the node knows, or shows as a mirror pod, is kept before others; what does not fit ends soon, as the node refuses it. */
export function kindOfPod(pod: ApiPod, isKnown: boolean): "new" | "begun" | "ended" {
  if (hasEnded(pod)) return "ended";
  return isKnown || pod.status?.startTime !== undefined || isMirrorPod(pod) ? "begun" : "new";
}

/** Whether two versions of a pod mean the same to the node: only status and bookkeeping differ. */
export function hasSameSpec(a: ApiPod, b: ApiPod): boolean {
  return (
    a.metadata.uid === b.metadata.uid &&
    Bun.deepEquals(a.metadata.labels, b.metadata.labels) &&
    Bun.deepEquals(a.metadata.annotations, b.metadata.annotations) &&
    Bun.deepEquals(a.spec, b.spec)
  );
}

/** @throws Error when a field has a value of a wrong type */
export function toDesiredPod(object: ApiPod): DesiredPod {
  const { status: _status, ...pod } = readApiPod(object);
  const { metadata, spec } = pod;
  const { managedFields: _fields, resourceVersion: _version, ...lasting } = metadata;
  const annotations = Object.assign(Object.create(null), metadata.annotations, { [CONFIG_SOURCE_ANNOTATION]: "api" });
  const desired: Pod = {
    metadata: { ...lasting, annotations },
    spec,
    status: { phase: "Pending" },
  };
  return {
    pod: desired,
    source: "api",
    origin: "the API server",
    sourceId: CLUSTER_SOURCE_ID,
    revision: computeRevision({ labels: metadata.labels, annotations: metadata.annotations, spec }),
    isBound: true,
    resourceVersion: Number(metadata.resourceVersion) || 0,
  };
}

const podShape = objectShapeOf(PodSchema);

/**
 * A pod as an API server returns it: validated there, so that fields of newer versions are left out rather than refused.
 * @param object `v1.Pod`
 * @throws Error when a field has a value of a wrong type
 */
function readApiPod(object: object): Pod {
  const issues: DecodeIssue[] = [];
  const pod = decodeObject(parseJson(JSON.stringify(object)), podShape, FieldPath.root, issues) as Pod;
  const wrong = issues.find(isTypeIssue);
  if (wrong) throw new Error(`${wrong.path.toString()}: ${wrong.discreet}`);
  applyPodDefaults(pod);
  return pod;
}
