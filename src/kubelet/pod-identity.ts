import type { Pod } from "../api/pod.ts";
import type { ContainerSnapshot } from "../model/pod-snapshot.ts";

/** What names a pod in events, links and hooks. */
export interface PodIdentity {
  uid: string;
  name: string;
  namespace: string;
}

export const identityOf = ({ metadata }: Pod): PodIdentity => ({
  uid: metadata.uid ?? "",
  name: metadata.name ?? "",
  namespace: metadata.namespace ?? "default",
});

/** Of the pod a container belonged to, when no manifest names it any more. */
export const identityOfLabels = ({ labels }: ContainerSnapshot): PodIdentity => ({
  uid: labels["io.kubernetes.pod.uid"] ?? "",
  name: labels["io.kubernetes.pod.name"] ?? "",
  namespace: labels["io.kubernetes.pod.namespace"] ?? "",
});
