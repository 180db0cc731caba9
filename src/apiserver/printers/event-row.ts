import type { CoreEvent } from "../../base/api/event.ts";
import { formatSince, type PrintedColumn } from "./age.ts";

/** Newer clients write the time of the first one, and a series, alone. Source: kubectl's `printEvent`. */
const firstOf = ({ firstTimestamp, eventTime }: CoreEvent) => firstTimestamp ?? eventTime;
const lastOf = (event: CoreEvent) => event.series?.lastObservedTime ?? event.lastTimestamp ?? firstOf(event);

/** Source: kubectl's `printEvent`. */
export const EVENT_COLUMNS: readonly PrintedColumn<CoreEvent>[] = [
  { name: "Last Seen", cell: (event, now) => formatSince(lastOf(event), now) },
  { name: "Type", cell: ({ type }) => type },
  { name: "Reason", cell: ({ reason }) => reason },
  { name: "Object", cell: ({ involvedObject: { kind, name } }) => `${kind.toLowerCase()}/${name}` },
  { name: "Subobject", cell: ({ involvedObject }) => involvedObject.fieldPath ?? "", isWide: true },
  { name: "Source", cell: ({ source }) => [source.component, source.host].join(", "), isWide: true },
  { name: "Message", cell: ({ message }) => message.trim() },
  { name: "First Seen", cell: (event, now) => formatSince(firstOf(event), now), isWide: true },
  { name: "Count", cell: ({ series, count }) => String(series?.count ?? count ?? 1), isWide: true },
  { name: "Name", cell: ({ metadata }) => metadata.name, isWide: true },
];

/** `5m32s`, or `10s (x4 over 3m)` for what happened more than once. Source: kubectl's descriptions. */
export function eventAge({ count, firstTimestamp, lastTimestamp }: CoreEvent, now: Date): string {
  const last = formatSince(lastTimestamp, now);
  return count > 1 ? `${last} (x${count} over ${formatSince(firstTimestamp, now)})` : last;
}
