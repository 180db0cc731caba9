import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import type { ClusterTestNode } from "../support/cluster/cluster-node.ts";
import { aClusterPod, conditionOf, isReady } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import type { ControlPlane } from "../support/cluster/control-plane.ts";
import { MetricsApi } from "../support/cluster/metrics-api.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";

describeCluster("the authenticated port in a cluster", () => {
  let plane: ControlPlane;
  let kubectl: ClusterKubectl;
  let node: ClusterTestNode;

  useCluster(async (cluster) => {
    ({ plane, kubectl, node } = cluster);
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
    await node.start([`--kubeconfig=${plane.nodeConfig(node.name)}`, `--config=${file}`]);
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
    const { status } = await kubectl.until("a Ready node", async () => {
      const found = await kubectl.json(["get", "node", node.name]);
      return conditionOf(found, "Ready") === "True" && found;
    });
    expect(status.capacity.pods).toBe("42");
  });

  test("bearer tokens are reviewed, and what they may do is the API server's decision", async () => {
    await kubectl.output(["create", "serviceaccount", "scraper"]);
    const token = await tokenOf("scraper");
    expect(await ask("/metrics")).toMatchObject({ status: 401 });
    expect(await ask("/metrics", "no-such-token")).toMatchObject({ status: 401 });
    expect(await ask("/metrics", token)).toEqual({
      status: 403,
      text: "Forbidden (user=system:serviceaccount:default:scraper, verb=get, resource=nodes, subresource=metrics)",
    });
    await kubectl.output(["create", "clusterrole", "scraper", "--verb=get", "--resource=nodes/metrics"]);
    await kubectl.output([
      "create",
      "clusterrolebinding",
      "scraper",
      "--clusterrole=scraper",
      "--serviceaccount=default:scraper",
    ]);
    await kubectl.until("the metrics", async () => (await ask("/metrics", token)).status === 200);
    expect(await ask("/pods", token)).toMatchObject({ status: 403 });
  });

  test("what metrics-server asks for is there, with a token and its roles, and kubectl top shows it", async () => {
    const loop = { command: ["sh", "-c", "while :; do :; done"], resources: { limits: { cpu: "100m" } } };
    await kubectl.apply(
      aClusterPod("measured", {}, { nodeName: node.name }),
      aClusterPod("busy", loop, { nodeName: node.name }),
    );
    await kubectl.until("a Ready pod", async () => isReady(await kubectl.json(["get", "pod", "measured"])));
    await kubectl.output(["create", "serviceaccount", "metrics-server"]);
    // 0.4 and 0.5 read the summary, later ones the metrics of resources.
    const roles = { old: "nodes/stats", new: "nodes/metrics" };
    for (const [name, resource] of Object.entries(roles)) {
      await kubectl.output(["create", "clusterrole", `metrics-${name}`, "--verb=get", `--resource=${resource}`]);
      const subject = ["--serviceaccount=default:metrics-server", `--clusterrole=metrics-${name}`];
      await kubectl.output(["create", "clusterrolebinding", `metrics-${name}`, ...subject]);
    }
    const token = await tokenOf("metrics-server");
    // Rates need two samples.
    const summary = await kubectl.until("the usage of the pod", async () => {
      const { status, text } = await ask("/stats/summary?only_cpu_and_memory=true", token);
      if (status !== 200) return false;
      const parsed = JSON.parse(text);
      const pod = parsed.pods.find(({ podRef }: { podRef: { name: string } }) => podRef.name === "measured");
      return pod?.containers?.[0]?.cpu?.usageNanoCores !== undefined && { ...parsed, pod };
    });
    // Before it is compared: toMatchObject writes its matchers into what it compares.
    const { workingSetBytes } = summary.node.memory;
    const usage = {
      cpu: { time: expect.any(String), usageNanoCores: expect.any(Number) },
      memory: { time: expect.any(String), workingSetBytes: expect.any(Number) },
    };
    expect(summary.node).toMatchObject({ nodeName: node.name, ...usage });
    expect(summary.pod).toMatchObject({
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

    const metrics = new MetricsApi({
      certificate: plane.administrator,
      nodes: { [node.name]: node.kubeletPort },
      token,
    });
    try {
      await kubectl.apply(...metrics.objects());
      const lines = async (...args: string[]) =>
        (await kubectl.output(["top", ...args, "--no-headers"])).split("\n").map((line) => line.split(/\s+/));
      const [top] = await kubectl.until("kubectl top node", () => lines("node", node.name));
      expect(top).toEqual([node.name, ...[/^\d+m$/, /^\d+%$/, /^\d+Mi$/, /^\d+%$/].map(expect.stringMatching)]);
      const shown = Number.parseInt(top![3]!, 10) * 2 ** 20;
      expect(shown / workingSetBytes).toBeWithin(0.5, 2);
      const pods = await lines("pod", "--containers");
      expect(pods).toContainEqual(["measured", "app", ...[/^\d+m$/, /^\d+Mi$/].map(expect.stringMatching)]);
      // Containers that work show it.
      await kubectl.until(
        "the processor time of the busy container",
        async () => Number.parseInt((await lines("pod", "busy"))[0]![1]!, 10) >= 5,
      );
    } finally {
      metrics.close();
      await kubectl.run(["delete", "apiservice", "v1beta1.metrics.k8s.io"]);
    }
    await kubectl.output(["delete", "pod", "measured", "busy"]);
  });

  test("the API server gets through with its certificate, and its configz has the true values", async () => {
    const configz = await kubectl.until("the node's configz by the API server", async () =>
      JSON.parse(await kubectl.output(["get", "--raw", `/api/v1/nodes/${node.name}/proxy/configz`])),
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
