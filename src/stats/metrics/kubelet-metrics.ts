import { exponentialBuckets, type MetricsRegistry } from "./metrics-registry.ts";

/** Facts of the program for `kubernetes_build_info`. */
interface BuildFacts {
  /** Semantic version, without `v`. */
  version: string;
  gitCommit: string;
  gitTreeState: string;
  buildDate: string;
}

/**
 * Every metric the kubelet's own code counts, under upstream's names, help texts and labels, so that the
 * kubernetes-mixin's dashboards and rules work. `/metrics` shows them; increments are the callers' business.
 */
export type KubeletMetrics = ReturnType<typeof registerKubeletMetrics>;

/** Registers the metrics of `/metrics`. Durations are observed in seconds. Source: kubelet 1.20's `metrics` package. */
export function registerKubeletMetrics(registry: MetricsRegistry, node: { name: string; build: BuildFacts }) {
  const alpha = (text: string) => `[ALPHA] ${text}`;
  const metrics = {
    /** `create`, `update`, `destroy` of pod cgroups and those above them. */
    cgroupManagerDuration: registry.histogram(
      "kubelet_cgroup_manager_duration_seconds",
      alpha("Duration in seconds for cgroup manager operations. Broken down by method."),
      undefined,
      ["operation_type"],
    ),
    containersPerPod: registry.histogram(
      "kubelet_containers_per_pod_count",
      alpha("The number of containers per pod."),
      exponentialBuckets(1, 2, 5),
    ),
    /** Lateness of timers. */
    eventLoopLag: registry.histogram(
      "kubelet_ts_event_loop_lag_seconds",
      "How late timers of the process fired.",
      [0.001, 0.01, 0.05, 0.25, 1, 5],
    ),
    /** One count for each signal, e.g. `memory.available`. */
    evictions: registry.counter("kubelet_evictions", alpha("Cumulative number of pod evictions by eviction signal"), [
      "eviction_signal",
    ]),
    httpInflightRequests: registry.gauge(
      "kubelet_http_inflight_requests",
      alpha("Number of the inflight http requests"),
      ["long_running", "method", "path", "server_type"],
    ),
    httpRequestsDuration: registry.histogram(
      "kubelet_http_requests_duration_seconds",
      alpha("Duration in seconds to serve http requests"),
      undefined,
      ["long_running", "method", "path", "server_type"],
    ),
    httpRequests: registry.counter(
      "kubelet_http_requests_total",
      alpha("Number of the http requests received since the server started"),
      ["long_running", "method", "path", "server_type"],
    ),
    imageUpdates: registry.counter(
      "kubelet_ts_image_updates_total",
      "Updates of images by result: kept, rolled-back, or error of a look-up or a pull.",
      ["namespace", "owner", "result"],
    ),
    rollbacks: registry.counter("kubelet_ts_rollbacks_total", "Edits of pods that were rolled back.", [
      "namespace",
      "pod",
    ]),
    nodeConfigError: registry.gauge(
      "kubelet_node_config_error",
      alpha("This metric is true (1) if the node is experiencing a configuration-related error, false (0) otherwise."),
    ),
    nodeName: registry.gauge("kubelet_node_name", alpha("The node's name. The count is always 1."), ["node"]),
    plegDiscardEvents: registry.counter("kubelet_pleg_discard_events", alpha("The number of discard events in PLEG.")),
    /** Seconds since the epoch. */
    plegLastSeen: registry.gauge(
      "kubelet_pleg_last_seen_seconds",
      alpha("Timestamp in seconds when PLEG was last seen active."),
    ),
    plegRelistDuration: registry.histogram(
      "kubelet_pleg_relist_duration_seconds",
      alpha("Duration in seconds for relisting pods in PLEG."),
    ),
    plegRelistInterval: registry.histogram(
      "kubelet_pleg_relist_interval_seconds",
      alpha("Interval in seconds between relisting in PLEG."),
    ),
    podStartDuration: registry.histogram(
      "kubelet_pod_start_duration_seconds",
      alpha("Duration in seconds for a single pod to go from pending to running."),
    ),
    /** `create`, `update` or `sync`. */
    podWorkerDuration: registry.histogram(
      "kubelet_pod_worker_duration_seconds",
      alpha("Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync"),
      undefined,
      ["operation_type"],
    ),
    podWorkerStartDuration: registry.histogram(
      "kubelet_pod_worker_start_duration_seconds",
      alpha("Duration in seconds from seeing a pod to starting a worker."),
    ),
    runPodSandboxDuration: registry.histogram(
      "kubelet_run_podsandbox_duration_seconds",
      alpha("Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler."),
      undefined,
      ["runtime_handler"],
    ),
    runPodSandboxErrors: registry.counter(
      "kubelet_run_podsandbox_errors_total",
      alpha("Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler."),
      ["runtime_handler"],
    ),
    /** `running`, `exited`, `created`, `unknown`. */
    runningContainers: registry.gauge("kubelet_running_containers", alpha("Number of containers currently running"), [
      "container_state",
    ]),
    runningPods: registry.gauge("kubelet_running_pods", alpha("Number of pods currently running")),
    /** CRI's words: `run_podsandbox`, `create_container`, `start_container`, `stop_container`, `pull_image`, … */
    runtimeOperations: registry.counter(
      "kubelet_runtime_operations_total",
      alpha("Cumulative number of runtime operations by operation type."),
      ["operation_type"],
    ),
    runtimeOperationErrors: registry.counter(
      "kubelet_runtime_operations_errors_total",
      alpha("Cumulative number of runtime operation errors by operation type."),
      ["operation_type"],
    ),
    runtimeOperationDuration: registry.histogram(
      "kubelet_runtime_operations_duration_seconds",
      alpha("Duration in seconds of runtime operations. Broken down by operation type."),
      undefined,
      ["operation_type"],
    ),
    startedContainers: registry.counter(
      "kubelet_started_containers_total",
      alpha("Cumulative number of containers started"),
    ),
    startedPods: registry.counter("kubelet_started_pods_total", alpha("Cumulative number of pods started")),
    storageOperationDuration: registry.histogram(
      "storage_operation_duration_seconds",
      alpha("Storage operation duration"),
      [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
      ["operation_name", "volume_plugin"],
    ),
    storageOperationErrors: registry.counter("storage_operation_errors_total", alpha("Storage operation errors"), [
      "operation_name",
      "volume_plugin",
    ]),
    /** `state` is `desired_state_of_world` or `actual_state_of_world`. */
    volumeTotal: registry.gauge("volume_manager_total_volumes", alpha("Number of volumes in Volume Manager"), [
      "plugin_name",
      "state",
    ]),
  };
  const buildInfo = registry.gauge(
    "kubernetes_build_info",
    alpha(
      "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
    ),
    BUILD_LABELS,
  );
  const [major = "", minor = ""] = node.build.version.split(".");
  const { buildDate, gitCommit, gitTreeState } = node.build;
  const platform = `linux/${process.arch === "x64" ? "amd64" : process.arch}`;
  buildInfo.set(1, [
    buildDate,
    "bun",
    gitCommit,
    gitTreeState,
    `v${node.build.version}`,
    `bun${process.versions.bun ?? ""}`,
    major,
    minor,
    platform,
  ]);
  metrics.nodeName.set(1, [node.name]);
  metrics.nodeConfigError.set(0);
  metrics.runningPods.set(0);
  return metrics;
}

const BUILD_LABELS = [
  "build_date",
  "compiler",
  "git_commit",
  "git_tree_state",
  "git_version",
  "go_version",
  "major",
  "minor",
  "platform",
];

/** The one metric of `/metrics/probes`; it has a registry of its own. */
/** `probe_type` is Liveness, Readiness or Startup; `result` is successful, failed or unknown. */
export function registerProbeMetrics(registry: MetricsRegistry) {
  return {
    probes: registry.counter(
      "prober_probe_total",
      "[ALPHA] Cumulative number of a liveness, readiness or startup probe for a container by result.",
      ["container", "namespace", "pod", "pod_uid", "probe_type", "result"],
    ),
  };
}
