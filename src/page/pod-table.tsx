import { memo } from "preact/compat";
import { formatAge, formatBytes, formatCores, formatTime } from "./format.ts";
import { type Live, useLive } from "./live.ts";
import { Badge, SparkLine, statusTone } from "./parts.tsx";
import { podAddress } from "./router.ts";
import type { RowFilter, SortKey, Spark } from "./store.ts";
import { useVisible } from "./use-visible.ts";
import type { PodRow } from "./wire.ts";

/** The part of the state that changes in every update. */
export interface Moment {
  now: number;
  sparks: ReadonlyMap<string, Spark>;
}

const COLUMNS: readonly { key: SortKey | undefined; title: string; numeric?: boolean }[] = [
  { key: "name", title: "Pod" },
  { key: "status", title: "Status" },
  { key: undefined, title: "Ready", numeric: true },
  { key: "restarts", title: "Restarts", numeric: true },
  { key: "age", title: "Age", numeric: true },
  { key: "cpu", title: "CPU" },
  { key: "memory", title: "Memory" },
  { key: undefined, title: "Source" },
];

interface PodTableProps {
  rows: readonly PodRow[];
  filter: RowFilter;
  onSort: (key: SortKey) => void;
  live: Live<Moment>;
}

/** Rendered when pods change. Usage and ages are rendered by the cells that are on the screen. */
export const PodTable = memo(({ rows, filter, onSort, live }: PodTableProps) => {
  const groups = filter.isGrouped ? groupByNamespace(rows) : [["", rows] as const];
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
          {members.map((pod) => (
            <Row key={pod.uid} pod={pod} live={live} />
          ))}
        </tbody>
      ))}
    </table>
  );
});

const Row = memo(({ pod, live }: { pod: PodRow; live: Live<Moment> }) => {
  const { place, isVisible } = useVisible<HTMLTableRowElement>();
  return (
    <tr ref={place}>
      <th scope="row" data-title="Pod">
        <a href={podAddress(pod)}>
          <bdi>{pod.name}</bdi>
        </a>
        <span class="namespace">
          <bdi>{pod.namespace}</bdi>
          {pod.owner !== "" && (
            <>
              {", "}
              <bdi>{pod.owner}</bdi>
            </>
          )}
        </span>
      </th>
      <td data-title="Status">
        <Badge tone={statusTone(pod.status, pod.isReady)}>
          <bdi>{pod.status}</bdi>
        </Badge>
        {[pod.why, pod.notice].map(
          (text, index) =>
            text !== "" && (
              <div key={index} class="why" title={text}>
                <bdi>{text}</bdi>
              </div>
            ),
        )}
      </td>
      <td data-title="Ready" class="number">
        {pod.ready}/{pod.total}
      </td>
      <td data-title="Restarts" class="number">
        {pod.restarts}
        {pod.lastRestart > 0 && (
          <span class="ago">
            {" ("}
            <Since at={pod.lastRestart} live={live} isVisible={isVisible} /> ago)
          </span>
        )}
      </td>
      <td data-title="Age" class="number">
        <Since at={pod.createdAt} live={live} isVisible={isVisible} />
      </td>
      <td data-title="CPU">
        <Usage uid={pod.uid} series="cpuCores" live={live} isVisible={isVisible} />
      </td>
      <td data-title="Memory">
        <Usage uid={pod.uid} series="memoryBytes" live={live} isVisible={isVisible} />
      </td>
      <td data-title="Source" class="source" title={pod.source}>
        <bdi>{shortSource(pod.source)}</bdi>
      </td>
    </tr>
  );
});

interface CellProps {
  live: Live<Moment>;
  isVisible: boolean;
}

function Since({ at, live, isVisible }: CellProps & { at: number }) {
  const age = useLive(live, isVisible, ({ now }) => formatAge(at, now));
  return (
    <time dateTime={at > 0 ? new Date(at).toISOString() : undefined} title={formatTime(at)}>
      {age}
    </time>
  );
}

const FORMATS = { cpuCores: formatCores, memoryBytes: formatBytes } as const;
const LABELS = { cpuCores: "CPU of the last ten minutes", memoryBytes: "Memory of the last ten minutes" } as const;

const Usage = memo(({ uid, series, live, isVisible }: CellProps & { uid: string; series: keyof Spark }) => {
  const values = useLive(live, isVisible, ({ sparks }) => sparks.get(uid)?.[series]);
  return (
    <div class="usage">
      <span class="value">{FORMATS[series](values?.at(-1))}</span>
      {values && isVisible && <SparkLine values={values} label={LABELS[series]} />}
    </div>
  );
});

/** The file name with its line; the directory is on hover and in the view of the pod. */
const shortSource = (source: string): string =>
  source.startsWith("/") ? (source.split("/").at(-1) ?? source) : source;

function groupByNamespace(rows: readonly PodRow[]): [string, PodRow[]][] {
  const groups = new Map<string, PodRow[]>();
  for (const row of rows) groups.set(row.namespace, [...(groups.get(row.namespace) ?? []), row]);
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}
