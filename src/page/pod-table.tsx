import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Moment, openPodRow, type PodRowView } from "./pod-row.tsx";
import type { RowFilter, SortKey } from "./store.ts";
import type { PodRow } from "./wire.ts";

/** Columns in their order; those with a key can be sorted by. */
export const COLUMNS: readonly { key: SortKey | undefined; title: string; numeric?: boolean }[] = [
  { key: "name", title: "Pod" },
  { key: "status", title: "Status" },
  { key: undefined, title: "Ready", numeric: true },
  { key: "restarts", title: "Restarts", numeric: true },
  { key: "age", title: "Age", numeric: true },
  { key: "cpu", title: "CPU cores" },
  { key: "memory", title: "Memory" },
  { key: undefined, title: "Source" },
];

interface PodTableProps {
  rows: readonly PodRow[];
  filter: RowFilter;
  onSort: (key: SortKey) => void;
  moment: Moment;
}

/** The header, and the rows in their order and groups; {@link openPodRow} writes what the rows show. */
export function PodTable({ rows, filter, onSort, moment }: PodTableProps) {
  const groups = filter.isGrouped ? groupByNamespace(rows) : [["", rows] as const];
  // A row that takes another place loses the focus.
  const focused = document.activeElement;
  useLayoutEffect(() => {
    const isLost = focused instanceof HTMLElement && focused.isConnected && document.activeElement !== focused;
    if (isLost) focused.focus({ preventScroll: true });
  });
  /** Keys: UIDs. */
  const [views] = useState(() => new Map<string, PodRowView>());
  useLayoutEffect(() => {
    for (const pod of rows) views.get(pod.uid)?.show(pod, moment);
  });
  return (
    <table class="pods">
      <thead>
        <tr>
          {COLUMNS.map(({ key, title, numeric }) => (
            <th
              key={title}
              scope="col"
              class={numeric ? "number" : undefined}
              aria-sort={key === filter.sort ? (filter.descending ? "descending" : "ascending") : undefined}
            >
              {key ? (
                <button type="button" class="sort" onClick={() => onSort(key)}>
                  {title}
                </button>
              ) : (
                title
              )}
            </th>
          ))}
        </tr>
      </thead>
      {groups.map(([namespace, members]) => (
        <tbody key={namespace}>
          {filter.isGrouped && (
            <tr class="group">
              <th scope="rowgroup" colSpan={COLUMNS.length}>
                <bdi>{namespace}</bdi> <span class="count">{members.length}</span>
              </th>
            </tr>
          )}
          {members.map(({ uid }) => (
            <Row key={uid} uid={uid} views={views} />
          ))}
        </tbody>
      ))}
    </table>
  );
}

function Row({ uid, views }: { uid: string; views: Map<string, PodRowView> }) {
  const place = useRef<HTMLTableRowElement>(null);
  useLayoutEffect(() => {
    if (!place.current) return;
    const view = openPodRow(place.current);
    views.set(uid, view);
    return () => {
      view.end();
      views.delete(uid);
    };
  }, []);
  return <tr ref={place} />;
}

function groupByNamespace(rows: readonly PodRow[]): [string, PodRow[]][] {
  const groups = new Map<string, PodRow[]>();
  for (const row of rows) groups.set(row.namespace, [...(groups.get(row.namespace) ?? []), row]);
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}
