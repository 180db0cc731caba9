import type { PodEventRecorder } from "../kubelet/event-recorder.ts";
import { type MetricFamily, MetricsRegistry } from "../metrics/metrics-registry.ts";

/** The families of `/metrics` that tell how many events there were. */
export function eventFamilies({ revision, dropped }: Pick<PodEventRecorder, "revision" | "dropped">): MetricFamily[] {
  const registry = new MetricsRegistry();
  registry.counter("kubelet_ts_events_total", "Events of pods that were recorded.").inc([], revision);
  registry
    .counter("kubelet_ts_events_dropped_total", "Events that came faster than --event-qps and --event-burst allow.")
    .inc([], dropped);
  return registry.collect();
}
