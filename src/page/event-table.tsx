import { Age, Plain, TableHead } from "./parts.tsx";
import { useRows } from "./use-rows.tsx";
import type { EventRow } from "./wire.ts";

/** Newest first. */
export function EventTable({
  events,
  now,
  withObject,
}: {
  events: readonly EventRow[];
  now: number;
  withObject?: boolean;
}) {
  const { shown, button } = useRows(events.toSorted((a, b) => b.lastTime - a.lastTime));
  if (events.length === 0) return <p class="empty">No events.</p>;
  return (
    <>
      <table class="stacked">
        <TableHead columns={["Last seen", "Type", "Reason", ...(withObject ? ["Object"] : []), "Message"]} />
        <tbody>
          {shown.map((event) => (
            <tr
              key={`${event.object} ${event.reason} ${event.firstTime} ${event.message}`}
              class={event.type === "Warning" ? "warning" : undefined}
            >
              <td>
                <Age at={event.lastTime} now={now} />
                {event.count > 1 && (
                  <span class="ago">
                    {" "}
                    ×{event.count} in <Age at={event.firstTime} now={now} />
                  </span>
                )}
              </td>
              <td class="fixed">{event.type}</td>
              <td class="fixed">
                <bdi>{event.reason}</bdi>
              </td>
              {withObject && (
                <td class="object">
                  <bdi>{event.object}</bdi>
                </td>
              )}
              <td class="message">
                <Plain text={event.message} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {button}
    </>
  );
}
