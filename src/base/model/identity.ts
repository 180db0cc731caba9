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
