/** Pod UID: 32 hex digits unless the manifest fixes `metadata.uid`. Names the pod for its whole life. */
export type PodUID = string;

/** `namespace/name`, the name with its node suffix. */
export type PodFullName = `${string}/${string}`;

export function podFullName(meta: { namespace?: string | undefined; name?: string | undefined }): PodFullName {
  return `${meta.namespace ?? "default"}/${meta.name ?? ""}`;
}
