import type { CoreEvent } from "../../base/api/event.ts";
import { formatSince } from "./age.ts";

export const EVENT_COLUMNS = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"] as const;
export const EVENT_WIDE_COLUMNS = [
  "LAST SEEN",
  "TYPE",
  "REASON",
  "OBJECT",
  "SUBOBJECT",
  "SOURCE",
  "MESSAGE",
  "FIRST SEEN",
  "COUNT",
  "NAME",
] as const;

/** The cells below {@link EVENT_COLUMNS}, or below {@link EVENT_WIDE_COLUMNS}. Source: kubectl's `printEvent`. */
export function toEventRow(event: CoreEvent, now: Date, wide: boolean): string[] {
  const { involvedObject, type, reason, source } = event;
  const message = event.message.trim();
  const object = `${involvedObject.kind.toLowerCase()}/${involvedObject.name}`;
  const last = formatSince(event.lastTimestamp, now);
  if (!wide) return [last, type, reason, object, message];
  return [
    last,
    type,
    reason,
    object,
    involvedObject.fieldPath ?? "",
    [source.component, source.host].join(", "),
    message,
    formatSince(event.firstTimestamp, now),
    String(event.count),
    event.metadata.name,
  ];
}

/** `5m32s`, or `10s (x4 over 3m)` for what happened more than once. Source: kubectl's descriptions. */
export function eventAge({ count, firstTimestamp, lastTimestamp }: CoreEvent, now: Date): string {
  const last = formatSince(lastTimestamp, now);
  return count > 1 ? `${last} (x${count} over ${formatSince(firstTimestamp, now)})` : last;
}
