import { expect, test } from "bun:test";
import type { AnyObject, ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import type { ClusterTestNode } from "../support/cluster/cluster-node.ts";
import { aClusterPod, aWorkload, conditionOf, isReady } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";

describeCluster("a node of a cluster", () => {
  let kubectl: ClusterKubectl;
  let node: ClusterTestNode;

  useCluster(async (cluster) => {
    ({ kubectl, node } = cluster);
    await node.join({ flags: ["--node-labels=disk=ssd"] });
  });

  const readNode = () => kubectl.json(["get", "node", node.name]);
  const readyNode = () =>
    kubectl.until("a Ready node", async () => {
      const found = await readNode();
      return conditionOf(found, "Ready") === "True" && found;
    });
  const pod = (name: string) => kubectl.json(["get", "pod", name]);
  const eventReasons = async (name: string) => {
    const events = await kubectl.list("events", `--field-selector=involvedObject.name=${name}`);
    return events.map(({ reason }: AnyObject) => reason as string);
  };

  test("registers with its address, capacity, labels and lease", async () => {
    const { metadata, status } = await readyNode();
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
    const lease = await kubectl.json(["get", "lease", "-n", "kube-node-lease", node.name]);
    expect(lease.spec.holderIdentity).toBe(node.name);
    await kubectl.until("the renewal of the lease", async () => {
      const { spec } = await kubectl.json(["get", "lease", "-n", "kube-node-lease", node.name]);
      return spec.renewTime !== lease.spec.renewTime;
    });
  });

  test("is drained, then takes pods again", async () => {
    await readyNode();
    await kubectl.apply(aWorkload("Deployment", "drained", { replicas: 4 }));
    const ready = () =>
      kubectl.until("4 Ready pods", async () => {
        const pods = await kubectl.list("pods", "-l", "app=drained");
        return pods.length === 4 && pods.every(isReady);
      });
    await ready();
    await kubectl.output(["drain", node.name, "--ignore-daemonsets", "--force", "--timeout=120s"]);
    await kubectl.until("no container", async () => (await node.listAll()).length === 0);
    expect((await kubectl.list("pods", "-l", "app=drained")).map(({ status }) => status.phase)).toEqual(
      Array(4).fill("Pending"),
    );
    await kubectl.output(["uncordon", node.name]);
    await ready();
    await kubectl.output(["delete", "deployment", "drained"]);
  });

  test("a NoExecute taint evicts pods that do not tolerate it", async () => {
    await kubectl.apply(
      aClusterPod("intolerant"),
      aClusterPod("tolerant", {}, { tolerations: [{ key: "broken", operator: "Exists" }] }),
    );
    await kubectl.readyPod("intolerant");
    const { metadata } = await kubectl.readyPod("tolerant");
    await kubectl.output(["taint", "node", node.name, "broken=yes:NoExecute"]);
    await kubectl.until("the eviction", async () => (await kubectl.run(["get", "pod", "intolerant"])).code !== 0);
    await kubectl.output(["taint", "node", node.name, "broken-"]);
    expect((await kubectl.readyPod("tolerant")).metadata.uid).toBe(metadata.uid);
    await kubectl.output(["delete", "pod", "tolerant"]);
  });

  test("pods deleted gracefully and by force leave nothing behind", async () => {
    const trap = ["sh", "-c", "trap 'echo terminated; sleep 2; exit 0' TERM; while :; do sleep 0.1; done"];
    await kubectl.apply(
      aClusterPod("slow", { command: trap }, { terminationGracePeriodSeconds: 60 }),
      aClusterPod(
        "forced",
        { command: ["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"] },
        { terminationGracePeriodSeconds: 3 },
      ),
    );
    await kubectl.readyPod("slow");
    await kubectl.readyPod("forced");
    const logs = kubectl.spawn(["logs", "-f", "slow"]);
    await kubectl.output(["delete", "pod", "slow"]);
    expect(await new Response(logs.stdout).text()).toBe("terminated\n");
    await kubectl.output(["delete", "pod", "forced", "--grace-period=0", "--force"]);
    await kubectl.until("no container", async () => (await node.listAll()).length === 0);
  });

  test("static pods have mirrors, which come back when they are deleted and follow edits", async () => {
    const name = `web-${node.name}`;
    node.writeManifest("web.json", { ...aClusterPod("web"), metadata: { name: "web", labels: { revision: "one" } } });
    const first = await kubectl.readyPod(name);
    expect(first.metadata.annotations["kubernetes.io/config.source"]).toBe("file");
    expect(first.metadata.annotations["kubernetes.io/config.mirror"]).toBe(
      first.metadata.annotations["kubernetes.io/config.hash"],
    );
    expect(first.metadata.ownerReferences[0]).toMatchObject({ kind: "Node", name: node.name, controller: true });
    const [container] = await node.containers("app");
    await kubectl.output(["delete", "pod", name]);
    const second = await kubectl.readyPod(name);
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
    expect((await node.containers("app")).map(({ Id }) => Id)).toEqual([container!.Id]);
    await kubectl.output(["delete", "pod", name, "--grace-period=0", "--force"]);
    await kubectl.readyPod(name);
    expect((await node.containers("app")).map(({ Id }) => Id)).toEqual([container!.Id]);
    node.writeManifest("web.json", { ...aClusterPod("web"), metadata: { name: "web", labels: { revision: "two" } } });
    await kubectl.until("the edited mirror", async () => {
      const { metadata } = await pod(name);
      return metadata.labels.revision === "two";
    });
    node.removeManifest("web.json");
    await kubectl.until("no mirror", async () => (await kubectl.run(["get", "pod", name])).code !== 0);
    await kubectl.until("no container", async () => (await node.listAll()).length === 0);
  });

  test("a pod that does not fit is Failed with the reason; an unknown runtime handler is retried", async () => {
    await kubectl.apply(
      aClusterPod("elsewhere", {}, { nodeName: node.name, nodeSelector: { disk: "none" } }),
      { apiVersion: "node.k8s.io/v1", kind: "RuntimeClass", metadata: { name: "kata" }, handler: "kata" },
      aClusterPod("handled", {}, { runtimeClassName: "kata" }),
    );
    const rejected = await kubectl.until("the rejection", async () => {
      const { status } = await pod("elsewhere");
      return status.phase === "Failed" && status;
    });
    expect(rejected.reason).toBe("NodeAffinity");
    await kubectl.until("the event", async () => (await eventReasons("handled")).includes("FailedCreatePodSandBox"));
    expect((await pod("handled")).status.phase).toBe("Pending");
    await kubectl.output(["delete", "pod", "elsewhere", "handled"]);
  });

  test("readiness gates, probes and restarts are in the status", async () => {
    await kubectl.apply(
      aClusterPod("gated", {}, { readinessGates: [{ conditionType: "example.com/ok" }] }),
      aClusterPod("crashing", { command: ["sh", "-c", "sleep 1; exit 3"] }),
    );
    await kubectl.until(
      "the running container",
      async () => conditionOf(await pod("gated"), "ContainersReady") === "True",
    );
    expect(conditionOf(await pod("gated"), "Ready")).toBe("False");
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
      const [status] = (await pod("crashing")).status.containerStatuses ?? [];
      return status?.restartCount >= 2 && status;
    });
    expect(crashed.lastState.terminated.exitCode).toBe(3);
    await kubectl.output(["delete", "pod", "gated", "crashing"]);
  });

  test("everything stays as it is over a restart", async () => {
    await kubectl.apply(aWorkload("Deployment", "kept", { replicas: 3 }));
    await kubectl.until("3 Ready pods", async () => {
      const pods = await kubectl.list("pods", "-l", "app=kept");
      return pods.length === 3 && pods.every(isReady);
    });
    const ids = (await node.containers()).map(({ Id }) => Id).sort();
    const before = await readNode();
    await node.endProcesses();
    await node.join({ flags: ["--node-labels=disk=ssd"] });
    const lease = await kubectl.json(["get", "lease", "-n", "kube-node-lease", node.name]);
    await kubectl.until("the renewal of the lease", async () => {
      const { spec } = await kubectl.json(["get", "lease", "-n", "kube-node-lease", node.name]);
      return spec.renewTime !== lease.spec.renewTime;
    });
    expect((await node.containers()).map(({ Id }) => Id).sort()).toEqual(ids);
    const after = await readNode();
    expect(after.metadata.uid).toBe(before.metadata.uid);
    const pressures = ({ status }: AnyObject) =>
      status.conditions
        .filter(({ type }: AnyObject) => type !== "Ready")
        .map(({ type, lastTransitionTime }: AnyObject) => [type, lastTransitionTime]);
    expect(pressures(after)).toEqual(pressures(before));
    await kubectl.output(["delete", "deployment", "kept"]);
    await kubectl.until("no container", async () => (await node.listAll()).length === 0);
  });
});
