import { expect, test } from "bun:test";
import { aClusterPod, aPodSpec, conditionOf } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { ClusterTestNode, useCluster } from "../support/cluster/use-cluster.ts";
import type { AnyObject } from "../support/kubectl.ts";
import { object, workload } from "../support/manifests.ts";

describeCluster("objects that are deleted, and changes while one side is away", () => {
  const join = () => node.join({ flags: ["--node-labels=disk=ssd"] });
  const { plane, kubectl, node } = useCluster(async () => void (await join()));
  const bound = (name: string, container: object = {}, spec: object = {}, metadata: object = {}) =>
    aClusterPod(name, container, { nodeName: node.name, ...spec }, metadata);
  test("a Node that is deleted is registered again, with its Lease, and its pods run on", async () => {
    await kubectl.apply(bound("kept"));
    await kubectl.readyPod("kept");
    const ids = await node.containerIds();
    const before = await kubectl.readyNode(node.name);
    await kubectl.words(`delete node ${node.name}`);
    const after = await kubectl.until("another Node", async () => {
      const found = await kubectl.json(`get node ${node.name}`);
      return found.metadata.uid !== before.metadata.uid && conditionOf(found, "Ready") === "True" && found;
    });
    expect(after.metadata.labels.disk).toBe("ssd");
    await kubectl.until("the Lease of that Node", async () => {
      const { metadata } = await kubectl.lease(node.name);
      return metadata.ownerReferences[0].uid === after.metadata.uid;
    });
    expect(await node.containerIds()).toEqual(ids);
    await kubectl.readyPod("kept");
    await kubectl.words("delete pod kept");
  });

  test("cordon and uncordon are events of the node, as are those of its start", async () => {
    await kubectl.words(`cordon ${node.name}`);
    const reasons = async () => {
      const events = await kubectl.list("events", `--field-selector=involvedObject.name=${node.name}`);
      return events.map(({ reason }: AnyObject) => reason as string);
    };
    await kubectl.until("NodeNotSchedulable", async () => (await reasons()).includes("NodeNotSchedulable"));
    await kubectl.words(`uncordon ${node.name}`);
    await kubectl.until("NodeSchedulable", async () => (await reasons()).includes("NodeSchedulable"));
    expect(await reasons()).toEqual(
      expect.arrayContaining(
        "Starting NodeHasSufficientMemory NodeHasNoDiskPressure NodeHasSufficientPID NodeReady".split(" "),
      ),
    );
  });

  test("a pod with a finalizer stops, and never runs again while it stays", async () => {
    await kubectl.apply(bound("finalized", {}, {}, { finalizers: ["example.com/wait"] }));
    await kubectl.readyPod("finalized");
    await kubectl.words("delete pod finalized --wait=false");
    await node.untilEmpty();
    await kubectl.until("its end in the status", async () => {
      const { metadata, status } = await kubectl.pod("finalized");
      expect(metadata.deletionTimestamp).toBeDefined();
      return status.containerStatuses.every(({ state }: AnyObject) => state.terminated);
    });
    await node.endProcesses();
    await join();
    await kubectl.apply(bound("after"));
    await kubectl.readyPod("after");
    expect((await node.containers()).length).toBe(1);
    const patch = JSON.stringify({ metadata: { finalizers: null } });
    await kubectl.words(`patch pod finalized --type=merge -p ${patch}`);
    await kubectl.untilGone("pod/finalized");
    await kubectl.words("delete pod after");
  });

  test("a namespace goes with all that is in it", async () => {
    await kubectl.words("create namespace team");
    const inTeam = (it: { metadata: object }) => ({ ...it, metadata: { ...it.metadata, namespace: "team" } });
    const account = "get serviceaccount default -n team".split(" ");
    await kubectl.until("its account", async () => (await kubectl.run(account)).code === 0);
    const volumes = [{ name: "v", configMap: { name: "settings" } }];
    const container = { volumeMounts: [{ name: "v", mountPath: "/v" }] };
    await kubectl.apply(
      inTeam(object("ConfigMap", "settings", { data: { a: "1" } })),
      ...["one", "two", "three"].map((name) =>
        inTeam(bound(name, container, { volumes }, { labels: { app: "team" } })),
      ),
    );
    await kubectl.words("wait pod -l app=team -n team --for=condition=Ready --timeout=60s");
    expect((await node.containers()).length).toBe(3);
    await kubectl.words("delete namespace team --timeout=120s");
    expect((await node.containers()).length).toBe(0);
    await node.untilEmpty();
  });

  test("a drain waits for a disruption budget", async () => {
    const budget = (minAvailable: number) => ({
      apiVersion: "policy/v1beta1",
      kind: "PodDisruptionBudget",
      metadata: { name: "budget" },
      spec: { minAvailable, selector: { matchLabels: { app: "guarded" } } },
    });
    await kubectl.apply(workload("Deployment", "guarded", { replicas: 2 }, aPodSpec()), budget(2));
    await kubectl.readyPods("guarded", 2);
    await kubectl.until("the budget to count them", async () => {
      const { status } = await kubectl.json("get pdb budget");
      return status?.currentHealthy === 2;
    });
    const ids = await node.containerIds();
    const drain = (seconds: number) =>
      kubectl.run(`drain ${node.name} --ignore-daemonsets --force --timeout=${seconds}s`.split(" "));
    const refused = await drain(3);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("violate the pod's disruption budget");
    expect(await node.containerIds()).toEqual(ids);
    await kubectl.apply(budget(0));
    await kubectl.until("the drain", async () => (await drain(30)).code === 0);
    await node.untilEmpty();
    await kubectl.words("delete deployment/guarded pdb/budget");
    await kubectl.words(`uncordon ${node.name}`);
  });

  test("what was bound, edited and deleted while kubelet-ts was down is carried out", async () => {
    await kubectl.apply(bound("running"), bound("deleted"), bound("forced"), bound("edited"));
    for (const name of ["running", "deleted", "forced", "edited"]) await kubectl.readyPod(name);
    const [kept] = (await node.containers()).filter(({ Labels }) => Labels["io.kubernetes.pod.name"] === "running");
    await node.endProcesses();
    await kubectl.apply(bound("new"));
    await kubectl.words("delete pod deleted --wait=false");
    await kubectl.words("delete pod forced --grace-period=0 --force");
    const image = JSON.stringify([{ op: "replace", path: "/spec/containers/0/image", value: "busybox:test" }]);
    await kubectl.words(`patch pod edited --type=json -p ${image}`);
    await join();
    await kubectl.untilGone("pod/deleted");
    await kubectl.readyPod("new");
    await kubectl.until("the new image", async () => {
      const [status] = (await kubectl.pod("edited")).status.containerStatuses;
      return status.restartCount === 1 && status.ready && status.image.includes("test");
    });
    await kubectl.until("three containers", async () => {
      const running = await node.running();
      return running.length === 3 && running.some(({ Id }) => Id === kept!.Id);
    });
    await kubectl.words("delete pod running new edited");
    await node.untilEmpty();
  });

  test("a static pod starts at the very first start, with an API server that cannot be reached", async () => {
    const other = new ClusterTestNode(plane);
    try {
      other.writeManifest("first.json", aClusterPod("first"));
      await other.join({ server: "https://127.0.0.1:1" });
      await other.runningContainer("app");
    } finally {
      await other.cleanUp();
    }
  });

  test("with --register-node=false pods run, and a Node that an administrator creates is reported", async () => {
    const other = new ClusterTestNode(plane);
    try {
      await other.join({ flags: ["--register-node=false"] });
      await kubectl.apply(aClusterPod("early", {}, { nodeName: other.name }));
      await kubectl.until("the pod to run", async () => (await kubectl.pod("early")).status.phase === "Running");
      expect((await kubectl.run(["get", "node", other.name])).code).not.toBe(0);
      await kubectl.apply(object("Node", other.name, {}, { labels: { made: "by-hand" } }));
      expect((await kubectl.readyNode(other.name)).metadata.labels.made).toBe("by-hand");
      await kubectl.readyPod("early");
      await kubectl.words("delete pod early");
    } finally {
      await other.cleanUp();
    }
  });
});
