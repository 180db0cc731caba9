import { SOURCE_ID } from "../../apiserver/storage/submitted-set.ts";
import type { ManifestLocation } from "../../base/model/manifest-origin.ts";
import type { Rejection } from "../../page/wire.ts";
import type { SourceStatus } from "../../sources/source-set.ts";
import { BAD_TEXT } from "../../sources/url-source.ts";

/** Where a pod or a workload is written down, for the page: `file:line`, URL, `submitted`. Pure. */
export function describeSource(
  { origin, sourceId }: { origin: string; sourceId?: string },
  location: ManifestLocation | undefined,
): string {
  if (sourceId === SOURCE_ID) return "submitted";
  const { file = "", line } = location ?? {};
  return file.startsWith("/") && line !== undefined ? `${file}:${line}` : origin;
}

/** Files, directories and URLs that cannot be read now. An API server is shown with the node. Pure. */
export const toUnreadSources = (sources: readonly SourceStatus[]): Rejection[] =>
  sources
    .filter(({ kind, state }) => kind !== "api" && (state === "failing" || state === "restored"))
    // Its findings are shown.
    .filter(({ message }) => message !== BAD_TEXT)
    .map(({ name, message = "it cannot be read", pods }) => ({
      source: name,
      line: 0,
      column: 0,
      message: pods > 0 ? `${message}; its pods keep running` : message,
      isUnread: true,
    }));
