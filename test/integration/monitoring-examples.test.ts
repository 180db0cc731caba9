import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { podSpec, sleeper } from "../support/manifests.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();

const EXAMPLES = join(import.meta.dir, "..", "..", "examples", "monitoring");
const ENDPOINTS = ["/metrics", "/metrics/cadvisor", "/metrics/resource", "/metrics/probes"];
const hasPromtool = Bun.which("promtool") !== null;
if (!hasPromtool) {
  if (process.env.CI) throw new Error("The checks of alert rules need Debian's package prometheus.");
  console.warn("SKIPPED the checks of alert rules: apt-get install prometheus");
}

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

test.if(hasPromtool).each([
  ["check", "config", "prometheus.yaml"],
  ["check", "rules", "alerts.yaml"],
  ["test", "rules", "alerts.test.yaml"],
])("promtool %s %s %s", (command, subject, file) => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["promtool", command, subject, file], { cwd: EXAMPLES });
  expect({ exitCode, output: exitCode === 0 ? "" : `${stdout}${stderr}` }).toEqual({ exitCode: 0, output: "" });
});

test.if(hasPromtool)("promtool reads every query of the dashboard", () => {
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
