import { useLayoutEffect } from "preact/hooks";
import { COLUMNS, type Moment, type PodColumn } from "./pod-columns.tsx";
import type { PodRow } from "./pod-row.ts";
import type { RowFilter } from "./store.ts";

interface PodTableProps {
  rows: readonly PodRow[];
  filter: RowFilter;
  onSort: (column: PodColumn) => void;
  moment: Moment;
}

export function PodTable({ rows, filter, onSort, moment }: PodTableProps) {
  const groups = filter.isGrouped ? groupByNamespace(rows) : [["", rows] as const];
  // A row that takes another place loses the focus.
  const focused = document.activeElement;
  useLayoutEffect(() => {
    const isLost = focused instanceof HTMLElement && focused.isConnected && document.activeElement !== focused;
    if (isLost) focused.focus({ preventScroll: true });
  });
  return (
    <table class="pods" style={WIDTHS}>
      <thead>
        <tr>
          {COLUMNS.map((column) => (
            <th
              key={column.title}
              scope="col"
              class={column.class === "number" ? "number" : undefined}
              aria-sort={column.key === filter.sort ? (filter.descending ? "descending" : "ascending") : undefined}
            >
              {column.compare ? (
                <button type="button" class="sort" onClick={() => onSort(column)}>
                  {column.title}
                </button>
              ) : (
                column.title
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
          {members.map((pod) => (
            <Row key={pod.uid} pod={pod} moment={moment} />
          ))}
        </tbody>
      ))}
    </table>
  );
}

/** Widths of the columns, as the style sheet takes them. A reason is as wide as the columns from the status to the age. */
const WIDTHS = Object.fromEntries(
  ([0, 1] as const).flatMap((screen) => {
    const name = ["desktop", "tablet"][screen];
    const from = COLUMNS.findIndex(({ title }) => title === "Status");
    const to = COLUMNS.findIndex(({ title }) => title === "Age");
    const shares = COLUMNS.map(({ width }) => width[screen]);
    const spanned = shares.slice(from, to + 1).reduce((sum, share) => sum + share, 0);
    return [
      [`--columns-${name}`, shares.map((share) => `minmax(0, ${share}fr)`).join(" ")],
      [`--reason-${name}`, String(spanned / (shares[from] ?? 1))],
    ];
  }),
);

const Row = ({ pod, moment }: { pod: PodRow; moment: Moment }) => (
  <tr>
    {COLUMNS.map(({ title, class: name, hover, cell }, index) =>
      index === 0 ? (
        <th key={title} scope="row" data-title={title} class={name}>
          {cell(pod, moment)}
        </th>
      ) : (
        <td key={title} data-title={title} class={name} title={hover?.(pod)}>
          {cell(pod, moment)}
        </td>
      ),
    )}
  </tr>
);

function groupByNamespace(rows: readonly PodRow[]): [string, PodRow[]][] {
  const groups = Map.groupBy(rows, ({ namespace }) => namespace);
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}
