import { useState } from "preact/hooks";
import { fetchJson } from "./connection.ts";
import { EventTable } from "./event-table.tsx";
import { formatBytes, formatCores } from "./format.ts";
import { HistoryCharts } from "./history-charts.tsx";
import { conditionTone, NodeTiles } from "./node-tiles.tsx";
import { Age, Badge, Meter, useLoaded } from "./parts.tsx";
import type { PageState } from "./store.ts";
import type { NodeDetail } from "./wire.ts";

export function NodeView({ state, now }: { state: PageState; now: number }) {
  const [isAll, setAll] = useState(false);
  const minute = Math.floor(now / 30_000);
  const { value: detail, error } = useLoaded("node", minute, (signal) =>
    fetchJson<NodeDetail>("/page/api/node", signal),
  );
  return (
    <>
      <h1>Node {state.node?.name}</h1>
      <NodeTiles state={state} now={now} />
      <HistoryCharts path="/page/api/node/history" now={now} memoryLimitBytes={state.node?.memoryBytes ?? 0} />
      {error && <p class="banner warn">{error}</p>}
      <section class="card">
        <h2>Conditions</h2>
        <table>
          <thead>
            <tr>
              <th scope="col">Type</th>
              <th scope="col">Status</th>
              <th scope="col">Since</th>
              <th scope="col">Message</th>
            </tr>
          </thead>
          <tbody>
            {state.node?.conditions.map((condition) => (
              <tr key={condition.type}>
                <th scope="row">{condition.type}</th>
                <td>
                  <Badge tone={conditionTone(condition)}>{condition.status}</Badge>
                </td>
                <td>
                  <Age at={condition.since} now={now} />
                </td>
                <td>{condition.message}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </section>
      {detail && (
        <>
          <section class="card">
            <h2>File systems</h2>
            {detail.filesystems.map(({ device, capacityBytes, usedBytes }) => (
              <Meter
                key={device}
                used={usedBytes}
                total={capacityBytes}
                text={`${device}: ${formatBytes(usedBytes)} of ${formatBytes(capacityBytes)}`}
              />
            ))}
          </section>
          <section class="card">
            <h2>Containers by memory</h2>
            <table>
              <thead>
                <tr>
                  <th scope="col">Container</th>
                  <th scope="col" class="number">
                    CPU
                  </th>
                  <th scope="col" class="number">
                    Memory
                  </th>
                </tr>
              </thead>
              <tbody>
                {detail.containers.slice(0, isAll ? undefined : 20).map(({ name, cpuCores, memoryBytes }) => (
                  <tr key={name}>
                    <th scope="row" class="source">
                      <bdi>{name}</bdi>
                    </th>
                    <td class="number">{formatCores(cpuCores)}</td>
                    <td class="number">{formatBytes(memoryBytes)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
            {detail.containers.length > 20 && (
              <button type="button" onClick={() => setAll(!isAll)}>
                {isAll ? "Show the first 20" : `Show all ${detail.containers.length}`}
              </button>
            )}
          </section>
          <section class="card">
            <h2>Images</h2>
            <table>
              <thead>
                <tr>
                  <th scope="col">Image</th>
                  <th scope="col" class="number">
                    Size
                  </th>
                </tr>
              </thead>
              <tbody>
                {detail.images.map(({ names, sizeBytes }) => (
                  <tr key={names.join()}>
                    <td class="source">
                      <bdi>{names.at(-1) ?? "<none>"}</bdi>
                    </td>
                    <td class="number">{formatBytes(sizeBytes)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
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
