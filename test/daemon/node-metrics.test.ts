import { expect, test } from "bun:test";
import type { PodStatus } from "../../src/base/api/pod.ts";
import { configurationMetrics, imageUpdateMetrics, podMetrics, sourceMetrics } from "../../src/daemon/node-metrics.ts";
import { type Metric, metricsText } from "../../src/stats/metrics/metric.ts";
import { aPod } from "../support/builders.ts";

const samplesOf = (metrics: readonly Metric[]) =>
  [...metricsText(metrics, "prometheus")]
    .join("")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));

const pod = (name: string, status: Partial<PodStatus>) => ({
  ...aPod({}, { name, namespace: "shop" }),
  status: status as PodStatus,
});

test("readiness, restarts, waits and rollbacks of pods", () => {
  const pods = [
    pod("ready", { phase: "Running", conditions: [{ type: "Ready", status: "True" }] }),
    pod("waits", { phase: "Pending", conditions: [{ type: "DependenciesMet", status: "False" }] }),
    pod("back", { phase: "Running", conditions: [{ type: "ManifestLive", status: "False", reason: "RolledBack" }] }),
    pod("paused", { conditions: [{ type: "ManifestLive", status: "False", reason: "RolloutPaused" }] }),
    pod("done", { phase: "Succeeded", containerStatuses: [{ name: "app", restartCount: 3 } as never] }),
  ];
  expect(samplesOf(podMetrics(pods))).toEqual([
    'kubelet_ts_pod_ready{namespace="shop",pod="ready"} 1',
    'kubelet_ts_pod_ready{namespace="shop",pod="waits"} 0',
    'kubelet_ts_pod_ready{namespace="shop",pod="back"} 0',
    'kubelet_ts_pod_ready{namespace="shop",pod="paused"} 0',
    'kubelet_ts_container_restarts_total{namespace="shop",pod="done",container="app"} 3',
    'kubelet_ts_pod_waits_for_dependency{namespace="shop",pod="waits"} 1',
    'kubelet_ts_pod_rolled_back{namespace="shop",pod="back"} 1',
  ]);
});

test("images that are kept up to date by state, each once", () => {
  const report = { owner: "shop/Deployment/web", image: "web:1", state: "held" } as const;
  expect(samplesOf(imageUpdateMetrics([report, report]))).toEqual([
    'kubelet_ts_image_update_state{namespace="shop",owner="Deployment/web",image="web:1",state="held"} 1',
  ]);
});

test("each source has its state, its pods and its counts; errors are counted by file", () => {
  const finding = (file: string) =>
    ({ code: "syntax", severity: "error", file, document: 1, line: 1, column: 1, field: "", message: "no" }) as const;
  const rejections = ["/m/a.yaml", "/m/a.yaml", "/m/b.yaml"].map((file) => ({ source: "/m", finding: finding(file) }));
  const metrics = sourceMetrics(
    [
      { kind: "file", name: "/m", state: "ok", pods: 3, reads: 7, failures: 1, lastSuccess: new Date(5_000) },
      { kind: "http", name: "http://***@h/", state: "restored", message: "no", pods: 2, reads: 4, failures: 4 },
    ],
    rejections,
  );
  expect(samplesOf(metrics)).toEqual([
    'kubelet_ts_source_up{kind="file",source="/m"} 1',
    'kubelet_ts_source_up{kind="http",source="http://***@h/"} 0',
    'kubelet_ts_source_pods{kind="file",source="/m"} 3',
    'kubelet_ts_source_pods{kind="http",source="http://***@h/"} 2',
    'kubelet_ts_source_last_success_timestamp_seconds{kind="file",source="/m"} 5',
    'kubelet_ts_source_reads_total{kind="file",source="/m"} 7',
    'kubelet_ts_source_reads_total{kind="http",source="http://***@h/"} 4',
    'kubelet_ts_source_failures_total{kind="file",source="/m"} 1',
    'kubelet_ts_source_failures_total{kind="http",source="http://***@h/"} 4',
    'kubelet_ts_manifests_rejected{source="/m",file="/m/a.yaml"} 2',
    'kubelet_ts_manifests_rejected{source="/m",file="/m/b.yaml"} 1',
  ]);
});

test("each configuration is named by its files and their hash; without files there is none", () => {
  const files = [{ path: "/etc/c.yaml", text: "" }];
  const status = { assigned: { id: "b", files }, active: { id: "a", files }, lastKnownGood: undefined, error: "no" };
  const source = (id: string) =>
    `{node_config_source="local",node_config_uid="${id}",node_config_resource_version="${id}",node_config_kubelet_key="/etc/c.yaml"} 1`;
  expect(samplesOf(configurationMetrics(status))).toEqual([
    `kubelet_node_config_assigned${source("b")}`,
    `kubelet_node_config_active${source("a")}`,
  ]);
  expect(samplesOf(configurationMetrics(undefined))).toEqual([]);
});
