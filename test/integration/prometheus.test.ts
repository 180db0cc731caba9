import { beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { podSpec, sleeper } from "../support/manifests.ts";
import { tempDirs } from "../support/temp-dir.ts";
import type { TestNode } from "../support/test-node.ts";
import { freePorts } from "../support/test-servers.ts";

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
      const promtool = Bun.spawnSync(["promtool", "check", "metrics"], { stdin: Buffer.from(await node.read(path)) });
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

const tempDir = tempDirs();

const EXAMPLES = join(import.meta.dir, "..", "..", "examples", "monitoring");
const readExample = (name: string) => readFileSync(join(EXAMPLES, name), "utf8");

interface Dashboard {
  templating: { list: { name: string; query: string | { query: string } }[] };
  panels: { id: number; title: string; targets: { expr: string }[] }[];
}
const dashboard = JSON.parse(readExample("grafana-dashboard.json")) as Dashboard;

interface Rule {
  alert: string;
  expr: string;
  annotations: Record<string, string>;
}
const { groups } = Bun.YAML.parse(readExample("alerts.yaml")) as { groups: { rules: Rule[] }[] };
const rules = groups.flatMap((group) => group.rules);

/** Metric names of an expression; `up` is Prometheus' own. */
function metricNames(expression: string): string[] {
  const text = expression.replaceAll(/\{[^}]*\}/g, "{}");
  return [...text.matchAll(/\b(?:kubelet|container|prober|process|pod|node|machine)_[a-z0-9_]+/g)].map(
    ([name]) => name,
  );
}

const servedNames = (text: string) => new Set([...text.matchAll(/^([a-z_][a-z0-9_]*)[{ ]/gm)].map(([, name]) => name));

test("every alert says what happened and what to do", () => {
  expect(rules.length).toBeGreaterThan(10);
  for (const { alert, annotations } of rules) {
    expect({ alert, keys: Object.keys(annotations) }).toEqual({ alert, keys: ["summary", "description", "action"] });
  }
});

test("panels of the dashboard have numbers and queries of their own", () => {
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  for (const { title, targets } of dashboard.panels) {
    expect({ title, names: targets.every(({ expr }) => metricNames(expr).length > 0) }).toEqual({ title, names: true });
  }
});

test.if(hasTools).each([
  ["check", "config", "prometheus.yaml"],
  ["check", "rules", "alerts.yaml"],
  ["test", "rules", "alerts.test.yaml"],
])("promtool %s %s %s", (command, subject, file) => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["promtool", command, subject, file], { cwd: EXAMPLES });
  expect({ exitCode, output: exitCode === 0 ? "" : `${stdout}${stderr}` }).toEqual({ exitCode: 0, output: "" });
});

test.if(hasTools)("promtool reads every query of the dashboard", () => {
  const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  // Grafana puts values in the place of its variables.
  const toPromQl = (expr: string) => expr.replaceAll("$__rate_interval", "5m").replaceAll(/\$\{?\w+\}?/g, "x");
  const records = queries.map((expr, index) => ({ record: `query:${index}`, expr: toPromQl(expr) }));
  const file = join(tempDir(), "queries.yaml");
  writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules: records }] }));
  const { exitCode, stdout, stderr } = Bun.spawnSync(["promtool", "check", "rules", file]);
  expect({ exitCode, output: exitCode === 0 ? "" : `${stdout}${stderr}` }).toEqual({ exitCode: 0, output: "" });
  expect(queries.length).toBeGreaterThan(20);
});

describeWithEngine("examples/monitoring", () => {
  test("every metric of the alerts and the dashboard is served", async () => {
    const node = testNode();
    const limits = { resources: { limits: { memory: "64Mi" } } };
    const web = podSpec({ ...limits, readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 } });
    // The start of the second fails at the engine.
    const containers = [...web.containers, { name: "absent", image: "busybox:test", command: ["/absent"] }];
    node.writeManifest("web.yaml", sleeper("web", {}, { containers }));
    const update = { "kubelet-ts.io/image-update": "digest" };
    const waits = { "kubelet-ts.io/depends-on": "default/absent=Ready", ...update };
    node.writeManifest("waiting.yaml", sleeper("waiting", {}, {}, { annotations: waits }));
    const rollback = { "kubelet-ts.io/rollback": "on-failure", "kubelet-ts.io/rollback-deadline": "2s" };
    const writeGuarded = (container = {}) =>
      node.writeManifest(
        "guarded.yaml",
        sleeper("guarded", container, {}, { annotations: { ...rollback, ...update } }),
      );
    writeGuarded();
    node.writeManifest("rejected.yaml", { apiVersion: "v1", kind: "Pod", metadata: { name: "rejected" }, spec: {} });
    await node.start();
    // Ready for ten seconds, so that there is a revision to go back to.
    await node.until("a Ready revision", () =>
      readFileSync(join(node.rootDir, "state", `rollouts-${node.name}.json`), "utf8").includes("guarded"),
    );
    writeGuarded({ command: ["/absent"] });
    const scrape = async () => (await Promise.all(ENDPOINTS.map((path) => node.read(path)))).join("\n");
    await node.until("the edit to be rolled back", async () =>
      (await scrape()).includes('kubelet_ts_pod_rolled_back{namespace="default"'),
    );
    const waited = await node.run("wait pod/guarded --for=condition=Ready");
    expect(waited).toMatchObject({ exitCode: 3, stderr: expect.stringContaining("was rolled back") });
    expect(await scrape()).toContain(`kubelet_ts_rollbacks_total{namespace="default",pod="guarded-${node.name}"} 1`);

    const wanted = new Set(
      [
        ...rules.map(({ expr }) => expr),
        ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
        ...dashboard.templating.list.map(({ query }) => (typeof query === "string" ? query : query.query)),
      ].flatMap(metricNames),
    );
    let missing = [...wanted];
    await node
      .until("all metrics", async () => {
        const served = servedNames(await scrape());
        missing = [...wanted].filter((name) => !served.has(name));
        return missing.length === 0;
      })
      .catch(() => {});
    expect(missing).toEqual([]);
  });
});
