import type { Pod } from "../base/api/pod.ts";
import type { ImageUpdateReport } from "../kubelet/images/image-update-report.ts";
import { type MetricFamily, MetricsRegistry } from "../stats/metrics/metrics-registry.ts";

const LABELS = ["namespace", "pod"];

/** The families of `/metrics` about the state of each pod. */
export function podFamilies(pods: readonly Pod[]): MetricFamily[] {
  const registry = new MetricsRegistry();
  const ready = registry.gauge(
    "kubelet_ts_pod_ready",
    "Whether the pod is Ready (1) or not (0); ended pods are left out.",
    LABELS,
  );
  const restarts = registry.counter(
    "kubelet_ts_container_restarts_total",
    "Restarts of the container since the pod was created.",
    [...LABELS, "container"],
  );
  const waits = registry.gauge(
    "kubelet_ts_pod_waits_for_dependency",
    "The pod does not start because a pod that it depends on is not as required.",
    LABELS,
  );
  const rolledBack = registry.gauge(
    "kubelet_ts_pod_rolled_back",
    "The last edit of the pod was rolled back, and an earlier revision runs.",
    LABELS,
  );
  for (const { metadata, status } of pods) {
    const labels = [metadata.namespace ?? "default", metadata.name ?? ""];
    const conditions = status?.conditions ?? [];
    const hasEnded = status?.phase === "Succeeded" || status?.phase === "Failed";
    if (!hasEnded) {
      ready.set(conditions.some(({ type, status: is }) => type === "Ready" && is === "True") ? 1 : 0, labels);
    }
    for (const { name, restartCount } of [
      ...(status?.initContainerStatuses ?? []),
      ...(status?.containerStatuses ?? []),
    ]) {
      restarts.inc([...labels, name], restartCount);
    }
    for (const { type, status: is, reason } of conditions) {
      if (is !== "False") continue;
      if (type === "DependenciesMet") waits.set(1, labels);
      if (type === "ManifestLive" && reason === "RolledBack") rolledBack.set(1, labels);
    }
  }
  return registry.collect();
}

/** The families of `/metrics` about images that are kept up to date. */
export function imageUpdateFamilies(reports: readonly ImageUpdateReport[]): MetricFamily[] {
  const registry = new MetricsRegistry();
  const state = registry.gauge(
    "kubelet_ts_image_update_state",
    "State of an image that is kept up to date: waiting, pinned, new, held, trial or failed.",
    ["namespace", "owner", "image", "state"],
  );
  for (const { owner, image, state: word } of reports) {
    const slash = owner.indexOf("/");
    state.set(1, [owner.slice(0, slash), owner.slice(slash + 1), image, word]);
  }
  return registry.collect();
}
