import type { Pod } from "../api/pod.ts";

/** Pod UID: 32 hex digits unless the manifest fixes `metadata.uid`. Names the pod for its whole life. */
export type PodUID = string;

/** `namespace/name`, the name with its node suffix. */
export type PodFullName = `${string}/${string}`;

export function podFullName(meta: { namespace?: string | undefined; name?: string | undefined }): PodFullName {
  return `${meta.namespace ?? "default"}/${meta.name ?? ""}`;
}

export const namespaceOf = ({ metadata }: { metadata: { namespace?: string | undefined } }): string =>
  metadata.namespace ?? "default";

/** Order by namespace, then name. As one text `a/z` would come after `a-b/c`. */
export function compareFullNames(a: string, b: string): number {
  const [namespaceA = "", nameA = ""] = a.split("/");
  const [namespaceB = "", nameB = ""] = b.split("/");
  if (namespaceA !== namespaceB) return namespaceA < namespaceB ? -1 : 1;
  return nameA < nameB ? -1 : nameA > nameB ? 1 : 0;
}

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

/** The workload that a pod is one of, as the pod refers to it. */
export const controllerOf = (pod: Pod | undefined) =>
  pod?.metadata.ownerReferences?.find(({ controller }) => controller);

export const podRefOf = ({ metadata }: Pod): PodRef => ({
  uid: metadata.uid ?? "",
  name: metadata.name ?? "",
  namespace: metadata.namespace ?? "default",
});

/** The pod a container belongs to, by its labels; for a container without a manifest. */
export const podRefOfLabels = ({ labels }: { labels: Readonly<Record<string, string>> }): PodRef => ({
  uid: labels["io.kubernetes.pod.uid"] ?? "",
  name: labels["io.kubernetes.pod.name"] ?? "",
  namespace: labels["io.kubernetes.pod.namespace"] ?? "",
});
