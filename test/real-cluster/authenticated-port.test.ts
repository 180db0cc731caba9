import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { aClusterPod } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import type { AnyObject } from "../support/kubectl.ts";

describeCluster("the authenticated port in a cluster", () => {
  const { kubectl, node } = useCluster(async ({ plane, node }) => {
    // As kubeadm does it. With a configuration file both webhooks are the default.
    const file = join(node.directory, "config.json");
    const config = {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      authentication: { x509: { clientCAFile: plane.authority.certFile } },
      authorization: { webhook: { cacheUnauthorizedTTL: "1s" } },
      maxPods: 42,
    };
    writeFileSync(file, JSON.stringify(config));
    const port = `--port=${node.kubeletPort}`;
    await node.start([`--kubeconfig=${plane.nodeConfig(node.name)}`, `--config=${file}`, port]);
  });

  const ask = async (path: string, token?: string) => {
    const response = await fetch(`https://127.0.0.1:${node.kubeletPort}${path}`, {
      headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
      tls: { rejectUnauthorized: false },
    });
    return { status: response.status, text: await response.text() };
  };

  /** The token of a service account, made by the controller manager. */
  const tokenOf = (account: string) =>
    kubectl.until(`the token of "${account}"`, async () => {
      const secrets = await kubectl.list("secrets");
      const secret = secrets.find(
        ({ metadata }) => metadata.annotations?.["kubernetes.io/service-account.name"] === account,
      );
      return secret && Buffer.from(secret.data.token, "base64").toString();
    });

  test("a node with a configuration file registers and reports its status", async () => {
    expect((await kubectl.readyNode(node.name)).status.capacity.pods).toBe("42");
  });

  test("bearer tokens are reviewed, and what they may do is the API server's decision", async () => {
    await kubectl.words("create serviceaccount scraper");
    const token = await tokenOf("scraper");
    expect(await ask("/metrics")).toMatchObject({ status: 401 });
    expect(await ask("/metrics", "no-such-token")).toMatchObject({ status: 401 });
    expect(await ask("/metrics", token)).toEqual({
      status: 403,
      text: "Forbidden (user=system:serviceaccount:default:scraper, verb=get, resource=nodes, subresource=metrics)",
    });
    await kubectl.words("create clusterrole scraper --verb=get --resource=nodes/metrics");
    await kubectl.words("create clusterrolebinding scraper --clusterrole=scraper --serviceaccount=default:scraper");
    await kubectl.until("the metrics", async () => (await ask("/metrics", token)).status === 200);
    expect(await ask("/pods", token)).toMatchObject({ status: 403 });
  });

  test("what metrics-server asks for is there, with a token and its roles", async () => {
    const loop = { command: ["sh", "-c", "while :; do :; done"], resources: { limits: { cpu: "100m" } } };
    await kubectl.apply(
      aClusterPod("measured", {}, { nodeName: node.name }),
      aClusterPod("busy", loop, { nodeName: node.name }),
    );
    await kubectl.readyPod("measured");
    await kubectl.words("create serviceaccount metrics-server");
    // 0.4 and 0.5 read the summary, later ones the metrics of resources.
    for (const resource of ["stats", "metrics"]) {
      const role = `metrics-${resource}`;
      await kubectl.words(`create clusterrole ${role} --verb=get --resource=nodes/${resource}`);
      const subject = "--serviceaccount=default:metrics-server";
      await kubectl.words(`create clusterrolebinding ${role} --clusterrole=${role} ${subject}`);
    }
    const token = await tokenOf("metrics-server");
    // Rates need two samples.
    const podsOf = async () => {
      const { status, text } = await ask("/stats/summary?only_cpu_and_memory=true", token);
      expect(status).toBe(200);
      const summary = JSON.parse(text);
      const find = (name: string) => summary.pods.find(({ podRef }: AnyObject) => podRef.name === name);
      return { node: summary.node, measured: find("measured"), busy: find("busy") };
    };
    const summary = await kubectl.until("the usage of the pod", async () => {
      const seen = await podsOf();
      return seen.measured?.containers?.[0]?.cpu?.usageNanoCores !== undefined && seen;
    });
    const usage = {
      cpu: { time: expect.any(String), usageNanoCores: expect.any(Number) },
      memory: { time: expect.any(String), workingSetBytes: expect.any(Number) },
    };
    expect(summary.node).toMatchObject({ nodeName: node.name, ...usage });
    expect(summary.measured).toMatchObject({
      podRef: { name: "measured", namespace: "default" },
      containers: [{ name: "app", startTime: expect.any(String), ...usage }],
    });
    const { status, text } = await ask("/metrics/resource", token);
    expect(status).toBe(200);
    const labels = 'container="app",namespace="default",pod="measured"';
    for (const series of [
      "node_cpu_usage_seconds_total ",
      "node_memory_working_set_bytes ",
      `container_cpu_usage_seconds_total{${labels}} `,
      `container_memory_working_set_bytes{${labels}} `,
      `container_start_time_seconds{${labels}} `,
    ])
      expect(text).toContain(`\n${series}`);
    expect(await ask("/pods", token)).toMatchObject({ status: 403 });

    // Containers that work show it.
    await kubectl.until(
      "the processor time of the busy container",
      async () => (await podsOf()).busy?.containers?.[0]?.cpu?.usageNanoCores >= 5_000_000,
    );
    await kubectl.words("delete pod measured busy");
  });

  test("the API server gets through with its certificate, and its configz has the true values", async () => {
    const configz = await kubectl.until("the node's configz by the API server", async () =>
      JSON.parse(await kubectl.words(`get --raw /api/v1/nodes/${node.name}/proxy/configz`)),
    );
    expect(configz.kubeletconfig).toMatchObject({
      kind: "KubeletConfiguration",
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      staticPodPath: node.manifestDir,
      port: node.kubeletPort,
      readOnlyPort: node.readOnlyPort,
      healthzPort: node.healthzPort,
    });
  });
});
