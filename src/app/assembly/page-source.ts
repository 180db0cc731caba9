import { SOURCE_ID } from "../../apiserver/storage/submitted-set.ts";
import type { ManifestLocation } from "../../model/manifest-origin.ts";

/** Where a pod or a workload is written down, for the page: `file:line`, URL, `submitted`. Pure. */
export function describeSource(
  { origin, sourceId }: { origin: string; sourceId?: string },
  location: ManifestLocation | undefined,
): string {
  if (sourceId === SOURCE_ID) return "submitted";
  const { file = "", line } = location ?? {};
  return file.startsWith("/") && line !== undefined ? `${file}:${line}` : origin;
}
