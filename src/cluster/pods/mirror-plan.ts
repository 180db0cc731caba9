import type { OwnerReference, Pod } from "../../base/api/pod.ts";
import { CONFIG_HASH_ANNOTATION } from "../../manifest/identity.ts";
import { type ApiPod, isMirrorPod, isTerminating, MIRROR_ANNOTATION } from "./api-pod.ts";

interface MirrorInput {
  /** Static pods of this node, those that terminate included. */
  staticPods: readonly Pod[];
  /** Whether a static pod runs or is about to run. */
  isWanted: (pod: Pod) => boolean;
  apiPods: readonly ApiPod[];
  /** Every source of static pods was read: a mirror pod without one may be removed. */
  isComplete: boolean;
  node: { name: string; uid: string };
}

interface MirrorPlan {
  create: object[];
  remove: ApiPod[];
  /** Static pods whose names other pods of the API have. */
  taken: Pod[];
}

const keyOf = ({ metadata }: { metadata: { namespace?: string | undefined; name?: string | undefined } }) =>
  `${metadata.namespace ?? "default"}/${metadata.name ?? ""}`;

/** The revision of the static pod that a mirror pod represents. */
const hashOf = ({ metadata }: Pod): string => metadata.annotations?.[CONFIG_HASH_ANNOTATION] ?? metadata.uid ?? "";

/**
 * Which mirror pods are to be created and removed, so that the API server shows each static pod. One that was deleted,
 * gracefully or not, or that shows an earlier revision is removed and created again. Pure.
 * Source: the kubelet's syncPod and deleteOrphanedMirrorPods.
 */
export function planMirrors({ staticPods, isWanted, apiPods, isComplete, node }: MirrorInput): MirrorPlan {
  const plan: MirrorPlan = { create: [], remove: [], taken: [] };
  const byName = new Map(apiPods.map((pod) => [keyOf(pod), pod]));
  const shown = new Set<string>();
  for (const pod of staticPods) {
    shown.add(keyOf(pod));
    const known = byName.get(keyOf(pod));
    if (!known) {
      if (isWanted(pod)) plan.create.push(toMirrorPod(pod, node));
    } else if (!isMirrorPod(known)) plan.taken.push(pod);
    else if (isTerminating(known) || known.metadata.annotations?.[MIRROR_ANNOTATION] !== hashOf(pod)) {
      plan.remove.push(known);
    }
  }
  if (isComplete) {
    for (const pod of apiPods) if (isMirrorPod(pod) && !shown.has(keyOf(pod))) plan.remove.push(pod);
  }
  return plan;
}

function toMirrorPod(pod: Pod, node: { name: string; uid: string }): object {
  const { name, namespace, labels, annotations } = pod.metadata;
  const owner: OwnerReference = { apiVersion: "v1", kind: "Node", name: node.name, uid: node.uid, controller: true };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      ...(labels && { labels }),
      annotations: { ...annotations, [MIRROR_ANNOTATION]: hashOf(pod) },
      ownerReferences: [owner],
    },
    spec: { ...pod.spec, nodeName: node.name },
  };
}
