import { parseMediaTypes } from "../../base/text/media-types.ts";

/** `prometheus`: text format 0.0.4. `openmetrics`: OpenMetrics 1.0. */
export type TextFormat = "prometheus" | "openmetrics";

/** Value of the Content-Type header. */
export const TEXT_CONTENT_TYPE: Readonly<Record<TextFormat, string>> = {
  prometheus: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

/** Adds a sample to the metric that is being shown. @param labels as text @param suffix of the name, as histograms have */
type AddSample = (labels: string, value: number, suffix?: string) => void;

/** A metric: its description, and how its samples are written at a scrape. */
export interface Metric {
  readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  /** When the samples were measured; without it they are shown without a time. */
  readonly at?: Date | undefined;
  write(add: AddSample, format: TextFormat): void;
}

/** Declares metrics that are computed at each scrape, with a sample for each item whose value is known. @param at when the items were measured */
export const metricsOf =
  <T>(items: readonly T[], labelsOf: (item: T) => string, at?: Date) =>
  (type: "counter" | "gauge", name: string, help: string, value: (item: T) => number | undefined): Metric => ({
    type,
    name,
    help,
    at,
    write: (add) => {
      for (const item of items) {
        const number = value(item);
        if (number !== undefined) add(labelsOf(item), number);
      }
    },
  });

/** A number for each set of label values, kept between scrapes. */
class Scalar implements Metric {
  /** Key: the text of the labels. */
  readonly #values = new Map<string, number>();

  constructor(
    readonly type: "counter" | "gauge",
    readonly name: string,
    readonly help: string,
    readonly labelNames: readonly string[],
  ) {}

  /** Adds to the value, which starts at 0. */
  add(by: number, labelValues: readonly string[] = []): void {
    const labels = labelTextOf(this, labelValues);
    this.#values.set(labels, (this.#values.get(labels) ?? 0) + by);
  }

  set(value: number, labelValues: readonly string[] = []): void {
    this.#values.set(labelTextOf(this, labelValues), value);
  }

  /** Forgets every sample; for gauges that are set again as a whole. */
  clear(): void {
    this.#values.clear();
  }

  /** Forgets the samples of something that has gone. */
  forget(labelName: string, value: string): void {
    const part = labelText([labelName], [value]).slice(1, -1);
    for (const labels of this.#values.keys()) if (labels.includes(part)) this.#values.delete(labels);
  }

  write(add: AddSample): void {
    for (const [labels, value] of this.#values) add(labels, value);
  }
}

export class Gauge extends Scalar {
  constructor(name: string, help: string, labelNames: readonly string[] = []) {
    super("gauge", name, help, labelNames);
  }
}

/** A count that only grows. */
export class Counter extends Scalar {
  constructor(name: string, help: string, labelNames: readonly string[] = []) {
    super("counter", name, help, labelNames);
    // Without labels there is one sample, and it is there from the start, as in Prometheus' own libraries.
    if (labelNames.length === 0) this.inc([], 0);
  }

  /** @param by must not be negative. */
  inc(labelValues: readonly string[] = [], by = 1): void {
    this.add(by, labelValues);
  }
}

/** Seconds; `prometheus.DefBuckets`, which upstream uses for every latency that names no others. */
const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class Histogram implements Metric {
  readonly type = "histogram";
  readonly #samples = new Map<string, { labelValues: readonly string[]; bucketCounts: number[]; sum: number }>();

  /** @param buckets upper bounds, ascending, without `+Inf`. */
  constructor(
    readonly name: string,
    readonly help: string,
    readonly labelNames: readonly string[] = [],
    readonly buckets: readonly number[] = DEFAULT_BUCKETS,
  ) {
    if (labelNames.length === 0) this.#sample([]);
  }

  observe(value: number, labelValues: readonly string[] = []): void {
    const sample = this.#sample(labelValues);
    const bucket = this.buckets.findIndex((bound) => value <= bound);
    sample.bucketCounts[bucket < 0 ? this.buckets.length : bucket]! += 1;
    sample.sum += value;
  }

  write(add: AddSample, format: TextFormat): void {
    for (const [labels, { labelValues, bucketCounts, sum }] of this.#samples) {
      let count = 0;
      for (const [index, inBucket] of bucketCounts.entries()) {
        count += inBucket;
        const le = boundText(this.buckets[index] ?? Number.POSITIVE_INFINITY, format);
        add(labelText([...this.labelNames, "le"], [...labelValues, le]), count, "_bucket");
      }
      add(labels, sum, "_sum");
      add(labels, count, "_count");
    }
  }

  #sample(labelValues: readonly string[]) {
    const make = () => ({ labelValues, bucketCounts: new Array(this.buckets.length + 1).fill(0), sum: 0 });
    return this.#samples.getOrInsertComputed(labelTextOf(this, labelValues), make);
  }
}

/** Throws a RangeError when there is another number of values than of names: a mistake of the program. */
function labelTextOf(metric: { name: string; labelNames: readonly string[] }, values: readonly string[]): string {
  const { name, labelNames } = metric;
  if (values.length === labelNames.length) return labelText(labelNames, values);
  throw new RangeError(`Metric "${name}" has the labels [${labelNames.join(", ")}], got ${values.length} values`);
}

/** Metrics as text in parts, ready to send, in this order. Those without samples are left out, as in Prometheus' libraries. */
export function* metricsText(metrics: readonly Metric[], format: TextFormat): Generator<string> {
  for (const metric of metrics) yield metricText(metric, format);
  yield endOfText(format);
}

/** One metric as text; "" without samples. */
export function metricText(metric: Metric, format: TextFormat): string {
  const { name, at } = metric;
  const end = at ? ` ${format === "openmetrics" ? (at.getTime() / 1000).toFixed(3) : at.getTime()}\n` : "\n";
  let samples = "";
  metric.write((labels, value, suffix = "") => {
    samples += `${name}${suffix}${labels} ${numberText(value)}${end}`;
  }, format);
  return samples && headerText(metric, format) + samples;
}

/** OpenMetrics ends with a marker that shows that the text is complete. */
export const endOfText = (format: TextFormat) => (format === "openmetrics" ? "# EOF\n" : "");

/** OpenMetrics wants every counter to end in `_total`; those of upstream that do not are declared `unknown` there. */
function headerText({ name, help, type }: Metric, format: TextFormat): string {
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
export const labelText = (names: readonly string[], values: readonly (string | undefined)[]): string =>
  names.length === 0 ? "" : `{${names.map((name, index) => label(name, values[index])).join(",")}}`;

/** `a="x"`. */
export const label = (name: string, value = "") => `${name}="${escapeLabelValue(value)}"`;

function escapeLabelValue(value: string): string {
  if (!/[\\"\n]/.test(value)) return value;
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** As Prometheus reads it: `+Inf`, `-Inf`, `NaN`, else the shortest decimal. */
function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value);
  if (Number.isNaN(value)) return "NaN";
  return value > 0 ? "+Inf" : "-Inf";
}

// OpenMetrics wants canonical floats for bounds: 1.0 rather than 1.
const boundText = (bound: number, format: TextFormat): string =>
  format === "openmetrics" && Number.isInteger(bound) ? `${bound}.0` : numberText(bound);

/** The format a scraper gets: OpenMetrics when it ranks that at least as high as the other format. */
export function negotiateTextFormat(accept: string | null): TextFormat {
  let best: { format: TextFormat; quality: number } = { format: "prometheus", quality: 0 };
  for (const { type, parameters } of parseMediaTypes(accept ?? "")) {
    const { version, q = 1 } = parameters;
    const quality = Number(q);
    const format = type === "application/openmetrics-text" ? "openmetrics" : "prometheus";
    const known =
      format === "openmetrics" ? !version || version.startsWith("1.") || version === "0.0.1" : isPlain(type);
    if (known && quality > best.quality) best = { format, quality };
  }
  return best.format;
}

const isPlain = (type: string) => type === "text/plain" || type === "text/*" || type === "*/*";
