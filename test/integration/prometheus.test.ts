import { beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import { freePorts, type TestNode } from "../support/test-node.ts";

const ENDPOINTS = ["/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes"];

/** The findings of promtool about names that are upstream's; dashboards ask for exactly these. */
const UPSTREAMS_OWN = [
  "cadvisor_version_info label names should be written in 'snake_case' not 'camelCase'",
  'container_fs_inodes_total non-counter metrics should not have "_total" suffix',
  'container_memory_failcnt counter metrics should have "_total" suffix',
  'container_hugetlb_failcnt counter metrics should have "_total" suffix',
  'kubelet_evictions counter metrics should have "_total" suffix',
  'kubelet_pleg_discard_events counter metrics should have "_total" suffix',
];

const hasTools = Bun.which("promtool") !== null && Bun.which("prometheus") !== null;
if (!hasTools) {
  if (process.env.CI) throw new Error("The tests with Prometheus need Debian's package prometheus.");
  console.warn("SKIPPED the tests with Prometheus: apt-get install prometheus");
}

async function aBusyNode(): Promise<TestNode> {
  const node = testNode();
  const resources = { limits: { cpu: "200m", memory: "64Mi" } };
  const livenessProbe = { exec: { command: ["true"] }, periodSeconds: 1 };
  node.writeManifest("web.yaml", sleeper("web", { resources, livenessProbe }));
  await node.start();
  await node.runningContainer("app");
  await node.until("a probe", async () => (await node.read("/metrics/probes")).includes("prober_probe_total{"));
  return node;
}

describeWithEngine("Prometheus", () => {
  let node: TestNode;
  beforeAll(async () => {
    node = await aBusyNode();
  });

  test.if(hasTools)("promtool finds no fault with our texts but upstream's names", async () => {
    for (const path of ENDPOINTS) {
      const promtool = Bun.spawnSync(["promtool", "check", "metrics"], {
        stdin: Buffer.from(await node.read(path)),
      });
      const complaints = `${promtool.stdout}${promtool.stderr}`.split("\n").filter(Boolean);
      expect({ path, complaints: complaints.filter((line) => !UPSTREAMS_OWN.includes(line)) }).toEqual({
        path,
        complaints: [],
      });
    }
  });

  test.if(hasTools)("scrapes all four endpoints, compressed and as OpenMetrics, and finds the pod", async () => {
    const [port] = freePorts(1) as [number];
    const directory = join(node.directory, "prometheus");
    mkdirSync(directory);
    const config = join(directory, "prometheus.yml");
    const jobs = ENDPOINTS.map(
      (path) =>
        `- job_name: ${path.slice(1).replaceAll("/", "-")}\n  metrics_path: ${path}\n  static_configs: [{targets: ["127.0.0.1:${node.readOnlyPort}"]}]\n`,
    );
    writeFileSync(config, `global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n${jobs.join("")}`);
    const prometheus = Bun.spawn(
      [
        "prometheus",
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(directory, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=error",
      ],
      { stdout: "ignore", stderr: "pipe" },
    );
    try {
      interface Target {
        scrapePool: string;
        health: string;
        lastError: string;
      }
      const api = async <T>(path: string) =>
        ((await (await fetch(`http://127.0.0.1:${port}/api/v1/${path}`)).json()) as { data: T }).data;
      let targets: Target[] = [];
      await node.until("four targets that are up", async () => {
        targets = (await api<{ activeTargets: Target[] }>("targets")).activeTargets;
        const failed = targets.find(({ health }) => health === "down");
        if (failed) throw new Error(`${failed.scrapePool}: ${failed.lastError}`);
        return targets.length === 4 && targets.every(({ health }) => health === "up");
      });
      const value = async (query: string) => {
        const { result } = await api<{ result: { value: [number, string] }[] }>(
          `query?query=${encodeURIComponent(query)}`,
        );
        return result.map((sample) => Number(sample.value[1]));
      };
      // Questions as the kubernetes-mixin asks them.
      const questions = [
        'container_memory_working_set_bytes{container="app",image!=""}',
        'sum by (pod) (container_spec_memory_limit_bytes{container!="",pod=~"web-.*"})',
        'container_cpu_usage_seconds_total{container="app",cpu="total"}',
        "node_cpu_usage_seconds_total",
        'pod_memory_working_set_bytes{pod=~"web-.*"}',
        "sum(kubelet_running_pods)",
        "histogram_quantile(0.99, sum by (le) (kubelet_pleg_relist_duration_seconds_bucket))",
        "histogram_quantile(0.99, sum by (le) (kubelet_pod_worker_duration_seconds_bucket)) * on () kubelet_node_name",
        'kubelet_pod_worker_duration_seconds_count{operation_type="create"}',
        "kubelet_pod_start_duration_seconds_count > 0",
        'kubelet_cgroup_manager_duration_seconds_count{operation_type="create"}',
        'prober_probe_total{probe_type="Liveness",result="successful"}',
        'process_resident_memory_bytes{job="metrics"}',
        "machine_memory_bytes",
      ];
      for (const question of questions) {
        const found = await node.until(question, async () => {
          const values = await value(question);
          return values.length > 0 && values;
        });
        expect({ question, number: found.every((sample) => !Number.isNaN(sample)) }).toEqual({
          question,
          number: true,
        });
      }
    } finally {
      prometheus.kill();
      await prometheus.exited;
    }
  });
});
