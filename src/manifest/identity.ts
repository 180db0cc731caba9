import type { Pod, Toleration } from "../base/api/pod.ts";
import type { SourceKind } from "../base/model/manifest-origin.ts";
import { canonicalJson, hex32 } from "../base/text/canonical-json.ts";

export const CONFIG_HASH_ANNOTATION = "kubernetes.io/config.hash";
export const CONFIG_SOURCE_ANNOTATION = "kubernetes.io/config.source";

/** Whether a pod comes from a file or a URL, not from an API server. Source: the kubelet's IsStaticPod. */
export const isStaticPod = ({ metadata }: Pick<Pod, "metadata">): boolean =>
  metadata.annotations?.[CONFIG_SOURCE_ANNOTATION] !== "api";

/**
 * Hash of a defaulted object before its identity is filled in: 32 hex digits, independent of the order of keys, layout
 * and comments.
 */
export const computeRevision = (object: unknown): string => hex32(canonicalJson(object));

/**
 * Makes a pod a static pod: namespace, name with node suffix, uid, node name, toleration, phase. Changes the pod in
 * place. The uid depends on node, namespace and name and identifies the pod; the hash annotation identifies its
 * revision. Source: `pkg/kubelet/config/common.go`; the hashes differ from upstream's (docs/differences.md).
 */
export function applyIdentity(pod: Pod, options: { nodeName: string; source: SourceKind; revision: string }): void {
  const { metadata, spec } = pod;
  spec.nodeName = options.nodeName;
  pod.status = { ...pod.status, phase: "Pending" };
  metadata.namespace ??= "default";
  if (options.source === "api") return;
  const fixedUid = metadata.uid;
  metadata.name = `${metadata.name ?? ""}-${options.nodeName}`;
  metadata.uid ??= hex32(`${options.nodeName}\n${metadata.namespace}\n${metadata.name}`);
  metadata.annotations ??= Object.create(null) as Record<string, string>;
  metadata.annotations[CONFIG_HASH_ANNOTATION] = fixedUid ?? options.revision;
  if (options.source === "file") tolerateEverything(pod);
}

function tolerateEverything(pod: Pod): void {
  const wanted: Toleration = { operator: "Exists", effect: "NoExecute" };
  pod.spec.tolerations ??= [];
  const { tolerations } = pod.spec;
  const same = tolerations.findIndex(
    (toleration) =>
      toleration.key === undefined &&
      toleration.value === undefined &&
      toleration.operator === wanted.operator &&
      toleration.effect === wanted.effect,
  );
  if (same === -1) tolerations.push(wanted);
  else tolerations[same] = wanted;
}
