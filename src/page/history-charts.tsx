import { useMemo, useState } from "preact/hooks";
import { Chart } from "./chart.tsx";
import { fetchJson } from "./connection.ts";
import { formatBytes, formatCores } from "./format.ts";
import { useLoaded } from "./use-loaded.ts";
import type { History, HistoryRange } from "./wire.ts";

const RANGES: readonly HistoryRange[] = ["10m", "1h", "24h"];
const SPAN_MS: Readonly<Record<HistoryRange, number>> = { "10m": 600_000, "1h": 3_600_000, "24h": 86_400_000 };
const LEAST_CORES = 0.001;
const LEAST_BYTES = 1024;
const REFRESH_MS = 10_000;

/** CPU, memory, network and disk of a pod or of the node. */
export function HistoryCharts({
  path,
  now,
  cpuLimitCores = 0,
  memoryLimitBytes = 0,
}: {
  path: string;
  now: number;
  cpuLimitCores?: number;
  memoryLimitBytes?: number;
}) {
  const [range, setRange] = useState<HistoryRange>("10m");
  const { value, error } = useLoaded(`${path} ${range}`, Math.floor(now / REFRESH_MS), (signal) =>
    fetchJson<History>(`${path}?range=${range}`, signal),
  );
  const lines = useMemo(
    () =>
      value && {
        cpu: [{ label: "CPU", values: value.cpuCores, color: 0 as const }],
        memory: [{ label: "memory", values: value.memoryBytes, color: 0 as const }],
        network: [
          { label: "in", values: value.receivedBytes, color: 0 as const },
          { label: "out", values: value.sentBytes, color: 1 as const },
        ],
        disk: [{ label: "disk", values: value.diskBytes, color: 0 as const }],
      },
    [value],
  );
  const axis = { times: value?.times ?? [], spanMs: SPAN_MS[range] };
  return (
    <section class="card" aria-label="Charts">
      <div class="toolbar">
        {RANGES.map((known) => (
          <button key={known} type="button" aria-pressed={known === range} onClick={() => setRange(known)}>
            {known}
          </button>
        ))}
        {error && <span class="note">{error}</span>}
      </div>
      <div class="charts">
        {value && lines && (
          <>
            <Chart
              title="CPU cores"
              {...axis}
              lines={lines.cpu}
              limit={cpuLimitCores}
              least={LEAST_CORES}
              format={formatCores}
            />
            <Chart
              title="Memory"
              {...axis}
              lines={lines.memory}
              isBinary
              limit={memoryLimitBytes}
              least={LEAST_BYTES}
              format={formatBytes}
            />
            <Chart title="Network" {...axis} lines={lines.network} isBinary least={LEAST_BYTES} format={perSecond} />
            <Chart title="Disk" {...axis} lines={lines.disk} isBinary least={LEAST_BYTES} format={formatBytes} />
          </>
        )}
      </div>
    </section>
  );
}

const perSecond = (bytes: number) => `${formatBytes(bytes)}/s`;
