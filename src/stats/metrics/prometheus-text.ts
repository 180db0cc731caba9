import type { HistogramSample, MetricFamily } from "./metrics-registry.ts";

/** `prometheus`: text format 0.0.4. `openmetrics`: OpenMetrics 1.0. */
export type TextFormat = "prometheus" | "openmetrics";

/** Value of the Content-Type header. */
export const TEXT_CONTENT_TYPE: Readonly<Record<TextFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** The format a scraper gets: OpenMetrics when it ranks that at least as high as the other format. */
export function negotiateTextFormat(accept: string | null): TextFormat {
  let best: { format: TextFormat; quality: number } = { format: "prometheus", quality: 0 };
  for (const part of (accept ?? "").split(",")) {
    const [type = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
    const quality = Number(parameters.find((text) => text.startsWith("q="))?.slice(2) ?? 1);
    const version = parameters.find((text) => text.startsWith("version="))?.slice("version=".length);
    const format = type === "application/openmetrics-text" ? "openmetrics" : "prometheus";
    const known =
      format === "openmetrics" ? !version || version.startsWith("1.") || version === "0.0.1" : isPlain(type);
    if (known && quality > best.quality) best = { format, quality };
  }
  return best.format;
}

const isPlain = (type: string) => type === "text/plain" || type === "text/*" || type === "*/*";

/** Families as text, ready to send. Families without samples are left out, as in Prometheus' libraries. */
export function renderFamilies(families: readonly MetricFamily[], format: TextFormat): string {
  let text = "";
  for (const family of families) {
    const header = familyHeader(family.name, family.help, family.type, format);
    let samples = "";
    if (family.type === "histogram") {
      for (const sample of family.samples) samples += histogramText(family, sample, format);
    } else {
      for (const { labelValues, value } of family.samples) {
        samples += `${family.name}${labelText(family.labelNames, labelValues)} ${numberText(value)}\n`;
      }
    }
    if (samples) text += header + samples;
  }
  return text + endOfText(format);
}

/** When a sample was taken, in milliseconds; in OpenMetrics in seconds. */
export const timestampText = (at: Date, format: TextFormat) =>
  format === "openmetrics" ? (at.getTime() / 1000).toFixed(3) : String(at.getTime());

/** OpenMetrics ends with a marker that shows that the text is complete. */
export const endOfText = (format: TextFormat) => (format === "openmetrics" ? "# EOF\n" : "");

/**
 * HELP and TYPE lines. OpenMetrics wants every sample of a counter to end in `_total`; upstream has counters that do
 * not, and renaming them for some scrapers would break dashboards: those are declared `unknown` there.
 */
export function familyHeader(name: string, help: string, type: MetricFamily["type"], format: TextFormat): string {
  let family = name;
  let shownType: string = type;
  if (format === "openmetrics" && type === "counter") {
    if (name.endsWith("_total")) family = name.slice(0, -"_total".length);
    else shownType = "unknown";
  }
  const shownHelp = help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
  const escaped = format === "openmetrics" ? shownHelp.replaceAll('"', '\\"') : shownHelp;
  return `# HELP ${family} ${escaped}\n# TYPE ${family} ${shownType}\n`;
}

/** `{a="x",b="y"}`, or "" without labels. */
export function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return "";
  let text = "{";
  for (let index = 0; index < names.length; index++) {
    text += `${index > 0 ? "," : ""}${names[index]!}="${escapeLabelValue(values[index] ?? "")}"`;
  }
  return `${text}}`;
}

export function escapeLabelValue(value: string): string {
  if (!/[\\"\n]/.test(value)) return value;
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** As Prometheus reads it: `+Inf`, `-Inf`, `NaN`, else the shortest decimal. */
export function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "+Inf" : "-Inf";
}

function histogramText(
  family: Extract<MetricFamily, { type: "histogram" }>,
  sample: HistogramSample,
  format: TextFormat,
): string {
  const { name, labelNames, buckets } = family;
  const bucketNames = [...labelNames, "le"];
  let text = "";
  let cumulative = 0;
  for (const [index, count] of sample.bucketCounts.entries()) {
    cumulative += count;
    const bound = buckets[index];
    const le = bound === undefined ? "+Inf" : boundText(bound, format);
    text += `${name}_bucket${labelText(bucketNames, [...sample.labelValues, le])} ${cumulative}\n`;
  }
  const labels = labelText(labelNames, sample.labelValues);
  return `${text}${name}_sum${labels} ${numberText(sample.sum)}\n${name}_count${labels} ${sample.count}\n`;
}

// OpenMetrics wants canonical floats for bounds: 1.0 rather than 1.
function boundText(bound: number, format: TextFormat): string {
  return format === "openmetrics" && Number.isInteger(bound) ? `${bound}.0` : String(bound);
}
