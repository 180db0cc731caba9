import type { Pod } from "../api/pod.ts";
import type { PodUID } from "./identity.ts";
import type { ContainerSnapshot } from "./pod-snapshot.ts";

/** Names one pod: in events, labels, links and hooks. */
export interface PodRef {
  uid: PodUID;
  /** With the node suffix. */
  name: string;
  namespace: string;
}

/** Name of a pod without the suffix that a manifest's pod has from its node. */
export function nameWithoutNode({ metadata: { name = "" }, spec: { nodeName } }: Pod): string {
  const suffix = `-${nodeName}`;
  return name.endsWith(suffix) ? name.slice(0, -suffix.length) : name;
}

export const podRefOf = ({ metadata }: Pod): PodRef => ({
  uid: metadata.uid ?? "",
  name: metadata.name ?? "",
  namespace: metadata.namespace ?? "default",
});

/** The pod a container belongs to, by its labels; for a container without a manifest. */
export const podRefOfLabels = ({ labels }: ContainerSnapshot): PodRef => ({
  uid: labels["io.kubernetes.pod.uid"] ?? "",
  name: labels["io.kubernetes.pod.name"] ?? "",
  namespace: labels["io.kubernetes.pod.namespace"] ?? "",
});
