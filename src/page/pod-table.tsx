import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useReducer } from "preact/hooks";
import { formatAge, formatBytes, formatCores } from "./format.ts";
import { type Live, useLive } from "./live.ts";
import { plainText } from "./log-text.ts";
import { Badge, SparkLine, statusTone, timeOf } from "./parts.tsx";
import { podAddress } from "./router.ts";
import type { RowFilter, SortKey, Spark } from "./store.ts";
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

/** Rows in the document, by UID. */
interface RenderedRows {
  shown: Map<string, { pod: PodRow; row: VNode }>;
  visible: Set<string>;
  /** To be rendered in this task. */
  due: Set<string>;
}

interface PodTableProps {
  rows: readonly PodRow[];
  filter: RowFilter;
  onSort: (key: SortKey) => void;
  live: Live<Moment>;
}

/** Rows off the screen that are rendered in one task: far less than the time of a frame. */
const ROWS_PER_TASK = 50;

/**
 * Usage and ages are rendered by the rows that are on the screen. When pods change, those rows are rendered at once and the
 * others in tasks of their own, a few milliseconds later: a change of all pods must not block the page.
 */
export function PodTable({ rows, filter, onSort, live }: PodTableProps) {
  const groups = filter.isGrouped ? groupByNamespace(rows) : [["", rows] as const];
  const [, renderAgain] = useReducer((count: number) => count + 1, 0);
  const { shown, visible, due } = useMemo<RenderedRows>(
    () => ({ shown: new Map(), visible: new Set(), due: new Set() }),
    [live],
  );
  const waiting: string[] = [];
  /** A row that is the same object as before is not rendered again. Pods that did not change stay the same objects, too. */
  const renderRow = (pod: PodRow): VNode => {
    const before = shown.get(pod.uid);
    if (before?.pod === pod) return before.row;
    if (before && !visible.has(pod.uid) && !due.has(pod.uid)) {
      waiting.push(pod.uid);
      return before.row;
    }
    const row = <Row key={pod.uid} pod={pod} live={live} visible={visible} />;
    shown.set(pod.uid, { pod, row });
    return row;
  };
  const bodies = groups.map(([namespace, members]) => ({
    namespace,
    count: members.length,
    body: members.map(renderRow),
  }));
  due.clear();
  // A row that takes another place loses the focus.
  const focused = document.activeElement;
  useLayoutEffect(() => {
    const isLost = focused instanceof HTMLElement && focused.isConnected && document.activeElement !== focused;
    if (isLost) focused.focus({ preventScroll: true });
  });
  useEffect(() => {
    if (shown.size > rows.length) {
      const present = new Set(rows.map(({ uid }) => uid));
      for (const uid of shown.keys()) if (!present.has(uid)) shown.delete(uid);
    }
    if (waiting.length === 0) return;
    const task = setTimeout(() => {
      for (const uid of waiting.slice(0, ROWS_PER_TASK)) due.add(uid);
      renderAgain(undefined as never);
    });
    return () => clearTimeout(task);
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
      {bodies.map(({ namespace, count, body }) => (
        <tbody key={namespace}>
          {filter.isGrouped && (
            <tr class="group">
              <th scope="rowgroup" colSpan={COLUMNS.length}>
                <bdi>{namespace}</bdi> <span class="count">{count}</span>
              </th>
            </tr>
          )}
          {body}
        </tbody>
      ))}
    </table>
  );
}

/** A cell is rendered when what it shows changes: one that is the same object as before is skipped. */
function Row({ pod, live, visible }: { pod: PodRow; live: Live<Moment>; visible: Set<string> }) {
  const { uid, namespace, name, owner, status, isReady, why, notice, ready, total, restarts, lastRestart } = pod;
  const { createdAt, source } = pod;
  const { place, isVisible } = useVisible<HTMLTableRowElement>();
  useEffect(() => {
    if (!isVisible) return;
    visible.add(uid);
    return () => void visible.delete(uid);
  }, [isVisible, uid]);
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
        <bdi>{plainText(shortSource(source))}</bdi>
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

const Reason = ({ text }: { text: string }) => {
  const shown = plainText(text);
  return (
    <div class="why" title={shown}>
      <bdi>{shown}</bdi>
    </div>
  );
};

/** The file name with its line; the directory is on hover and in the view of the pod. */
const shortSource = (source: string): string =>
  source.startsWith("/") ? (source.split("/").at(-1) ?? source) : source;

function groupByNamespace(rows: readonly PodRow[]): [string, PodRow[]][] {
  const groups = new Map<string, PodRow[]>();
  for (const row of rows) groups.set(row.namespace, [...(groups.get(row.namespace) ?? []), row]);
  return [...groups].sort(([a], [b]) => (a < b ? -1 : 1));
}
