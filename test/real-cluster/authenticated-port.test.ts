import { afterAll, beforeAll, expect, test } from "bun:test";
import { ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { ControlPlane } from "../support/cluster/control-plane.ts";
import { TestNode } from "../support/test-node.ts";

describeCluster("the authenticated port in a cluster", () => {
  let plane: ControlPlane;
  let kubectl: ClusterKubectl;
  let node: TestNode;

  beforeAll(async () => {
    plane = new ControlPlane();
    kubectl = new ClusterKubectl(plane);
    node = new TestNode();
    await plane.start();
    await node.start([
      `--kubeconfig=${plane.nodeConfig(node.name)}`,
      `--client-ca-file=${plane.authority.certFile}`,
      "--authentication-token-webhook",
      "--authorization-mode=Webhook",
      "--authorization-webhook-cache-unauthorized-ttl=1s",
    ]);
  });

  afterAll(async () => {
    await node?.cleanUp();
    await plane?.stop();
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
