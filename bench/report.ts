import { type Measurement, meetsGoal, ratioOf } from "./bench-case.ts";

const HEADINGS = ["", "measured", "floor", "ratio", "goal", ""] as const;

function toRow(measurement: Measurement): string[] {
  const { what, value, unit, floor, floorText, goal } = measurement;
  const ratio = ratioOf(measurement);
  const met = meetsGoal(measurement);
  return [
    what,
    sayValue(value, unit),
    floor === undefined ? "" : `${sayValue(floor, unit)}${floorText === undefined ? "" : ` (${floorText})`}`,
    ratio === undefined ? "" : `${ratio.toFixed(2)} ×`,
    goal === undefined ? "" : "atMost" in goal ? `≤ ${sayValue(goal.atMost, unit)}` : `≤ ${goal.ratioAtMost} ×`,
    met === undefined ? "" : met ? "ok" : "MISSED",
  ];
}

/** Columns under their headings, the first left-aligned, figures to the right. */
export function toTable(measurements: readonly Measurement[]): string {
  const rows = [[...HEADINGS], ...measurements.map(toRow)];
  const widths = HEADINGS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) => {
      const cells = row.map((cell, column) =>
        column === 0 || column === HEADINGS.length - 1
          ? cell.padEnd(widths[column] ?? 0)
          : cell.padStart(widths[column] ?? 0),
      );
      return cells.join("  ").trimEnd();
    })
    .join("\n");
}

function sayValue(value: number, unit: Measurement["unit"]): string {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  if (unit === "number") return value.toFixed(digits);
  return unit === "%" ? `${value.toFixed(digits)} %` : `${value.toFixed(digits)} ${unit}`;
}
