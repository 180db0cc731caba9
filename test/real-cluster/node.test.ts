import { expect, test } from "bun:test";
import { aClusterPod, aPodSpec, conditionOf } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import type { AnyObject } from "../support/kubectl.ts";
import { shell, workload } from "../support/manifests.ts";

describeCluster("a node of a cluster", () => {
  const FLAGS = { flags: ["--node-labels=disk=ssd"] };
  const { kubectl, node } = useCluster(({ node }) => node.join(FLAGS));

  test("registers with its address, capacity, labels and lease", async () => {
    const { metadata, status } = await kubectl.readyNode(node.name);
    expect(metadata.labels).toMatchObject({
      "kubernetes.io/hostname": node.name,
      "kubernetes.io/os": "linux",
      disk: "ssd",
    });
    expect(status.addresses).toContainEqual({ type: "Hostname", address: node.name });
    expect(status.addresses.some(({ type }: AnyObject) => type === "InternalIP")).toBe(true);
    expect(status.daemonEndpoints.kubeletEndpoint.Port).toBe(node.kubeletPort);
    expect(status.nodeInfo.kubeletVersion).toMatch(/^v1\.\d+\.\d+/);
    expect(Object.keys(status.allocatable)).toEqual(
      expect.arrayContaining(["cpu", "memory", "ephemeral-storage", "pods"]),
    );
    for (const type of ["MemoryPressure", "DiskPressure", "PIDPressure"]) {
      expect(conditionOf({ status }, type)).toBe("False");
    }
    const lease = await kubectl.lease(node.name);
    expect(lease.spec.holderIdentity).toBe(node.name);
    await kubectl.renewal(node.name, lease.spec.renewTime);
  });

  test("is drained, then takes pods again", async () => {
    await kubectl.apply(workload("Deployment", "drained", { replicas: 4 }, aPodSpec()));
    await kubectl.readyPods("drained", 4);
    await kubectl.words(`drain ${node.name} --ignore-daemonsets --force --timeout=120s`);
    await node.untilEmpty();
    expect((await kubectl.list("pods", "-l", "app=drained")).map(({ status }) => status.phase)).toEqual(
      Array(4).fill("Pending"),
    );
    await kubectl.words(`uncordon ${node.name}`);
    await kubectl.readyPods("drained", 4);
    await kubectl.words("delete deployment drained");
  });

  test("a NoExecute taint evicts pods that do not tolerate it", async () => {
    await kubectl.apply(
      aClusterPod("intolerant"),
      aClusterPod("tolerant", {}, { tolerations: [{ key: "broken", operator: "Exists" }] }),
    );
    await kubectl.readyPod("intolerant");
    const { metadata } = await kubectl.readyPod("tolerant");
    await kubectl.words(`taint node ${node.name} broken=yes:NoExecute`);
    await kubectl.untilGone("pod/intolerant");
    await kubectl.words(`taint node ${node.name} broken-`);
    expect((await kubectl.readyPod("tolerant")).metadata.uid).toBe(metadata.uid);
    await kubectl.words("delete pod tolerant");
  });

  test("pods deleted gracefully and by force leave nothing behind", async () => {
    const trap = (action: string) => shell(`trap '${action}' TERM; while :; do sleep 0.1; done`);
    await kubectl.apply(
      aClusterPod("slow", trap("echo terminated; sleep 2; exit 0"), { terminationGracePeriodSeconds: 60 }),
      aClusterPod("forced", trap(""), { terminationGracePeriodSeconds: 3 }),
    );
    await kubectl.readyPod("slow");
    await kubectl.readyPod("forced");
    const logs = kubectl.spawn(["logs", "-f", "slow"]);
    await kubectl.words("delete pod slow");
    expect(await logs.stdout.text()).toBe("terminated\n");
    await kubectl.words("delete pod forced --grace-period=0 --force");
    await node.untilEmpty();
  });

  test("static pods have mirrors, which come back when they are deleted and follow edits", async () => {
    const name = `web-${node.name}`;
    const write = (revision: string) =>
      node.writeManifest("web.json", aClusterPod("web", {}, {}, { labels: { revision } }));
    write("one");
    const first = await kubectl.readyPod(name);
    const { annotations } = first.metadata;
    expect(annotations["kubernetes.io/config.source"]).toBe("file");
    expect(annotations["kubernetes.io/config.hash"]).not.toBeUndefined();
    await kubectl.until("its events", async () =>
      /Started container/.test(await kubectl.words(`describe pod ${name}`)),
    );
    expect(first.metadata.ownerReferences[0]).toMatchObject({ kind: "Node", name: node.name, controller: true });
    const ids = await node.containerIds();
    await kubectl.words(`delete pod ${name}`);
    const second = await kubectl.readyPod(name);
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
    expect(await node.containerIds()).toEqual(ids);
    await kubectl.words(`delete pod ${name} --grace-period=0 --force`);
    await kubectl.readyPod(name);
    expect(await node.containerIds()).toEqual(ids);
    write("two");
    await kubectl.until("the edited mirror", async () => (await kubectl.pod(name)).metadata.labels.revision === "two");
    node.removeManifest("web.json");
    await kubectl.untilGone(`pod/${name}`);
    await node.untilEmpty();
  });

  test("a pod that does not fit is Failed with the reason; an unknown runtime handler is retried", async () => {
    await kubectl.apply(
      aClusterPod("elsewhere", {}, { nodeName: node.name, nodeSelector: { disk: "none" } }),
      { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: "kata" }, handler: "kata" },
      aClusterPod("handled", {}, { runtimeClassName: "kata" }),
    );
    const rejected = await kubectl.until("the rejection", async () => {
      const { status } = await kubectl.pod("elsewhere");
      return status.phase === "Failed" && status;
    });
    expect(rejected.reason).toBe("NodeAffinity");
    await kubectl.untilEvent("handled", "FailedCreatePodSandBox");
    expect((await kubectl.pod("handled")).status.phase).toBe("Pending");
    await kubectl.words("delete pod elsewhere handled");
  });

  test("readiness gates, probes and restarts are in the status", async () => {
    await kubectl.apply(
      aClusterPod("gated", {}, { readinessGates: [{ conditionType: "example.com/ok" }] }),
      aClusterPod("crashing", shell("sleep 1; exit 3")),
    );
    await kubectl.until(
      "the running container",
      async () => conditionOf(await kubectl.pod("gated"), "ContainersReady") === "True",
    );
    expect(conditionOf(await kubectl.pod("gated"), "Ready")).toBe("False");
    const proxy = kubectl.spawn(["proxy", "--port=0"]);
    const line = new TextDecoder().decode((await proxy.stdout.getReader().read()).value);
    const url = `http://${/127\.0\.0\.1:\d+/.exec(line)?.[0]}/api/v1/namespaces/default/pods/gated/status`;
    const condition = { type: "example.com/ok", status: "True" };
    const patched = await fetch(url, {
      method: "PATCH",
      headers: { "Content-Type": "application/strategic-merge-patch+json" },
      body: JSON.stringify({ status: { conditions: [condition] } }),
    });
    proxy.kill();
    expect(patched.status).toBe(200);
    const gated = await kubectl.readyPod("gated");
    expect(conditionOf(gated, "example.com/ok")).toBe("True");
    const crashed = await kubectl.until("two restarts", async () => {
      const [status] = (await kubectl.pod("crashing")).status.containerStatuses ?? [];
      return status?.restartCount >= 2 && status;
    });
    expect(crashed.lastState.terminated.exitCode).toBe(3);
    await kubectl.words("delete pod gated crashing");
  });

  test("everything stays as it is over a restart", async () => {
    await kubectl.apply(workload("Deployment", "kept", { replicas: 3 }, aPodSpec()));
    await kubectl.readyPods("kept", 3);
    const ids = await node.containerIds();
    const before = await kubectl.readyNode(node.name);
    await node.endProcesses();
    await node.join(FLAGS);
    await kubectl.renewal(node.name);
    expect(await node.containerIds()).toEqual(ids);
    const after = await kubectl.readyNode(node.name);
    expect(after.metadata.uid).toBe(before.metadata.uid);
    const pressures = ({ status }: AnyObject) =>
      status.conditions
        .filter(({ type }: AnyObject) => type !== "Ready")
        .map(({ type, lastTransitionTime }: AnyObject) => [type, lastTransitionTime]);
    expect(pressures(after)).toEqual(pressures(before));
    await kubectl.words("delete deployment kept");
    await node.untilEmpty();
  });
});
