import type { ManifestRejection } from "../sources/desired-state-feed.ts";
import type { SourceStatus } from "../sources/source-set.ts";
import { type MetricFamily, MetricsRegistry } from "../stats/metrics/metrics-registry.ts";

const LABELS = ["kind", "source"];

/** The families of `/metrics` about the state of each manifest source. URLs are masked. */
export function sourceFamilies(
  sources: readonly SourceStatus[],
  rejections: readonly ManifestRejection[] = [],
): MetricFamily[] {
  const registry = new MetricsRegistry();
  const up = registry.gauge(
    "kubelet_ts_source_up",
    "Whether the last read of the manifest source succeeded (1) or not (0).",
    LABELS,
  );
  const pods = registry.gauge("kubelet_ts_source_pods", "Pods the manifest source wants, as far as is known.", LABELS);
  const lastSuccess = registry.gauge(
    "kubelet_ts_source_last_success_timestamp_seconds",
    "Time of the last successful read of the manifest source, in seconds since the epoch.",
    LABELS,
  );
  const reads = registry.counter("kubelet_ts_source_reads_total", "Reads of the manifest source.", LABELS);
  const failures = registry.counter(
    "kubelet_ts_source_failures_total",
    "Reads of the manifest source that failed.",
    LABELS,
  );
  for (const source of sources) {
    const labels = [source.kind, source.name];
    up.set(source.state === "ok" ? 1 : 0, labels);
    pods.set(source.pods, labels);
    if (source.lastSuccess) lastSuccess.set(source.lastSuccess.getTime() / 1000, labels);
    reads.inc(labels, source.reads);
    failures.inc(labels, source.failures);
  }
  const rejected = registry.gauge(
    "kubelet_ts_manifests_rejected",
    "Errors in a manifest file that is refused at present; its pods keep running as before.",
    ["source", "file"],
  );
  const counts = new Map<string, { labels: string[]; count: number }>();
  for (const { source, finding } of rejections) {
    const labels = [source, finding.file];
    const known = counts.get(labels.join("\0"));
    counts.set(labels.join("\0"), { labels, count: (known?.count ?? 0) + 1 });
  }
  for (const { labels, count } of counts.values()) rejected.set(count, labels);
  return registry.collect();
}
