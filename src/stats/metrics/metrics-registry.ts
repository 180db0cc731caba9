/** Values of a metric's labels, in the order of its `labelNames`. */
type LabelValues = readonly string[];

interface FamilyBase {
  /** e.g. `kubelet_running_pods`. */
  name: string;
  help: string;
  labelNames: readonly string[];
}

/** One count or level. `labelValues` and `value` are all there is to a sample. */
interface ScalarSample {
  labelValues: LabelValues;
  value: number;
}

/** Cumulative histogram of one set of label values. */
export interface HistogramSample {
  labelValues: LabelValues;
  /** Observations at or below `buckets[i]` and above `buckets[i-1]` (not cumulative); the last one is `+Inf`. */
  bucketCounts: number[];
  sum: number;
  count: number;
}

/** A family of metrics as data; prometheus-text.ts renders it. */
export type MetricFamily =
  | (FamilyBase & { type: "counter" | "gauge"; samples: Iterable<ScalarSample> })
  | (FamilyBase & { type: "histogram"; buckets: readonly number[]; samples: Iterable<HistogramSample> });

/** A count that only grows. */
class Counter {
  readonly #samples = new Map<string, ScalarSample>();

  constructor(readonly family: FamilyBase) {
    // Without labels there is one sample, and it is there from the start, as in Prometheus' own libraries.
    if (family.labelNames.length === 0) this.inc([], 0);
  }

  /** @param by must not be negative. */
  inc(labelValues: LabelValues = [], by = 1): void {
    scalar(this.#samples, this.family, labelValues).value += by;
  }

  /** Current value, 0 when it was never counted. */
  value(labelValues: LabelValues = []): number {
    return this.#samples.get(labelValues.join("\0"))?.value ?? 0;
  }

  /** Forgets every sample `isGone` says true for, e.g. those of a removed pod. */
  prune(isGone: (labelValues: LabelValues) => boolean): void {
    prune(this.#samples, isGone);
  }

  collect(): MetricFamily {
    return { ...this.family, type: "counter", samples: this.#samples.values() };
  }
}

/** A level that goes up and down. */
class Gauge {
  readonly #samples = new Map<string, ScalarSample>();

  constructor(readonly family: FamilyBase) {}

  set(value: number, labelValues: LabelValues = []): void {
    scalar(this.#samples, this.family, labelValues).value = value;
  }

  add(by: number, labelValues: LabelValues = []): void {
    scalar(this.#samples, this.family, labelValues).value += by;
  }

  value(labelValues: LabelValues = []): number {
    return this.#samples.get(labelValues.join("\0"))?.value ?? 0;
  }

  /** Forgets every sample; for gauges that are set again as a whole. */
  clear(): void {
    this.#samples.clear();
  }

  prune(isGone: (labelValues: LabelValues) => boolean): void {
    prune(this.#samples, isGone);
  }

  collect(): MetricFamily {
    return { ...this.family, type: "gauge", samples: this.#samples.values() };
  }
}

/** Counts of observations by size. */
class Histogram {
  readonly #samples = new Map<string, HistogramSample>();

  /** @param buckets upper bounds, ascending, without `+Inf`. */
  constructor(
    readonly family: FamilyBase,
    readonly buckets: readonly number[],
  ) {
    if (family.labelNames.length === 0) this.#sample([]);
  }

  observe(value: number, labelValues: LabelValues = []): void {
    const sample = this.#sample(labelValues);
    let bucket = 0;
    while (bucket < this.buckets.length && value > this.buckets[bucket]!) bucket++;
    sample.bucketCounts[bucket]! += 1;
    sample.sum += value;
    sample.count += 1;
  }

  /** Observations so far; 0 when there was none. */
  count(labelValues: LabelValues = []): number {
    return this.#samples.get(labelValues.join("\0"))?.count ?? 0;
  }

  collect(): MetricFamily {
    return { ...this.family, type: "histogram", buckets: this.buckets, samples: this.#samples.values() };
  }

  #sample(labelValues: LabelValues): HistogramSample {
    const key = labelValues.join("\0");
    let sample = this.#samples.get(key);
    if (!sample) {
      requireLabels(this.family, labelValues);
      sample = { labelValues, bucketCounts: new Array(this.buckets.length + 1).fill(0), sum: 0, count: 0 };
      this.#samples.set(key, sample);
    }
    return sample;
  }
}

/**
 * Holds metrics by name. Pure data: no clock, no text. Throws a RangeError when a name is taken twice or a sample has
 * another number of label values than its family has names: both are mistakes in the program.
 */
export class MetricsRegistry {
  readonly #metrics = new Map<string, Counter | Gauge | Histogram>();

  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    return this.#add(new Counter({ name, help, labelNames }));
  }

  gauge(name: string, help: string, labelNames: readonly string[] = []): Gauge {
    return this.#add(new Gauge({ name, help, labelNames }));
  }

  histogram(
    name: string,
    help: string,
    buckets: readonly number[] = DEFAULT_BUCKETS,
    labelNames: readonly string[] = [],
  ): Histogram {
    return this.#add(new Histogram({ name, help, labelNames }, buckets));
  }

  /** Every family, sorted by name as Prometheus' own libraries do. */
  collect(): MetricFamily[] {
    return [...this.#metrics.keys()].sort().map((name) => this.#metrics.get(name)!.collect());
  }

  #add<M extends Counter | Gauge | Histogram>(metric: M): M {
    const { name } = metric.family;
    if (this.#metrics.has(name)) throw new RangeError(`Metric "${name}" is registered twice`);
    this.#metrics.set(name, metric);
    return metric;
  }
}

/** Seconds; `prometheus.DefBuckets`, which upstream uses for every latency that names no others. */
const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** `count` bounds from `start`, each `factor` times the one before. Source: `prometheus.ExponentialBuckets`. */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => start * factor ** index);
}

function scalar(samples: Map<string, ScalarSample>, family: FamilyBase, labelValues: LabelValues): ScalarSample {
  const key = labelValues.join("\0");
  let sample = samples.get(key);
  if (!sample) {
    requireLabels(family, labelValues);
    sample = { labelValues, value: 0 };
    samples.set(key, sample);
  }
  return sample;
}

function prune(samples: Map<string, ScalarSample>, isGone: (labelValues: LabelValues) => boolean): void {
  for (const [key, sample] of samples) if (isGone(sample.labelValues)) samples.delete(key);
}

function requireLabels(family: FamilyBase, labelValues: LabelValues): void {
  if (labelValues.length === family.labelNames.length) return;
  throw new RangeError(
    `Metric "${family.name}" has the labels [${family.labelNames.join(", ")}], got ${labelValues.length} values`,
  );
}
