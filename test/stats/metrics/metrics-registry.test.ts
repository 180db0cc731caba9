import { expect, test } from "bun:test";
import { registerKubeletMetrics, registerProbeMetrics } from "../../../src/stats/metrics/kubelet-metrics.ts";
import { exponentialBuckets, MetricsRegistry } from "../../../src/stats/metrics/metrics-registry.ts";
import { negotiateTextFormat, renderFamilies } from "../../../src/stats/metrics/prometheus-text.ts";
import recorded from "../../fixtures/oracle/stats/metrics.json";
import recordedProbes from "../../fixtures/oracle/stats/metrics-probes.json";

test("counters, gauges and histograms as Prometheus reads them", () => {
  const registry = new MetricsRegistry();
  registry.counter("b_total", "Things.", ["kind"]).inc(["x"], 2);
  registry.gauge("a", 'Level "now"\nor \\ later.').set(1.5);
  const histogram = registry.histogram("c_seconds", "Time.", [0.1, 1], ["op"]);
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe(value, ["get"]);
  expect(renderFamilies(registry.collect(), "prometheus")).toBe(`# HELP a Level "now"\\nor \\\\ later.
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
  const registry = new MetricsRegistry();
  registry.counter("b_total", "Things.").inc();
  registry.counter("kubelet_pleg_discard_events", "Lost.").inc();
  registry.histogram("c_seconds", 'A "time".', [1]).observe(3);
  expect(renderFamilies(registry.collect(), "openmetrics")).toBe(`# HELP b Things.
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

test("label values are escaped, odd numbers spelt out", () => {
  const registry = new MetricsRegistry();
  const gauge = registry.gauge("a", "A.", ["x"]);
  gauge.set(Number.POSITIVE_INFINITY, ['say "no"\n\\']);
  gauge.set(Number.NaN, ["nan"]);
  expect(renderFamilies(registry.collect(), "prometheus")).toContain(
    'a{x="say \\"no\\"\\n\\\\"} +Inf\na{x="nan"} NaN\n',
  );
});

test("without labels there is a sample from the start, with labels none, and an empty family is not shown", () => {
  const registry = new MetricsRegistry();
  registry.counter("plain_total", "P.");
  const labelled = registry.counter("labelled_total", "L.", ["x"]);
  const text = renderFamilies(registry.collect(), "prometheus");
  expect(text).toContain("plain_total 0\n");
  expect(text).not.toContain("labelled_total");
  expect(labelled.value(["y"])).toBe(0);
});

test("samples of what is gone are forgotten", () => {
  const counter = new MetricsRegistry().counter("a_total", "A.", ["pod"]);
  counter.inc(["one"]);
  counter.inc(["two"]);
  counter.prune(([pod]) => pod === "one");
  expect([...counter.collect().samples]).toEqual([{ labelValues: ["two"], value: 1 }]);
});

test("mistakes of the program are found at once", () => {
  const registry = new MetricsRegistry();
  const counter = registry.counter("a_total", "A.", ["x"]);
  expect(() => registry.gauge("a_total", "again")).toThrow('Metric "a_total" is registered twice');
  expect(() => counter.inc([])).toThrow('Metric "a_total" has the labels [x], got 0 values');
});

test("buckets that grow by a factor", () => {
  expect(exponentialBuckets(1, 2, 5)).toEqual([1, 2, 4, 8, 16]);
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
 * Families about Go, about an API server's client, or about parts that do not exist here. What went to the engine is counted
 * once, as runtime operations: `kubelet_docker_operations_*` ended with dockershim.
 */
const NOT_OURS =
  /^(go_|apiserver_|get_token_|rest_client_|kubelet_network_plugin_|kubelet_docker_operations_|storage_operation_status_count|process_|kubelet_container_log_)/;

test("the kubelet's own families have upstream's names, types, texts and labels", () => {
  const registry = new MetricsRegistry();
  const build = { version: "0.1.0", gitCommit: "", gitTreeState: "clean", buildDate: "" };
  registerKubeletMetrics(registry, { name: "node1", build });
  const ours = new Map(registry.collect().map((family) => [family.name, family]));
  for (const [name, want] of Object.entries(recorded as Recorded)) {
    if (NOT_OURS.test(name)) continue;
    const family = ours.get(name);
    expect({ name, type: family?.type, help: family?.help }).toEqual({
      name,
      type: want.type as never,
      help: want.help,
    });
    const labels = want.labelSets.map((set) => set.filter((label) => label !== "le")).at(-1)!;
    expect(family?.labelNames.toSorted()).toEqual(labels.toSorted());
  }
});

test("probes are counted under upstream's name", () => {
  const registry = new MetricsRegistry();
  registerProbeMetrics(registry).probes.inc(["www", "default", "web-node1", "uid", "Liveness", "successful"]);
  const [family] = registry.collect();
  const want = (recordedProbes as Recorded).prober_probe_total!;
  expect(family).toMatchObject({ name: "prober_probe_total", type: want.type as never, help: want.help });
  expect(family!.labelNames).toEqual(want.labelSets[0]!);
});
