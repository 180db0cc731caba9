import { type KubeletMetrics, toKubeletMetrics } from "../../src/stats/metrics/kubelet-metrics.ts";
import { metricText } from "../../src/stats/metrics/metric.ts";

/** The metrics that the kubelet's own code counts. */
export const aMetrics = (): KubeletMetrics =>
  toKubeletMetrics({ name: "node1", build: { version: "0.1.0", gitCommit: "", gitTreeState: "clean", buildDate: "" } });

/** Samples of one metric, without its name and without buckets, as a scraper reads them. */
export const samplesOf = (metric: Parameters<typeof metricText>[0]): string[] =>
  metricText(metric, "prometheus")
    .split("\n")
    .filter((line) => line.startsWith(metric.name) && !line.includes("_bucket"))
    .map((line) => line.slice(metric.name.length));
