import type { Volume } from "../../base/api/pod.ts";
import { ARCHITECTURE } from "../../base/host/node-info.ts";
import { Counter, Gauge, Histogram, type Metric } from "./metric.ts";

/** Facts of the program. */
export interface BuildFacts {
  /** Semantic version, without a leading `v`. */
  version: string;
  /** 40 hex digits, or `unknown`. */
  gitCommit: string;
  /** `dirty`: built from a working tree with changes that were not committed. */
  gitTreeState: string;
  /** Date of that commit in RFC 3339, UTC (so that a build can be repeated byte for byte), or `unknown`. */
  buildDate: string;
}

/** The metrics that the kubelet's own code counts, by name; `/metrics` shows all of them. */
export type KubeletMetrics = ReturnType<typeof toKubeletMetrics>;

// Upstream's stability is a part of its help texts.
const stable = (name: string, help: string) => (name.startsWith("kubelet_ts_") ? help : `[ALPHA] ${help}`);
const counter = (name: string, help: string, labels?: string[]) => new Counter(name, stable(name, help), labels);
const gauge = (name: string, help: string, labels?: string[]) => new Gauge(name, stable(name, help), labels);
const histogram = (name: string, help: string, labels?: string[], buckets?: number[]) =>
  new Histogram(name, stable(name, help), labels, buckets);

const PER_POD = [1, 2, 4, 8, 16];
const SIGNAL = ["eviction_signal"];
const STATE = ["container_state"];
const HANDLER = ["runtime_handler"];
const VOLUME_OPERATION = ["operation_name", "volume_plugin"];
const REQUEST = ["long_running", "method", "path", "server_type"];
const OPERATION = ["operation_type"];

/** Upstream's names, help texts and labels, for the kubernetes-mixin. Durations are in seconds. Source: kubelet 1.20's `metrics` package. */
export function toKubeletMetrics(node: { name: string; build: BuildFacts }) {
  const metrics = {
    /** `create`, `update`, `destroy` of pod cgroups and those above them. */
    cgroupManagerDuration: histogram(
      "kubelet_cgroup_manager_duration_seconds",
      "Duration in seconds for cgroup manager operations. Broken down by method.",
      OPERATION,
    ),
    containersPerPod: histogram("kubelet_containers_per_pod_count", "The number of containers per pod.", [], PER_POD),
    eventLoopLag: histogram(
      "kubelet_ts_event_loop_lag_seconds",
      "How late timers of the process fired.",
      [],
      [0.001, 0.01, 0.05, 0.25, 1, 5],
    ),
    /** One count for each signal, e.g. `memory.available`. */
    evictions: counter("kubelet_evictions", "Cumulative number of pod evictions by eviction signal", SIGNAL),
    httpInflightRequests: gauge("kubelet_http_inflight_requests", "Number of the inflight http requests", REQUEST),
    httpRequestsDuration: histogram(
      "kubelet_http_requests_duration_seconds",
      "Duration in seconds to serve http requests",
      REQUEST,
    ),
    httpRequests: counter(
      "kubelet_http_requests_total",
      "Number of the http requests received since the server started",
      REQUEST,
    ),
    imageUpdates: counter(
      "kubelet_ts_image_updates_total",
      "Updates of images by result: kept, rolled-back, or error of a look-up or a pull.",
      ["namespace", "owner", "result"],
    ),
    rollbacks: counter("kubelet_ts_rollbacks_total", "Edits of pods that were rolled back.", ["namespace", "pod"]),
    nodeConfigError: gauge(
      "kubelet_node_config_error",
      "This metric is true (1) if the node is experiencing a configuration-related error, false (0) otherwise.",
    ),
    nodeName: gauge("kubelet_node_name", "The node's name. The count is always 1.", ["node"]),
    plegDiscardEvents: counter("kubelet_pleg_discard_events", "The number of discard events in PLEG."),
    plegLastSeen: gauge("kubelet_pleg_last_seen_seconds", "Timestamp in seconds when PLEG was last seen active."),
    plegRelistDuration: histogram(
      "kubelet_pleg_relist_duration_seconds",
      "Duration in seconds for relisting pods in PLEG.",
    ),
    plegRelistInterval: histogram(
      "kubelet_pleg_relist_interval_seconds",
      "Interval in seconds between relisting in PLEG.",
    ),
    podStartDuration: histogram(
      "kubelet_pod_start_duration_seconds",
      "Duration in seconds for a single pod to go from pending to running.",
    ),
    /** `create`, `update` or `sync`. */
    podWorkerDuration: histogram(
      "kubelet_pod_worker_duration_seconds",
      "Duration in seconds to sync a single pod. Broken down by operation type: create, update, or sync",
      OPERATION,
    ),
    podWorkerStartDuration: histogram(
      "kubelet_pod_worker_start_duration_seconds",
      "Duration in seconds from seeing a pod to starting a worker.",
    ),
    runPodSandboxDuration: histogram(
      "kubelet_run_podsandbox_duration_seconds",
      "Duration in seconds of the run_podsandbox operations. Broken down by RuntimeClass.Handler.",
      HANDLER,
    ),
    runPodSandboxErrors: counter(
      "kubelet_run_podsandbox_errors_total",
      "Cumulative number of the run_podsandbox operation errors by RuntimeClass.Handler.",
      HANDLER,
    ),
    /** `running`, `exited`, `created`, `unknown`. */
    runningContainers: gauge("kubelet_running_containers", "Number of containers currently running", STATE),
    runningPods: gauge("kubelet_running_pods", "Number of pods currently running"),
    /** CRI's words: `run_podsandbox`, `create_container`, `start_container`, `stop_container`, `pull_image`, … */
    runtimeOperations: counter(
      "kubelet_runtime_operations_total",
      "Cumulative number of runtime operations by operation type.",
      OPERATION,
    ),
    runtimeOperationErrors: counter(
      "kubelet_runtime_operations_errors_total",
      "Cumulative number of runtime operation errors by operation type.",
      OPERATION,
    ),
    runtimeOperationDuration: histogram(
      "kubelet_runtime_operations_duration_seconds",
      "Duration in seconds of runtime operations. Broken down by operation type.",
      OPERATION,
    ),
    startedContainers: counter("kubelet_started_containers_total", "Cumulative number of containers started"),
    startedPods: counter("kubelet_started_pods_total", "Cumulative number of pods started"),
    storageOperationDuration: histogram(
      "storage_operation_duration_seconds",
      "Storage operation duration",
      VOLUME_OPERATION,
      [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600],
    ),
    storageOperationErrors: counter("storage_operation_errors_total", "Storage operation errors", VOLUME_OPERATION),
    /** `state` is `desired_state_of_world` or `actual_state_of_world`. */
    volumeTotal: gauge("volume_manager_total_volumes", "Number of volumes in Volume Manager", ["plugin_name", "state"]),
    buildInfo: gauge(
      "kubernetes_build_info",
      "A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
      BUILD_LABELS,
    ),
  } satisfies Record<string, Metric>;
  const [major = "", minor = ""] = node.build.version.split(".");
  const { buildDate, gitCommit, gitTreeState, version } = node.build;
  const platform = `linux/${ARCHITECTURE}`;
  const go = `bun${process.versions.bun ?? ""}`;
  metrics.buildInfo.set(1, [buildDate, "bun", gitCommit, gitTreeState, `v${version}`, go, major, minor, platform]);
  metrics.nodeName.set(1, [node.name]);
  metrics.nodeConfigError.set(0);
  metrics.runningPods.set(0);
  return metrics;
}

const BUILD_LABELS = [
  ...["build_date", "compiler", "git_commit", "git_tree_state", "git_version", "go_version", "major", "minor"],
  "platform",
];

/** One step at the engine has ended. @param operation CRI's word for it */
export function countOperation(metrics: KubeletMetrics, operation: string, durationMs: number, failed: boolean): void {
  metrics.runtimeOperations.inc([operation]);
  metrics.runtimeOperationDuration.observe(durationMs / 1000, [operation]);
  if (failed) metrics.runtimeOperationErrors.inc([operation]);
  if (operation === "run_podsandbox") {
    metrics.runPodSandboxDuration.observe(durationMs / 1000, [""]);
    if (failed) metrics.runPodSandboxErrors.inc([""]);
    else metrics.startedPods.inc();
  }
  if (operation === "start_container" && !failed) metrics.startedContainers.inc();
}

/** The set-up of a volume has ended, also of one that was ready. */
export function countVolumeSetUp(metrics: KubeletMetrics, volume: Volume, durationMs: number, failed: boolean): void {
  const labels = ["volume_mount", volumePluginOf(volume)];
  if (failed) metrics.storageOperationErrors.inc(labels);
  else metrics.storageOperationDuration.observe(durationMs / 1000, labels);
}

/** Upstream's name of the plugin that makes a volume. */
export function volumePluginOf(volume: Volume): string {
  const { name: _, ...source } = volume;
  const kind = Object.keys(source)[0] ?? "emptyDir";
  return `kubernetes.io/${VOLUME_PLUGINS[kind] ?? kind.toLowerCase()}`;
}

const VOLUME_PLUGINS: Readonly<Record<string, string>> = {
  emptyDir: "empty-dir",
  hostPath: "host-path",
  downwardAPI: "downward-api",
  persistentVolumeClaim: "local-volume",
};

/** The one metric of `/metrics/probes`. `probe_type` is Liveness, Readiness or Startup; `result` is successful, failed or unknown. */
export const toProbeMetric = () =>
  counter(
    "prober_probe_total",
    "Cumulative number of a liveness, readiness or startup probe for a container by result.",
    ["container", "namespace", "pod", "pod_uid", "probe_type", "result"],
  );
