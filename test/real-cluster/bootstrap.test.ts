import { expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { BOOTSTRAP_TOKEN } from "../support/cluster/control-plane.ts";
import { type TestCluster, useCluster } from "../support/cluster/use-cluster.ts";

/** The signer of 1.20 dates certificates back by five minutes: what is left of their life is one minute. */
const SIGNING_DURATION = "6m";

describeCluster("TLS bootstrap", () => {
  const permitBootstrap = async ({ kubectl }: TestCluster) => {
    const [id, secret] = BOOTSTRAP_TOKEN.split(".") as [string, string];
    await kubectl.apply({
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: `bootstrap-token-${id}`, namespace: "kube-system" },
      type: "bootstrap.kubernetes.io/token",
      stringData: { "token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true" },
    });
    const nodeClient = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";
    const selfNodeClient = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient";
    for (const [name, role, group] of [
      ["bootstrap", "system:node-bootstrapper", "system:bootstrappers"],
      ["approve", nodeClient, "system:bootstrappers"],
      ["renew", selfNodeClient, "system:nodes"],
    ] as const) {
      await kubectl.words(`create clusterrolebinding ${name} --clusterrole=${role} --group=${group}`);
    }
  };

  const { plane, kubectl, node } = useCluster(permitBootstrap, {
    controllerManagerFlags: [`--cluster-signing-duration=${SIGNING_DURATION}`],
  });

  const certDir = () => join(node.rootDir, "pki");
  const current = (usage: "client" | "server") => join(certDir(), `kubelet-${usage}-current.pem`);
  const certificateOf = (usage: "client" | "server") => new X509Certificate(readFileSync(current(usage)));
  const flags = () => [
    `--bootstrap-kubeconfig=${plane.kubeconfig("bootstrap", { token: BOOTSTRAP_TOKEN })}`,
    `--kubeconfig=${join(node.directory, "kubelet.conf")}`,
    `--cert-dir=${certDir()}`,
    `--client-ca-file=${plane.authority.certFile}`,
    "--rotate-certificates",
    "--rotate-server-certificates",
    "--authentication-token-webhook",
    "--authorization-mode=Webhook",
    "--address=0.0.0.0",
    `--port=${node.kubeletPort}`,
    "--node-status-update-frequency=1s",
  ];
  const requests = async (signer: string) =>
    (await kubectl.list("csr")).filter(({ spec }) => spec.signerName === `kubernetes.io/${signer}`);

  test("a node joins with nothing but a token, and its certificates are the cluster's", async () => {
    await node.start(flags());
    const { status } = await kubectl.readyNode(node.name);
    expect(certificateOf("client").subject).toContain(`CN=system:node:${node.name}`);
    expect(certificateOf("client").checkIssued(new X509Certificate(plane.authority.cert))).toBe(true);
    // Certificates of servers are approved by people.
    const request = await kubectl.until("the request of a serving certificate", async () => {
      const [found] = await requests("kubelet-serving");
      return found;
    });
    expect(request.spec.username).toBe(`system:node:${node.name}`);
    await kubectl.words(`certificate approve ${request.metadata.name}`);
    const address = status.addresses.find(({ type }: { type: string }) => type === "InternalIP").address;
    const answer = await kubectl.until("port 10250 with the certificate of the cluster", () =>
      fetch(`https://${address}:${node.kubeletPort}/healthz`, { tls: { ca: plane.authority.cert }, keepalive: false }),
    );
    // Its certificate is trusted, the client is unknown.
    expect(answer.status).toBe(401);
  });

  test("both certificates are replaced before they expire, while the node stays Ready", async () => {
    const before = { client: readlinkSync(current("client")), server: readlinkSync(current("server")) };
    const expiry = Date.parse(certificateOf("client").validTo);
    await kubectl.until("another client certificate", async () => readlinkSync(current("client")) !== before.client);
    await kubectl.until("another serving certificate", async () => {
      const open = (await requests("kubelet-serving")).filter(({ status }) => status.conditions === undefined);
      for (const { metadata } of open) await kubectl.words(`certificate approve ${metadata.name}`);
      return readlinkSync(current("server")) !== before.server;
    });
    expect(Date.parse(certificateOf("client").validTo)).toBeGreaterThan(expiry);
    await kubectl.until("the first certificate to expire", async () => Date.now() > expiry);
    await kubectl.renewal(node.name);
    await kubectl.readyNode(node.name);
    const made = await requests("kube-apiserver-client-kubelet");
    console.log(`${made.length} client certificates were requested`);
    expect(made.length).toBeLessThan(10);
  });

  test("a restart uses the certificate it has", async () => {
    await node.endProcesses();
    const count = (await requests("kube-apiserver-client-kubelet")).length;
    const { spec } = await kubectl.lease(node.name);
    await node.start(flags());
    await kubectl.renewal(node.name, spec.renewTime);
    // One more at most: it may have been due.
    expect((await requests("kube-apiserver-client-kubelet")).length).toBeLessThanOrEqual(count + 1);
  });
});
