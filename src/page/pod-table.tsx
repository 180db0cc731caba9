import type { ComponentChildren } from "preact";
import { useLayoutEffect } from "preact/hooks";
import { formatAge, formatBytes, formatCores, shortSource } from "./format.ts";
import { plainText } from "./log-text.ts";
import { Age, Badge, Plain, PodLink, statusTone, timeOf } from "./parts.tsx";
import type { PodRow } from "./pod-row.ts";
import { comparePodNames, compareText, type RowFilter } from "./store.ts";
import type { Spark } from "./wire.ts";

/** The part of the state that changes in every update. */
interface Moment {
  now: number;
  sparks: ReadonlyMap<string, Spark>;
  /** Places of the values of all spark lines on their width. */
  positions: readonly number[];
}

export interface PodColumn {
  title: string;
  /** Share of the width, on a desktop and on a tablet. */
  width: readonly [desktop: number, tablet: number];
  cell: (pod: PodRow, moment: Moment) => ComponentChildren;
  class?: string;
  hover?: (pod: PodRow) => string;
  /** Order of the rows by this column; absent: there is none. */
  compare?: (a: PodRow, b: PodRow, sparks: Moment["sparks"]) => number;
  /** Name of that order in addresses. */
  key?: string;
  /** The largest value comes first. */
  isDescending?: boolean;
}

const last = (sparks: Moment["sparks"], { uid }: PodRow, series: keyof Spark) => sparks.get(uid)?.[series].at(-1) ?? -1;

/** Columns of the overview in their order. Adding one is adding it here. */
export const COLUMNS: readonly PodColumn[] = [
  {
    title: "Pod",
    width: [20, 16],
    key: "name",
    compare: comparePodNames,
    cell: (pod) => (
      <>
        <PodLink pod={pod} />
        <span class="namespace">
          <bdi>{pod.namespace}</bdi>
          {pod.owner !== "" && (
            <span class="owner">
              , <bdi>{pod.owner}</bdi>
            </span>
          )}
        </span>
      </>
    ),
  },
  {
    title: "Status",
    width: [23, 18],
    key: "status",
    compare: (a, b) => compareText(a.status, b.status),
    cell: (pod) => (
      <>
        <Badge tone={statusTone(pod.status, pod.isReady)}>
          <bdi>{pod.status}</bdi>
        </Badge>
        {pod.why !== "" && <Reason text={pod.why} />}
        {pod.notice !== "" && <Reason text={pod.notice} />}
      </>
    ),
  },
  { title: "Ready", width: [5, 7], class: "number", cell: ({ ready, total }) => `${ready}/${total}` },
  {
    title: "Restarts",
    width: [9, 13],
    class: "number",
    key: "restarts",
    compare: (a, b) => a.restarts - b.restarts,
    isDescending: true,
    cell: ({ restarts, lastRestart }, { now }) =>
      lastRestart === 0 ? (
        restarts
      ) : (
        <>
          {restarts} ({timeOf(lastRestart, formatAge(lastRestart, now))} ago)
        </>
      ),
  },
  {
    title: "Age",
    width: [5, 6],
    class: "number",
    key: "age",
    compare: (a, b) => b.createdAt - a.createdAt,
    cell: ({ createdAt }, { now }) => <Age at={createdAt} now={now} />,
  },
  usageColumn("CPU cores", [12, 9], "cpu", "cpuCores", formatCores, "CPU"),
  usageColumn("Memory", [12, 10], "memory", "memoryBytes", formatBytes),
  {
    title: "Source",
    width: [14, 11],
    class: "source",
    hover: ({ source }) => source,
    cell: ({ source }) => <Plain text={shortSource(source)} />,
  },
];

/** The style shows its first lines; the whole text is on hover. */
function Reason({ text }: { text: string }) {
  const plain = plainText(text);
  return (
    <div class="why" title={plain}>
      <bdi>{plain}</bdi>
    </div>
  );
}

/** The newest value and the line of the last ten minutes. */
function usageColumn(
  title: string,
  width: PodColumn["width"],
  key: string,
  series: keyof Spark,
  format: (value: number | null | undefined) => string,
  label = title,
): PodColumn {
  return {
    title,
    width,
    key,
    compare: (a, b, sparks) => last(sparks, a, series) - last(sparks, b, series),
    isDescending: true,
    cell: ({ uid }, { sparks, positions }) => {
      const values = sparks.get(uid)?.[series] ?? [];
      return (
        <div class="usage">
          <span class="value">{format(values.at(-1))}</span>
          <svg
            class="spark"
            viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`}
            role="img"
            aria-label={`${label} of the last ten minutes`}
            preserveAspectRatio="none"
          >
            <path d={sparkPath(values, positions)} />
          </svg>
        </div>
      );
    },
  };
}

/** Size of the drawing. Tenths of a pixel: whole numbers are quick to write. */
const SPARK_WIDTH = 800;
const SPARK_HEIGHT = 200;
const SPARK_MARGIN = 10;

/** Where the times of a spark line are on its width: it ends at the newest. Pure. @param spanMs time of the whole width */
export function sparkPositions(times: readonly number[], spanMs: number): number[] {
  const end = times.at(-1) ?? 0;
  return times.map((time) => Math.round((1 - (end - time) / spanMs) * SPARK_WIDTH));
}

/** The path of a line from zero to its largest value, with gaps where there is none. Pure. @param positions of {@link sparkPositions} */
export function sparkPath(values: readonly (number | null)[], positions: readonly number[]): string {
  let max = 0;
  for (const value of values) if (value !== null && value > max) max = value;
  const scale = max === 0 ? 0 : (SPARK_HEIGHT - 2 * SPARK_MARGIN) / max;
  let path = "";
  let isDown = false;
  values.forEach((value, index) => {
    if (value !== null) {
      path += `${isDown ? "L" : "M"}${positions[index]} ${Math.round(SPARK_HEIGHT - SPARK_MARGIN - value * scale)}`;
    }
    isDown = value !== null;
  });
  return path;
}

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
  return [...Map.groupBy(rows, ({ namespace }) => namespace)].sort(([a], [b]) => (a < b ? -1 : 1));
}
