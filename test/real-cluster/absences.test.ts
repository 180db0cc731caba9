import { expect, test } from "bun:test";
import type { AnyObject, ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import { ClusterTestNode } from "../support/cluster/cluster-node.ts";
import { aClusterPod, aWorkload, conditionOf, IMAGE, isReady } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import type { ControlPlane } from "../support/cluster/control-plane.ts";
import { StallingProxy } from "../support/cluster/stalling-proxy.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import { PrivateEngine } from "../support/private-engine.ts";

describeCluster("objects that are deleted, and changes while one side is away", () => {
  let plane: ControlPlane;
  let proxy: StallingProxy;
  let kubectl: ClusterKubectl;
  let node: ClusterTestNode;

  const join = () => node.join({ server: proxy.url, flags: ["--node-labels=disk=ssd"] });

  useCluster(
    async (cluster) => {
      ({ plane, kubectl, node } = cluster);
      proxy = new StallingProxy(plane.port);
      await join();
    },
    { tearDown: () => proxy?.close() },
  );

  const pod = (name: string) => kubectl.json(["get", "pod", name]);
  const readNode = () => kubectl.json(["get", "node", node.name]);
  const readyNode = () =>
    kubectl.until("a Ready node", async () => {
      const found = await readNode();
      return conditionOf(found, "Ready") === "True" && found;
    });
  const noPod = (name: string) =>
    kubectl.until(`no pod "${name}"`, async () => (await kubectl.run(["get", "pod", name])).code !== 0);
  const bound = (name: string, container: object = {}, spec: object = {}, metadata: object = {}) =>
    aClusterPod(name, container, { nodeName: node.name, ...spec }, metadata);
  const containerIds = async () => (await node.containers()).map(({ Id }) => Id).sort();
  const noContainer = () => kubectl.until("no container", async () => (await node.listAll()).length === 0);

  test("a Node that is deleted is registered again, with its Lease, and its pods run on", async () => {
    await kubectl.apply(bound("kept"));
    await kubectl.readyPod("kept");
    const ids = await containerIds();
    const before = await readyNode();
    await kubectl.output(["delete", "node", node.name]);
    const after = await kubectl.until("another Node", async () => {
      const found = await readNode();
      return found.metadata.uid !== before.metadata.uid && conditionOf(found, "Ready") === "True" && found;
    });
    expect(after.metadata.labels.disk).toBe("ssd");
    await kubectl.until("the Lease of that Node", async () => {
      const { metadata } = await kubectl.json(["get", "lease", "-n", "kube-node-lease", node.name]);
      return metadata.ownerReferences[0].uid === after.metadata.uid;
    });
    expect(await containerIds()).toEqual(ids);
    await kubectl.readyPod("kept");
    await kubectl.output(["delete", "pod", "kept"]);
  });

  test("cordon and uncordon are events of the node, as are those of its start", async () => {
    await kubectl.output(["cordon", node.name]);
    const reasons = async () => {
      const events = await kubectl.list("events", `--field-selector=involvedObject.name=${node.name}`);
      return events.map(({ reason }: AnyObject) => reason as string);
    };
    await kubectl.until("NodeNotSchedulable", async () => (await reasons()).includes("NodeNotSchedulable"));
    await kubectl.output(["uncordon", node.name]);
    await kubectl.until("NodeSchedulable", async () => (await reasons()).includes("NodeSchedulable"));
    expect(await reasons()).toEqual(
      expect.arrayContaining([
        "Starting",
        "NodeHasSufficientMemory",
        "NodeHasNoDiskPressure",
        "NodeHasSufficientPID",
        "NodeReady",
      ]),
    );
  });

  test("a pod with a finalizer stops, and never runs again while it stays", async () => {
    await kubectl.apply(bound("finalized", {}, {}, { finalizers: ["example.com/wait"] }));
    await kubectl.readyPod("finalized");
    await kubectl.output(["delete", "pod", "finalized", "--wait=false"]);
    await noContainer();
    await kubectl.until("its end in the status", async () => {
      const { metadata, status } = await pod("finalized");
      expect(metadata.deletionTimestamp).toBeDefined();
      return status.containerStatuses.every(({ state }: AnyObject) => state.terminated);
    });
    await node.endProcesses();
    await join();
    await kubectl.apply(bound("after"));
    await kubectl.readyPod("after");
    expect((await node.containers()).length).toBe(1);
    const patch = JSON.stringify({ metadata: { finalizers: null } });
    await kubectl.output(["patch", "pod", "finalized", "--type=merge", "-p", patch]);
    await noPod("finalized");
    await kubectl.output(["delete", "pod", "after"]);
  });

  test("a namespace goes with all that is in it", async () => {
    await kubectl.output(["create", "namespace", "team"]);
    const inTeam = (object: object & { metadata: object }) => ({
      ...object,
      metadata: { ...object.metadata, namespace: "team" },
    });
    await kubectl.until("its account", async () => {
      const { code } = await kubectl.run(["get", "serviceaccount", "default", "-n", "team"]);
      return code === 0;
    });
    const volumes = [{ name: "v", configMap: { name: "settings" } }];
    const container = { volumeMounts: [{ name: "v", mountPath: "/v" }] };
    await kubectl.apply(
      inTeam({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "settings" }, data: { a: "1" } } as never),
      ...["one", "two", "three"].map((name) => inTeam(bound(name, container, { volumes }))),
    );
    await kubectl.until("3 Ready pods", async () => {
      const pods = await kubectl.list("pods", "-n", "team");
      return pods.length === 3 && pods.every(isReady);
    });
    await kubectl.output(["delete", "namespace", "team", "--timeout=120s"]);
    expect((await node.containers()).length).toBe(0);
    await noContainer();
  });

  test("a drain waits for a disruption budget", async () => {
    const budget = (minAvailable: number) => ({
      apiVersion: "policy/v1beta1",
      kind: "PodDisruptionBudget",
      metadata: { name: "budget" },
      spec: { minAvailable, selector: { matchLabels: { app: "guarded" } } },
    });
    await kubectl.apply(aWorkload("Deployment", "guarded", { replicas: 2 }), budget(2));
    await kubectl.until("2 Ready pods", async () => {
      const pods = await kubectl.list("pods", "-l", "app=guarded");
      return pods.length === 2 && pods.every(isReady);
    });
    await kubectl.until("the budget to count them", async () => {
      const { status } = await kubectl.json(["get", "pdb", "budget"]);
      return status?.currentHealthy === 2;
    });
    const ids = await containerIds();
    const drain = (seconds: number) =>
      kubectl.run(["drain", node.name, "--ignore-daemonsets", "--force", `--timeout=${seconds}s`]);
    const refused = await drain(3);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain("violate the pod's disruption budget");
    expect(await containerIds()).toEqual(ids);
    await kubectl.apply(budget(0));
    await kubectl.until("the drain", async () => (await drain(30)).code === 0);
    await noContainer();
    await kubectl.output(["delete", "deployment/guarded", "pdb/budget"]);
    await kubectl.output(["uncordon", node.name]);
  });

  test("what was bound, edited and deleted while kubelet-ts was down is carried out", async () => {
    await kubectl.apply(bound("running"), bound("deleted"), bound("forced"), bound("edited"));
    for (const name of ["running", "deleted", "forced", "edited"]) await kubectl.readyPod(name);
    const [kept] = (await node.containers()).filter(({ Labels }) => Labels["io.kubernetes.pod.name"] === "running");
    await node.endProcesses();
    await kubectl.apply(bound("new"));
    await kubectl.output(["delete", "pod", "deleted", "--wait=false"]);
    await kubectl.output(["delete", "pod", "forced", "--grace-period=0", "--force"]);
    const image = JSON.stringify([{ op: "replace", path: "/spec/containers/0/image", value: "busybox:test" }]);
    await kubectl.output(["patch", "pod", "edited", "--type=json", "-p", image]);
    await join();
    await noPod("deleted");
    await kubectl.readyPod("new");
    await kubectl.until("the new image", async () => {
      const [status] = (await pod("edited")).status.containerStatuses;
      return status.restartCount === 1 && status.ready && status.image.includes("test");
    });
    await kubectl.until("three containers", async () => {
      const running = (await node.containers()).filter(({ State }) => State === "running");
      return running.length === 3 && running.some(({ Id }) => Id === kept!.Id);
    });
    await kubectl.output(["delete", "pod", "running", "new", "edited"]);
    await noContainer();
  });

  test("a static pod that is edited and removed while the API server is away runs as it is now", async () => {
    const name = `web-${node.name}`;
    const manifest = (revision: string) => ({
      ...aClusterPod("web", { env: [{ name: "REVISION", value: revision }] }),
      metadata: { name: "web", labels: { revision } },
    });
    node.writeManifest("web.json", manifest("one"));
    await kubectl.readyPod(name);
    const [first] = await node.containers("app");
    proxy.cut();
    node.writeManifest("web.json", manifest("two"));
    await node.until("the edited container", async () =>
      (await node.containers("app")).some(({ Id, State }) => State === "running" && Id !== first!.Id),
    );
    proxy.resume();
    await kubectl.until("the edited mirror", async () => (await pod(name)).metadata.labels.revision === "two");
    await kubectl.readyPod(name);
    proxy.cut();
    node.removeManifest("web.json");
    await node.until("no container", async () => (await node.listAll()).length === 0);
    proxy.resume();
    await noPod(name);
  });

  test("an engine that is restarted while the API server is away: its pods come back, and that is reported afterwards", async () => {
    const engine = new PrivateEngine();
    const other = new ClusterTestNode(plane, { socketPath: engine.socketPath });
    try {
      await engine.start();
      await engine.provideImages(IMAGE);
      await other.join({ server: proxy.url });
      await kubectl.apply(aClusterPod("survivor", {}, { nodeName: other.name }));
      await kubectl.readyPod("survivor");
      const [before] = await other.containers("app");
      proxy.cut();
      // It stops its containers.
      await engine.stop();
      await engine.start();
      const after = await other.until("another container", async () =>
        (await other.containers("app")).find(({ Id, State }) => State === "running" && Id !== before!.Id),
      );
      proxy.resume();
      await kubectl.until("its status", async () => {
        const [status] = (await pod("survivor")).status.containerStatuses;
        return status.containerID === `docker://${after.Id}` && status.ready;
      });
      await kubectl.output(["delete", "pod", "survivor"]);
    } finally {
      await other.cleanUp();
      await engine.cleanUp();
    }
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
      await kubectl.until("the pod to run", async () => (await pod("early")).status.phase === "Running");
      expect((await kubectl.run(["get", "node", other.name])).code).not.toBe(0);
      await kubectl.apply({
        apiVersion: "v1",
        kind: "Node",
        metadata: { name: other.name, labels: { made: "by-hand" } },
      });
      const found = await kubectl.until("a Ready node", async () => {
        const one = await kubectl.json(["get", "node", other.name]);
        return conditionOf(one, "Ready") === "True" && one;
      });
      expect(found.metadata.labels.made).toBe("by-hand");
      await kubectl.readyPod("early");
      await kubectl.output(["delete", "pod", "early"]);
    } finally {
      await other.cleanUp();
    }
  });
});
