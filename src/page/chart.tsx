import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

export interface ChartLine {
  label: string;
  values: (number | null)[];
  /** Class of its colour: 0 or 1. */
  color: 0 | 1;
}

const HEIGHT = 140;
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, exponent) => 2 ** exponent);
const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** A time chart with its axis from zero; `limit` is drawn as a dashed line. */
export function Chart({
  title,
  times,
  spanMs,
  isBinary = false,
  lines,
  limit = 0,
  format,
}: {
  title: string;
  /** Milliseconds since 1970. */
  times: readonly number[];
  /** The time axis ends at the last value and begins this much earlier. */
  spanMs: number;
  /** Splits the axis at multiples of 1024. */
  isBinary?: boolean;
  lines: readonly ChartLine[];
  limit?: number;
  format: (value: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = place.current;
    if (!element || times.length === 0) return;
    const axis = {
      stroke: css("--dim"),
      grid: { stroke: css("--line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui",
    };
    const all = limit > 0 ? [...lines, { label: "limit", values: times.map(() => limit), color: 1 as const }] : lines;
    const plot = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, points: { show: false } },
        scales: {
          x: { range: (_, __, max) => [max - spanMs / 1000, max] },
          y: { range: (_, __, max) => [0, Math.max(max, 1e-9) * 1.1] },
        },
        axes: [
          { ...axis, size: 26, space: 60, values: (_, splits) => splits.map((value) => CLOCK.format(value * 1000)) },
          {
            ...axis,
            size: 64,
            space: 40,
            values: (_, splits) => splits.map((value) => format(value)),
            ...(isBinary && { incrs: POWERS_OF_TWO }),
          },
        ],
        series: [
          {},
          ...all.map(({ label, color }) => ({
            label,
            stroke: css(color === 0 ? "--line-a" : "--line-b"),
            width: 1.5,
            ...(label === "limit" && { dash: [4, 4] }),
            points: { show: false },
          })),
        ],
      },
      [times.map((time) => time / 1000), ...all.map(({ values }) => values)] as uPlot.AlignedData,
      element,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [times, lines, limit, spanMs]);
  const latest = lines.map(({ label, values }) => {
    const last = values.findLast((value) => value !== null);
    const text = last == null ? "-" : format(last);
    return lines.length > 1 ? `${label} ${text}` : text;
  });
  return (
    <figure class="chart">
      <figcaption>
        {title} <b>{latest.join(", ")}</b>
        {limit > 0 && <span class="note"> limit {format(limit)}</span>}
      </figcaption>
      <div ref={place} class="plot" aria-hidden="true" />
    </figure>
  );
}
