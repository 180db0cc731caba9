import type { VNode } from "preact";
import { useMemo } from "preact/hooks";
import { formatAge, formatBytes, formatCores } from "./format.ts";
import { type Live, useLive } from "./live.ts";
import { Badge, SparkLine, statusTone, timeOf } from "./parts.tsx";
import { podAddress } from "./router.ts";
import type { RowFilter, SortKey, Spark } from "./store.ts";
import { useDeferred } from "./use-deferred.ts";
import { useVisible } from "./use-visible.ts";
import type { PodRow } from "./wire.ts";

/** The part of the state that changes in every update. */
export interface Moment {
  now: number;
  sparks: ReadonlyMap<string, Spark>;
  /** Places of the values of all spark lines: {@link sparkPositions}. */
  positions: readonly number[];
}

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
  live: Live<Moment>;
}

/** Usage and ages are rendered by the rows that are on the screen. */
export function PodTable({ rows, filter, onSort, live }: PodTableProps) {
  const groups = filter.isGrouped ? groupByNamespace(rows) : [["", rows] as const];
  /** A row that is the same object as before is not rendered again. Pods that did not change stay the same objects, too. */
  const rendered = useMemo(() => new WeakMap<PodRow, VNode>(), [live]);
  const renderRow = (pod: PodRow): VNode => {
    const row = rendered.get(pod) ?? <Row key={pod.uid} pod={pod} live={live} />;
    rendered.set(pod, row);
    return row;
  };
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
          {members.map(renderRow)}
        </tbody>
      ))}
    </table>
  );
}

/**
 * A cell is rendered when what it shows changes: one that is the same object as before is skipped. Rows off the screen
 * follow in tasks of their own.
 */
function Row({ pod: newest, live }: { pod: PodRow; live: Live<Moment> }) {
  const { place, isVisible } = useVisible<HTMLTableRowElement>();
  const pod = useDeferred(newest, isVisible);
  const { uid, namespace, name, owner, status, isReady, why, notice, ready, total, restarts, lastRestart } = pod;
  const { createdAt, source } = pod;
  const { now, sparks, positions } = useLive(live, isVisible);
  const nameCell = useMemo(
    () => (
      <th scope="row" data-title="Pod">
        <a href={podAddress({ namespace, name })}>
          <bdi>{name}</bdi>
        </a>
        <span class="namespace">
          <bdi>{namespace}</bdi>
          {owner !== "" && (
            <>
              {", "}
              <bdi>{owner}</bdi>
            </>
          )}
        </span>
      </th>
    ),
    [namespace, name, owner],
  );
  const statusCell = useMemo(
    () => (
      <td data-title="Status">
        <Badge tone={statusTone(status, isReady)}>
          <bdi>{status}</bdi>
        </Badge>
        {why !== "" && <Reason text={why} />}
        {notice !== "" && <Reason text={notice} />}
      </td>
    ),
    [status, isReady, why, notice],
  );
  const readyCell = useMemo(
    () => (
      <td data-title="Ready" class="number">
        {`${ready}/${total}`}
      </td>
    ),
    [ready, total],
  );
  const lastRestartAge = formatAge(lastRestart, now);
  const restartCell = useMemo(
    () => (
      <td data-title="Restarts" class="number">
        {restarts}
        {lastRestart > 0 && <span class="ago"> ({timeOf(lastRestart, lastRestartAge)} ago)</span>}
      </td>
    ),
    [restarts, lastRestart, lastRestartAge],
  );
  const age = formatAge(createdAt, now);
  const ageCell = useMemo(
    () => (
      <td data-title="Age" class="number">
        {timeOf(createdAt, age)}
      </td>
    ),
    [createdAt, age],
  );
  const spark = sparks.get(uid);
  const usageCells = useMemo(
    () => (
      <>
        <td data-title="CPU cores">
          <div class="usage">
            <span class="value">{formatCores(spark?.cpuCores.at(-1))}</span>
            {spark && isVisible && <SparkLine values={spark.cpuCores} positions={positions} label={CPU_LABEL} />}
          </div>
        </td>
        <td data-title="Memory">
          <div class="usage">
            <span class="value">{formatBytes(spark?.memoryBytes.at(-1))}</span>
            {spark && isVisible && <SparkLine values={spark.memoryBytes} positions={positions} label={MEMORY_LABEL} />}
          </div>
        </td>
      </>
    ),
    [spark, isVisible],
  );
  const sourceCell = useMemo(
    () => (
      <td data-title="Source" class="source" title={source}>
        <bdi>{shortSource(source)}</bdi>
      </td>
    ),
    [source],
  );
  return (
    <tr ref={place}>
      {nameCell}
      {statusCell}
      {readyCell}
      {restartCell}
      {ageCell}
      {usageCells}
      {sourceCell}
    </tr>
  );
}

const CPU_LABEL = "CPU of the last ten minutes";
const MEMORY_LABEL = "Memory of the last ten minutes";

const Reason = ({ text }: { text: string }) => (
  <div class="why" title={text}>
    <bdi>{text}</bdi>
  </div>
);

/** The file name with its line; the directory is on hover and in the view of the pod. */
const shortSource = (source: string): string =>
  source.startsWith("/") ? (source.split("/").at(-1) ?? source) : source;

function groupByNamespace(rows: readonly PodRow[]): [string, PodRow[]][] {
  const groups = new Map<string, PodRow[]>();
  for (const row of rows) groups.set(row.namespace, [...(groups.get(row.namespace) ?? []), row]);
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}
