import { expect, test } from "bun:test";
import { toKubeletMetrics, toProbeMetric } from "../../../src/stats/metrics/kubelet-metrics.ts";
import { Counter, Gauge, Histogram, metricsText, negotiateTextFormat } from "../../../src/stats/metrics/metric.ts";
import recorded from "../../fixtures/oracle/stats/metrics.json";
import recordedProbes from "../../fixtures/oracle/stats/metrics-probes.json";

test("counters, gauges and histograms as Prometheus reads them", () => {
  const counter = new Counter("b_total", "Things.", ["kind"]);
  counter.inc(["x"], 2);
  const gauge = new Gauge("a", 'Level "now"\nor \\ later.');
  gauge.set(1.5);
  const histogram = new Histogram("c_seconds", "Time.", ["op"], [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(value, ["get"]);
  expect(
    [...metricsText([gauge, counter, histogram], "prometheus")].join(""),
  ).toBe(`# HELP a Level "now"\\nor \\\\ later.
# TYPE a gauge
a 1.5
# HELP b_total Things.
# TYPE b_total counter
b_total{kind="x"} 2
# HELP c_seconds Time.
# TYPE c_seconds histogram
c_seconds_bucket{op="get",le="0.1"} 2
c_seconds_bucket{op="get",le="1"} 3
c_seconds_bucket{op="get",le="+Inf"} 4
c_seconds_sum{op="get"} 7.65
c_seconds_count{op="get"} 4
`);
});

test("OpenMetrics: families without _total, canonical bounds, an end; counters of another name stay as they are", () => {
  const counter = new Counter("b_total", "Things.");
  counter.inc();
  const histogram = new Histogram("c_seconds", 'A "time".', [], [1]);
  histogram.observe(3);
  const other = new Counter("kubelet_pleg_discard_events", "Lost.");
  other.inc();
  expect([...metricsText([counter, histogram, other], "openmetrics")].join("")).toBe(`# HELP b Things.
# TYPE b counter
b_total 1
# HELP c_seconds A \\"time\\".
# TYPE c_seconds histogram
c_seconds_bucket{le="1.0"} 0
c_seconds_bucket{le="+Inf"} 1
c_seconds_sum 3
c_seconds_count 1
# HELP kubelet_pleg_discard_events Lost.
# TYPE kubelet_pleg_discard_events unknown
kubelet_pleg_discard_events 1
# EOF
`);
});

test("label values are escaped, special numbers are written as words", () => {
  const gauge = new Gauge("a", "A.", ["x"]);
  gauge.set(Number.POSITIVE_INFINITY, ['say "no"\n\\']);
  gauge.set(Number.NaN, ["nan"]);
  expect([...metricsText([gauge], "prometheus")].join("")).toContain(
    'a{x="say \\"no\\"\\n\\\\"} +Inf\na{x="nan"} NaN\n',
  );
});

test("without labels there is a sample from the start, with labels none, and a metric without samples is not shown", () => {
  const metrics = [new Counter("plain_total", "P."), new Counter("labelled_total", "L.", ["x"])];
  const text = [...metricsText(metrics, "prometheus")].join("");
  expect(text).toContain("plain_total 0\n");
  expect(text).not.toContain("labelled_total");
});

test("a sample with other labels than its metric is a mistake of the program", () => {
  expect(() => new Counter("a_total", "A.", ["x"]).inc([])).toThrow(
    'Metric "a_total" has the labels [x], got 0 values',
  );
});

test.each([
  { accept: null, want: "prometheus" },
  { accept: "*/*", want: "prometheus" },
  { accept: "text/plain;version=0.0.4", want: "prometheus" },
  { accept: "application/openmetrics-text", want: "openmetrics" },
  { accept: "application/openmetrics-text; version=2.0.0", want: "prometheus" },
  {
    accept:
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    want: "openmetrics",
  },
  { accept: "text/plain, application/openmetrics-text;q=0.5", want: "prometheus" },
  {
    accept: "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited",
    want: "prometheus",
  },
] as const)("a scraper that accepts $accept gets $want", ({ accept, want }) => {
  expect(negotiateTextFormat(accept)).toBe(want);
});

type Recorded = Record<string, { type: string; help: string; labelSets: string[][] }>;

/**
 * Metrics of Go, about an API server's client, or about parts that do not exist here. What went to the engine is counted
 * once, as runtime operations: `kubelet_docker_operations_*` ended with dockershim.
 */
const NOT_OURS =
  /^(go_|apiserver_|get_token_|rest_client_|kubelet_network_plugin_|kubelet_docker_operations_|storage_operation_status_count|process_|kubelet_container_log_)/;

test("the kubelet's own metrics have upstream's names, types, texts and labels, each name once", () => {
  const build = { version: "0.1.0", gitCommit: "", gitTreeState: "clean", buildDate: "" };
  const all = [...Object.values(toKubeletMetrics({ name: "node1", build })), toProbeMetric()];
  const ours = new Map(all.map((metric) => [metric.name, metric]));
  expect(ours.size).toBe(all.length);
  for (const [name, want] of Object.entries({ ...recorded, ...recordedProbes } as Recorded)) {
    if (NOT_OURS.test(name)) continue;
    const { type, help, labelNames } = ours.get(name)!;
    expect({ name, type, help }).toEqual({ name, type: want.type as never, help: want.help });
    const labels = want.labelSets.map((set) => set.filter((label) => label !== "le")).at(-1)!;
    expect(labelNames.toSorted()).toEqual(labels.toSorted());
  }
});
