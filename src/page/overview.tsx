import { useEffect, useMemo, useState } from "preact/hooks";
import { formatUntil, shortSource } from "./format.ts";
import { NodeTiles } from "./node-tiles.tsx";
import { Age, Badge, Explanations, Plain, PodLink, Table, Toggle, type Tone, timeOf, useRows } from "./parts.tsx";
import type { PodRow } from "./pod-row.ts";
import { COLUMNS, type PodColumn, PodTable, sparkPositions } from "./pod-table.tsx";
import { overviewAddress, podAddress } from "./router.ts";
import {
  DEFAULT_FILTER,
  mayMissPods,
  type PageState,
  podWithCause,
  type RowFilter,
  SPARK_MS,
  selectRows,
} from "./store.ts";
import type { Rejection, ServiceRow, WorkloadRow } from "./wire.ts";

/** @param first filter of the address; the address follows it */
export function Overview({ state, now, first }: { state: PageState; now: number; first: RowFilter }) {
  const [filter, setFilter] = useState<RowFilter>(first);
  useEffect(() => history.replaceState(history.state, "", overviewAddress(filter)), [filter]);
  const change = (changed: Partial<RowFilter>) => setFilter((old) => ({ ...old, ...changed }));
  const onSort = ({ key = "", isDescending = false }: Pick<PodColumn, "key" | "isDescending">) =>
    setFilter((old) => ({ ...old, sort: key, descending: old.sort === key ? !old.descending : isDescending }));
  const compare = COLUMNS.find(({ key }) => key === filter.sort)?.compare;
  const isByUsage = compare !== undefined && compare.length > 2;
  const rows = useMemo(
    () => selectRows(state.pods, filter, compare && ((a, b) => compare(a, b, state.sparks))),
    [state.pods, isByUsage && state.sparks, filter],
  );
  const moment = useMemo(
    () => ({ now, sparks: state.sparks, positions: sparkPositions(state.times, SPARK_MS) }),
    [now, state.sparks, state.times],
  );
  if (state.connection === "connecting" && !state.node) return <p class="empty">Connecting…</p>;
  return (
    <>
      <h1 class="hidden">Pods</h1>
      <NodeTiles state={state} now={now} />
      <Rejections
        title="Sources that cannot be read"
        rejections={state.rejections.filter(({ isUnread }) => isUnread)}
      />
      <Rejections title="Refused manifests" rejections={state.rejections.filter(({ isUnread }) => !isUnread)} />
      <div class="toolbar">
        <input
          type="search"
          placeholder="Filter"
          aria-label="Filter pods"
          value={filter.text}
          onInput={(event) => change({ text: event.currentTarget.value })}
        />
        <Toggle text="Not ready" value={filter.onlyNotReady} onChange={(onlyNotReady) => change({ onlyNotReady })} />
        <Toggle text="Group by namespace" value={filter.isGrouped} onChange={(isGrouped) => change({ isGrouped })} />
        {/* Where the screen is too narrow for the columns' titles. */}
        <select
          class="narrow"
          aria-label="Sort"
          value={filter.sort}
          onChange={({ currentTarget: { value } }) => onSort(COLUMNS.find(({ key }) => key === value) ?? {})}
        >
          {COLUMNS.map(
            ({ key, title }) =>
              key && (
                <option key={key} value={key}>
                  {`Sort by ${title.toLowerCase().replace("cpu", "CPU")}`}
                </option>
              ),
          )}
        </select>
        <span class="count" aria-live="polite">
          {countText(rows.length, state.pods.size)}
        </span>
      </div>
      {rows.length === 0 ? (
        <p class="empty">{emptyText(state)}</p>
      ) : (
        <PodTable rows={rows} filter={filter} onSort={onSort} moment={moment} />
      )}
      {state.workloads.length > 0 && <WorkloadTable workloads={state.workloads} pods={state.pods} now={now} />}
      {state.services.length > 0 && <ServiceTable services={state.services} />}
    </>
  );
}

function emptyText(state: PageState): string {
  const { pods, node, canAct } = state;
  if (pods.size > 0) return "No pod matches the filter.";
  if (mayMissPods(state)) return "Not every source of pods has been read yet.";
  if (node?.cluster) return "No pods run on this node.";
  const apply = canAct ? ", or apply one" : "";
  return `No pods run on this node. Put a manifest into its manifest directory${apply}.`;
}

const plural = (count: number) => (count === 1 ? "pod" : "pods");

const countText = (shown: number, all: number): string =>
  shown === all ? `${all} ${plural(all)}` : `${shown} of ${all} ${plural(all)}`;

function Rejections({ title, rejections }: { title: string; rejections: readonly Rejection[] }) {
  const { shown, button } = useRows(rejections);
  if (rejections.length === 0) return null;
  return (
    <section class="card warn" aria-label={title}>
      <h2>{title}</h2>
      <ul class="plain">
        {shown.map(({ source, line, column, message }) => (
          <li key={`${source}:${line}:${column}:${message}`}>
            <code>
              <Plain text={line > 0 ? `${source}:${line}:${column}` : source} />
            </code>{" "}
            <Plain text={message} />
          </li>
        ))}
      </ul>
      {button}
    </section>
  );
}

/** A filter that finds the pods of a workload by their owner; those of a CronJob are owned by its Jobs. */
const ownerText = (kind: string, name: string): string => (kind === "CronJob" ? `Job ${name}-` : `${kind} ${name}`);

/** @param good tone of a status that is as it should be */
const Status = ({
  status,
  isGood,
  explanation,
  good,
}: Pick<WorkloadRow, "status" | "isGood" | "explanation"> & { good: Tone }) => (
  <>
    <Badge tone={isGood ? good : "warn"}>{status}</Badge>
    {explanation.length > 0 && (
      <div class="why">
        <Explanations all={explanation} />
      </div>
    )}
  </>
);

/** Deployments, Jobs and the like: those without pods are seen nowhere else. */
const WorkloadTable = ({ workloads, pods, now }: Pick<PageState, "workloads" | "pods"> & { now: number }) => (
  <section class="card workloads">
    <h2>Workloads</h2>
    <Table
      class="stacked"
      rows={workloads}
      keyOf={({ kind, namespace, name }) => `${kind} ${namespace}/${name}`}
      columns={[
        {
          title: "Workload",
          isHeading: true,
          cell: ({ kind, namespace, name }) => (
            <>
              <a href={overviewAddress({ ...DEFAULT_FILTER, text: ownerText(kind, name) })}>
                <bdi>{name}</bdi>
              </a>
              <span class="namespace">
                <bdi>{namespace}</bdi>, {kind}
              </span>
            </>
          ),
        },
        {
          title: "Status",
          cell: (row) => (
            <>
              <Status {...row} good={row.kind === "CronJob" || row.kind === "Job" ? "idle" : "good"} />
              <PodCause pod={podWithCause(pods, row)} />
            </>
          ),
        },
        {
          title: "Runs",
          cell: ({ lastRun, nextRun }) => (
            <>
              {lastRun > 0 && (
                <div>
                  last <Age at={lastRun} now={now} /> ago
                </div>
              )}
              {nextRun > 0 && <div>next {timeOf(nextRun, formatUntil(nextRun, now))}</div>}
              {lastRun === 0 && nextRun === 0 && "-"}
            </>
          ),
        },
        {
          title: "Source",
          class: "source",
          hover: ({ source }) => source,
          cell: ({ source }) => <Plain text={shortSource(source)} />,
        },
      ]}
    />
  </section>
);

const PodCause = ({ pod }: { pod: PodRow | undefined }) =>
  pod && (
    <div class="why">
      <PodLink pod={pod} />: <Plain text={pod.why} />
    </div>
  );

/** Links to pods in a cell. */
const MAX_LINKS = 5;

const ServiceTable = ({ services }: { services: readonly ServiceRow[] }) => (
  <section class="card workloads">
    <h2>Services and Ingresses</h2>
    <Table
      class="stacked"
      rows={services}
      keyOf={({ type, namespace, name }) => `${type} ${namespace}/${name}`}
      columns={[
        {
          title: "Name",
          isHeading: true,
          cell: ({ namespace, name, type }) => (
            <>
              <bdi>{name}</bdi>
              <span class="namespace">
                <bdi>{namespace}</bdi>, {type}
              </span>
            </>
          ),
        },
        {
          title: "Address",
          cell: ({ address, ports }) => <Plain text={[address || "-", ports.join(", ")].filter(Boolean).join(" ")} />,
        },
        {
          title: "Status",
          cell: (row) => <Status {...row} good="good" />,
        },
        {
          title: "Leads to",
          cell: ({ namespace, pods }) => (
            <>
              {pods.slice(0, MAX_LINKS).map(({ name, isReady }) => (
                <div key={name}>
                  <a href={podAddress({ namespace, name })}>
                    <bdi>{name}</bdi>
                  </a>
                  {!isReady && " (not ready)"}
                </div>
              ))}
              {pods.length > MAX_LINKS && `and ${pods.length - MAX_LINKS} more`}
              {pods.length === 0 && "-"}
            </>
          ),
        },
      ]}
    />
  </section>
);
