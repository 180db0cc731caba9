import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { fetchJson, loadPart, useLoaded } from "./connection.ts";
import { formatBytes, formatCores, formatTime } from "./format.ts";
import { Button } from "./parts.tsx";
import { type History, type HistoryRange, RANGE_MS } from "./wire.ts";

interface ChartLine {
  label: string;
  values: (number | null)[];
  /** Class of its color: 0 or 1. */
  color: 0 | 1;
}

interface ChartProps {
  title: string;
  times: readonly number[];
  /** The time axis ends at the last value and begins this much earlier. */
  spanMs: number;
  /** Splits the axis at multiples of 1024. */
  isBinary?: boolean;
  lines: readonly ChartLine[];
  limit?: number;
  /** Smallest end of the value axis: a line at zero has an axis too. */
  least: number;
  format: (value: number) => string;
}

const HEIGHT = 140;
/** Some values are measured less often than others: the newest of these points is the present value. */
const RECENT = 12;
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, exponent) => 2 ** exponent);
/** The value axis ends this much above the highest value: there is room for the label of the limit. */
const HEADROOM = 1.15;
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A time chart with its axis from zero; `limit` is drawn as a dashed line. The caption has the values at the pointer, else the last. */
function Chart(props: ChartProps) {
  const { title, times, spanMs, lines, limit = 0, format } = props;
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const plot = useRef<uPlot | undefined>(undefined);
  const [pointed, setPointed] = useState<number>();
  const isDark = useDark();
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const gone = new AbortController();
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT }));
    // The overview draws no charts.
    void loadPart(() => import("uplot"), gone.signal).then((part) => {
      if (!part) return;
      plot.current = new part.default(
        toOptions(element.clientWidth, latest.current, setPointed),
        toData(latest.current),
        element,
      );
      observer.observe(element);
    });
    return () => {
      gone.abort();
      observer.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [spanMs, limit > 0, lines.length, isDark]);
  useEffect(() => plot.current?.setData(toData(latest.current)), [times, lines, limit]);
  const values = lines.map(({ label, values: series }) => {
    const value = pointed === undefined ? series.slice(-RECENT).findLast((known) => known !== null) : series[pointed];
    const text = value == null ? "-" : format(value);
    return lines.length > 1 ? `${label} ${text}` : text;
  });
  const isMeasured = lines.some(({ values: series }) => series.some((known) => known !== null));
  return (
    <figure class="chart">
      <figcaption>
        {title} <b>{isMeasured ? values.join(", ") : "not measured"}</b>
        {pointed === undefined
          ? limit > 0 && <span class="note"> limit {format(limit)}</span>
          : times[pointed] !== undefined && <span class="note"> {formatTime(times[pointed])}</span>}
      </figcaption>
      <div ref={place} class="plot" aria-hidden="true" />
    </figure>
  );
}

function toData({ times, lines, limit = 0 }: ChartProps): uPlot.AlignedData {
  const all = lines.map(({ values }) => values);
  if (limit > 0) all.push(times.map(() => limit));
  return [times.map((time) => time / 1000), ...all] as uPlot.AlignedData;
}

/** @param onPoint called with the index of the values at the pointer; undefined: the pointer has left */
function toOptions(
  width: number,
  { spanMs, isBinary = false, lines, limit = 0, least, format }: ChartProps,
  onPoint: (index: number | undefined) => void,
): uPlot.Options {
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const axis = {
    stroke: css("--dim"),
    grid: { stroke: css("--line"), width: 1 },
    ticks: { show: false },
    font: "11px system-ui",
  };
  const series = lines.map(({ label, color }) => ({
    label,
    stroke: css(color === 0 ? "--line-a" : "--line-b"),
    width: 1.5,
    points: { show: false },
  }));
  const limitLine = { label: "limit", stroke: css("--line-b"), width: 1.5, dash: [4, 4], points: { show: false } };
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 16, 0, 0],
    cursor: { y: false, points: { show: false } },
    hooks: {
      setCursor: [({ cursor }) => onPoint(cursor.idx ?? undefined)],
      draw: limit > 0 ? [(chart) => drawLimitLabel(chart, format)] : [],
    },
    scales: {
      x: { range: (_, __, max) => [max - spanMs / 1000, max] },
      y: { range: (_, __, max) => [0, Math.max(max, least) * HEADROOM] },
    },
    axes: [
      { ...axis, size: 22, space: 60, values: (_, splits) => splits.map((value) => clock.format(value * 1000)) },
      {
        ...axis,
        size: 64,
        space: 40,
        values: (_, splits) => splits.map((value) => format(value)),
        ...(isBinary && { incrs: POWERS_OF_TWO }),
      },
    ],
    series: [{}, ...series, ...(limit > 0 ? [limitLine] : [])],
  };
}

/** Names the limit, the last series, above the right end of its line. Positions are pixels of the device. */
function drawLimitLabel({ ctx, bbox, data, valToPos }: uPlot, format: ChartProps["format"]): void {
  const limit = data.at(-1)?.[0];
  if (limit == null) return;
  const { devicePixelRatio } = window;
  ctx.save();
  ctx.font = `${11 * devicePixelRatio}px system-ui`;
  ctx.fillStyle = css("--line-b");
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  ctx.fillText(`limit ${format(limit)}`, bbox.left + bbox.width, valToPos(limit, "y", true) - devicePixelRatio);
  ctx.restore();
}

function useDark(): boolean {
  const [query] = useState(() => matchMedia("(prefers-color-scheme: dark)"));
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const onChange = () => setDark(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, [query]);
  return isDark;
}

const RANGES = Object.keys(RANGE_MS) as HistoryRange[];
const LEAST_BYTES = 1024;
const REFRESH_MS = 10_000;
const perSecond = (bytes: number) => `${formatBytes(bytes)}/s`;

interface HistoryChart extends Pick<ChartProps, "title" | "isBinary" | "least" | "format"> {
  lines: readonly (readonly [label: string, series: Exclude<keyof History, "times">])[];
  limit?: "cpuLimitCores" | "memoryLimitBytes";
}

const CHARTS: readonly HistoryChart[] = [
  { title: "CPU cores", lines: [["CPU", "cpuCores"]], limit: "cpuLimitCores", least: 0.001, format: formatCores },
  {
    title: "Memory",
    lines: [["memory", "memoryBytes"]],
    limit: "memoryLimitBytes",
    least: LEAST_BYTES,
    format: formatBytes,
    isBinary: true,
  },
  {
    title: "Network",
    lines: [
      ["in", "receivedBytes"],
      ["out", "sentBytes"],
    ],
    least: LEAST_BYTES,
    format: perSecond,
    isBinary: true,
  },
  { title: "Disk", lines: [["disk", "diskBytes"]], least: LEAST_BYTES, format: formatBytes, isBinary: true },
];

/** Charts of a pod or of the node. */
export function HistoryCharts(props: { path: string; now: number; cpuLimitCores?: number; memoryLimitBytes?: number }) {
  const { path, now } = props;
  const [range, setRange] = useState<HistoryRange>("10m");
  const { value, error } = useLoaded(`${path} ${range}`, Math.floor(now / REFRESH_MS), (signal) =>
    fetchJson<History>(`${path}?range=${range}`, signal),
  );
  const charts = useMemo(
    () =>
      value &&
      CHARTS.map(({ lines, ...chart }) => ({
        ...chart,
        lines: lines.map(([label, series], color) => ({ label, values: value[series], color: color as 0 | 1 })),
      })),
    [value],
  );
  return (
    <section class="card" aria-label="Charts">
      <div class="toolbar">
        {RANGES.map((known) => (
          <Button key={known} text={known} isPressed={known === range} onClick={() => setRange(known)} />
        ))}
        {error && <span class="note">{error}</span>}
      </div>
      <div class="charts">
        {value &&
          charts?.map(({ limit, ...chart }) => (
            <Chart
              key={chart.title}
              {...chart}
              times={value.times}
              spanMs={RANGE_MS[range]}
              limit={(limit && props[limit]) ?? 0}
            />
          ))}
      </div>
    </section>
  );
}
