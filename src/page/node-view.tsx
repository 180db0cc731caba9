import { ConditionTable } from "./condition-table.tsx";
import { fetchJson } from "./connection.ts";
import { EventTable } from "./event-table.tsx";
import { Fact } from "./facts.tsx";
import { formatBytes, formatPercent } from "./format.ts";
import { HistoryCharts } from "./history-charts.tsx";
import { CoreMeters, InterfaceTable, MemoryFacts } from "./node-machine.tsx";
import { CgroupTable, ImageTable } from "./node-tables.tsx";
import { conditionTone, NodeTiles } from "./node-tiles.tsx";
import { ClusterFailure } from "./notices.tsx";
import { Meter } from "./parts.tsx";
import type { PageState } from "./store.ts";
import { useLoaded } from "./use-loaded.ts";
import type { NodeDetail } from "./wire.ts";

const REFRESH_MS = 20_000;

export function NodeView({ state, now }: { state: PageState; now: number }) {
  // Again after a break, too: the engine or the kubelet may be another one.
  const revision = `${Math.floor(now / REFRESH_MS)} ${state.connects} ${state.node?.problem} ${state.node?.engine}`;
  const { value: detail, error } = useLoaded("node", revision, (signal) =>
    fetchJson<NodeDetail>("/page/api/node", signal),
  );
  return (
    <>
      <h1>Node {state.node?.name}</h1>
      <NodeTiles state={state} now={now} />
      <HistoryCharts path="/page/api/node/history" now={now} memoryLimitBytes={state.node?.memoryBytes ?? 0} />
      {error && <p class="banner warn">{error}</p>}
      {state.node?.cluster && (
        <section class="card">
          <h2>Cluster</h2>
          <dl>
            <Fact name="API server" value={state.node.cluster.server} />
          </dl>
          <p class="note">
            {state.node.cluster.failure ? (
              <ClusterFailure cluster={state.node.cluster} />
            ) : (
              "It answers: pods come from there, and their statuses are reported to it."
            )}
          </p>
        </section>
      )}
      <ConditionTable conditions={state.node?.conditions ?? []} toneOf={conditionTone} now={now} />
      {!detail && !error && state.connection === "live" && <p class="empty">Loading…</p>}
      {detail && (
        <>
          <CoreMeters cores={detail.cores} />
          <MemoryFacts memory={detail.memory} />
          <section class="card">
            <h2>File systems</h2>
            {detail.filesystems.length === 0 && <p class="note">Not measured at the moment.</p>}
            {detail.filesystems.map(({ device, mountPoint, use, capacityBytes, usedBytes }) => (
              <Meter
                key={mountPoint}
                used={usedBytes}
                total={capacityBytes}
                text={`${mountPoint}${device === mountPoint ? "" : ` (${device})`}: ${formatBytes(usedBytes)} of ${formatBytes(capacityBytes)} (${formatPercent(usedBytes, capacityBytes)})${use === "" ? "" : `, ${use}`}`}
              />
            ))}
          </section>
          <InterfaceTable interfaces={detail.interfaces} />
          <CgroupTable cgroups={detail.cgroups} privileged={state.privileged} />
          <ImageTable images={detail.images} gcPercent={detail.imageGcPercent} now={now} />
          <section class="card">
            <h2>Engine</h2>
            <Facts facts={detail.engine} />
          </section>
          <section class="card">
            <h2>Machine</h2>
            <Facts facts={detail.machine} />
            <p class="note">
              For programs: <a href="/api/v1.3/machine">machine</a>,{" "}
              <a href="/api/v1.3/subcontainers/">control groups</a>, <a href="/metrics">metrics</a>,{" "}
              <a href="/index.html">all of cAdvisor's API</a>
            </p>
          </section>
          <section class="card">
            <h2>Events</h2>
            <EventTable events={detail.events} now={now} withObject />
          </section>
        </>
      )}
    </>
  );
}

const Facts = ({ facts }: { facts: Record<string, string> }) => {
  const entries = Object.entries(facts);
  if (entries.length === 0) return <p class="empty">Not known yet.</p>;
  return (
    <dl>
      {entries.map(([name, value]) => (
        <Fact key={name} name={name} value={value} />
      ))}
    </dl>
  );
};
