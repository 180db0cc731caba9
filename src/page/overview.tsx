import type { Ref } from "preact";
import { memo } from "preact/compat";
import { useMemo, useRef, useState } from "preact/hooks";
import { formatAge, formatBytes, formatCores, formatTime } from "./format.ts";
import { NodeTiles } from "./node-tiles.tsx";
import { Badge, SparkLine, statusTone } from "./parts.tsx";
import { podAddress } from "./router.ts";
import { type PageState, type RowFilter, type SortKey, type Spark, selectRows } from "./store.ts";
import { useVisible } from "./use-visible.ts";
import type { PodRow } from "./wire.ts";

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

export function Overview({ state, now }: { state: PageState; now: number }) {
  const [filter, setFilter] = useState<RowFilter>({ text: "", onlyNotReady: false, sort: "name", descending: false });
  const [isGrouped, setGrouped] = useState(false);
  const rows = useMemo(() => selectRows(state, filter), [state, filter]);
  if (state.connection === "connecting" && !state.node) return <p class="empty">Connecting…</p>;
  const sortBy = (key: SortKey) =>
    setFilter({
      ...filter,
      sort: key,
      descending: filter.sort === key ? !filter.descending : key === "cpu" || key === "memory" || key === "restarts",
    });
  const groups = isGrouped ? groupByNamespace(rows) : [["", rows] as const];
  return (
    <>
      <h1 class="hidden">Pods</h1>
      <NodeTiles state={state} now={now} />
      {state.rejections.length > 0 && (
        <section class="card warn" aria-label="Refused manifests">
          <h2>Refused manifests</h2>
          <ul class="plain">
            {state.rejections.map(({ source, line, column, message }) => (
              <li key={`${source}:${line}:${column}:${message}`}>
                <code>{line > 0 ? `${source}:${line}:${column}` : source}</code> {message}
              </li>
            ))}
          </ul>
        </section>
      )}
      <div class="toolbar">
        <input
          type="search"
          placeholder="Filter"
          aria-label="Filter pods"
          value={filter.text}
          onInput={(event) => setFilter({ ...filter, text: event.currentTarget.value })}
        />
        <label>
          <input
            type="checkbox"
            checked={filter.onlyNotReady}
            onChange={(event) => setFilter({ ...filter, onlyNotReady: event.currentTarget.checked })}
          />{" "}
          Not ready
        </label>
        <label>
          <input type="checkbox" checked={isGrouped} onChange={(event) => setGrouped(event.currentTarget.checked)} /> By
          namespace
        </label>
        <span class="count" aria-live="polite">
          {rows.length === state.pods.size ? `${rows.length} pods` : `${rows.length} of ${state.pods.size} pods`}
        </span>
      </div>
      {rows.length === 0 ? (
        <p class="empty">
          {state.pods.size === 0
            ? "No pods run on this node. Put a manifest into its directory, or apply one."
            : "No pod matches the filter."}
        </p>
      ) : (
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
                    <button type="button" class="sort" onClick={() => sortBy(key)}>
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
              {isGrouped && (
                <tr class="group">
                  <th scope="rowgroup" colSpan={COLUMNS.length}>
                    {namespace}
                  </th>
                </tr>
              )}
              {members.map((pod) => (
                <LiveRow key={pod.uid} pod={pod} spark={state.sparks.get(pod.uid)} now={now} />
              ))}
            </tbody>
          ))}
        </table>
      )}
    </>
  );
}

/** Takes new usage and ages only while it is on the screen: a hundred pods then cost no more than ten. */
function LiveRow({ pod, spark, now }: { pod: PodRow; spark: Spark | undefined; now: number }) {
  const { place, isVisible } = useVisible<HTMLTableRowElement>();
  const shown = useRef({ spark, now });
  if (isVisible || !shown.current.spark) shown.current = { spark, now };
  return (
    <Row
      place={place}
      pod={pod}
      spark={shown.current.spark}
      age={formatAge(pod.createdAt, shown.current.now)}
      lastRestart={pod.lastRestart > 0 ? formatAge(pod.lastRestart, shown.current.now) : ""}
    />
  );
}

interface RowProps {
  place: Ref<HTMLTableRowElement>;
  pod: PodRow;
  spark: Spark | undefined;
  /** Texts, so that a row is rendered only when one of them changes. */
  age: string;
  lastRestart: string;
}

const Row = memo(({ place, pod, spark, age, lastRestart }: RowProps) => {
  const cpu = spark?.cpuCores.at(-1);
  const memory = spark?.memoryBytes.at(-1);
  return (
    <tr ref={place}>
      <th scope="row" data-title="Pod">
        <a href={podAddress(pod.uid)}>
          <bdi>{pod.name}</bdi>
        </a>
        <span class="namespace">
          <bdi>{pod.namespace}</bdi>
        </span>
      </th>
      <td data-title="Status">
        <Badge tone={statusTone(pod.status, pod.isReady)}>
          <bdi>{pod.status}</bdi>
        </Badge>
        {pod.why !== "" && (
          <div class="why">
            <bdi>{pod.why}</bdi>
          </div>
        )}
      </td>
      <td data-title="Ready" class="number">
        {pod.ready}/{pod.total}
      </td>
      <td data-title="Restarts" class="number">
        {pod.restarts}
        {lastRestart !== "" && (
          <span class="ago" title={formatTime(pod.lastRestart)}>
            {" "}
            ({lastRestart} ago)
          </span>
        )}
      </td>
      <td data-title="Age" class="number">
        <time title={formatTime(pod.createdAt)}>{age}</time>
      </td>
      <td data-title="CPU">
        <div class="usage">
          <span>{formatCores(cpu)}</span>
          {spark && <SparkLine values={spark.cpuCores} label="CPU of the last ten minutes" />}
        </div>
      </td>
      <td data-title="Memory">
        <div class="usage">
          <span>{formatBytes(memory)}</span>
          {spark && <SparkLine values={spark.memoryBytes} label="Memory of the last ten minutes" />}
        </div>
      </td>
      <td data-title="Source" class="source" title={pod.source}>
        <bdi>{shortSource(pod.source)}</bdi>
      </td>
    </tr>
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
