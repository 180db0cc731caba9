import type { Pod } from "../base/api/pod.ts";
import type { Configuration, ConfigurationStatus } from "../base/model/configuration.ts";
import { statusesOf } from "../base/model/pod.ts";
import type { ImageUpdateReport } from "../kubelet/images/image-update-targets.ts";
import type { ManifestRejection } from "../sources/desired-state-feed.ts";
import type { SourceStatus } from "../sources/source-set.ts";
import { labelText, type Metric, metricsOf } from "../stats/metrics/metric.ts";

/** The metrics of `/metrics` about the state of each pod; pods that ended have no readiness. */
export function podMetrics(pods: readonly Pod[]): Metric[] {
  const labelsOf = ({ metadata }: Pod) => [metadata.namespace ?? "default", metadata.name ?? ""];
  const ofPod = metricsOf(pods, (pod) => labelText(["namespace", "pod"], labelsOf(pod)));
  const containers = pods.flatMap((pod) =>
    statusesOf(pod.status).map(({ name, restartCount }) => ({ labels: [...labelsOf(pod), name], restartCount })),
  );
  const ofContainer = metricsOf(containers, ({ labels }) => labelText(["namespace", "pod", "container"], labels));
  const has = ({ status }: Pod, wanted: { type: string; status: string; reason?: string }) =>
    status?.conditions?.some(
      ({ type, status: is, reason }) =>
        type === wanted.type && is === wanted.status && reason === (wanted.reason ?? reason),
    );
  return [
    ofPod(
      "gauge",
      "kubelet_ts_pod_ready",
      "Whether the pod is Ready (1) or not (0); ended pods are left out.",
      (pod) =>
        pod.status?.phase === "Succeeded" || pod.status?.phase === "Failed"
          ? undefined
          : Number(has(pod, { type: "Ready", status: "True" }) ?? false),
    ),
    ofContainer(
      "counter",
      "kubelet_ts_container_restarts_total",
      "Restarts of the container since the pod was created.",
      ({ restartCount }) => restartCount,
    ),
    ofPod(
      "gauge",
      "kubelet_ts_pod_waits_for_dependency",
      "The pod does not start because a pod that it depends on is not as required.",
      (pod) => (has(pod, { type: "DependenciesMet", status: "False" }) ? 1 : undefined),
    ),
    ofPod(
      "gauge",
      "kubelet_ts_pod_rolled_back",
      "The last edit of the pod was rolled back, and an earlier revision runs.",
      (pod) => (has(pod, { type: "ManifestLive", status: "False", reason: "RolledBack" }) ? 1 : undefined),
    ),
  ];
}

/** The metrics of `/metrics` about images that are kept up to date. */
export function imageUpdateMetrics(reports: readonly Pick<ImageUpdateReport, "owner" | "image" | "state">[]): Metric[] {
  const labels = reports.map(({ owner, image, state }) => {
    const slash = owner.indexOf("/");
    return labelText(
      ["namespace", "owner", "image", "state"],
      [owner.slice(0, slash), owner.slice(slash + 1), image, state],
    );
  });
  const ofImage = metricsOf([...new Set(labels)], (text) => text);
  return [
    ofImage(
      "gauge",
      "kubelet_ts_image_update_state",
      "State of an image that is kept up to date: waiting, pinned, new, held, trial or failed.",
      () => 1,
    ),
  ];
}

/** The metrics of `/metrics` about the state of each manifest source. URLs are masked. */
export function sourceMetrics(
  sources: readonly SourceStatus[],
  rejections: readonly Pick<ManifestRejection, "source" | "finding">[],
): Metric[] {
  const ofSource = metricsOf(sources, ({ kind, name }) => labelText(["kind", "source"], [kind, name]));
  const errors = new Map<string, number>();
  for (const { source, finding } of rejections) {
    const labels = labelText(["source", "file"], [source, finding.file]);
    errors.set(labels, (errors.get(labels) ?? 0) + 1);
  }
  const ofFile = metricsOf([...errors], ([labels]) => labels);
  return [
    ofSource(
      "gauge",
      "kubelet_ts_source_up",
      "Whether the last read of the manifest source succeeded (1) or not (0).",
      ({ state }) => (state === "ok" ? 1 : 0),
    ),
    ofSource(
      "gauge",
      "kubelet_ts_source_pods",
      "Pods the manifest source wants, as far as is known.",
      ({ pods }) => pods,
    ),
    ofSource(
      "gauge",
      "kubelet_ts_source_last_success_timestamp_seconds",
      "Time of the last successful read of the manifest source, in seconds since the epoch.",
      ({ lastSuccess }) => lastSuccess && lastSuccess.getTime() / 1000,
    ),
    ofSource("counter", "kubelet_ts_source_reads_total", "Reads of the manifest source.", ({ reads }) => reads),
    ofSource(
      "counter",
      "kubelet_ts_source_failures_total",
      "Reads of the manifest source that failed.",
      ({ failures }) => failures,
    ),
    ofFile(
      "gauge",
      "kubelet_ts_manifests_rejected",
      "Errors in a manifest file that is refused at present; its pods keep running as before.",
      ([, count]) => count,
    ),
  ];
}

/** The upstream kubelet's metrics that name its configurations. @param status undefined without configuration files */
export function configurationMetrics(status: ConfigurationStatus | undefined): Metric[] {
  const metric = (name: string, help: string, configuration: Configuration | undefined) =>
    metricsOf(configuration ? [configuration] : [], ({ id, files }) =>
      labelText(
        ["node_config_source", "node_config_uid", "node_config_resource_version", "node_config_kubelet_key"],
        ["local", id, id, files.map(({ path }) => path).join(",")],
      ),
    )("gauge", `kubelet_node_config_${name}`, `[ALPHA] ${help} The count is always 1.`, () => 1);
  return [
    metric("assigned", "The node's understanding of intended config.", status?.assigned),
    metric("active", "The config source the node is actively using.", status?.active),
    metric(
      "last_known_good",
      "The config source the node will fall back to when it encounters certain errors.",
      status?.lastKnownGood,
    ),
  ];
}

/** Figures of the process that it counts anyway. @param timers undefined where they are not counted */
export function countedMetrics(events: { revision: number; dropped: number }, timers: number | undefined): Metric[] {
  const ofProcess = metricsOf([events], () => "");
  return [
    ofProcess("counter", "kubelet_ts_events_total", "Events of pods that were recorded.", ({ revision }) => revision),
    ofProcess(
      "counter",
      "kubelet_ts_events_dropped_total",
      "Events that came faster than --event-qps and --event-burst allow.",
      ({ dropped }) => dropped,
    ),
    ofProcess("gauge", "kubelet_ts_timers", "Timers of the process that have not fired yet.", () => timers),
  ];
}
