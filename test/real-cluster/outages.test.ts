import { afterAll, beforeAll, expect, test } from "bun:test";
import { ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import { ClusterTestNode } from "../support/cluster/cluster-node.ts";
import { aPodSpec, aWorkload, conditionOf, isReady } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { ControlPlane } from "../support/cluster/control-plane.ts";
import { StallingProxy } from "../support/cluster/stalling-proxy.ts";

const PODS = 50;

describeCluster("an API server that goes away under 50 pods", () => {
  let plane: ControlPlane;
  let proxy: StallingProxy;
  let kubectl: ClusterKubectl;
  let node: ClusterTestNode;
  let ids: string[];

  const containerIds = async () => (await node.containers()).map(({ Id }) => Id).sort();
  const readyPods = (count: number) =>
    kubectl.until(
      `${count} Ready pods`,
      async () => {
        const pods = await kubectl.list("pods", "-l", "app=many");
        return pods.length === count && pods.every(isReady) && pods;
      },
      240_000,
    );

  /** The node reports to the API server after this. */
  const renewal = async () => {
    const lease = () => kubectl.json(["get", "lease", "-n", "kube-node-lease", node.name]);
    const before = (await lease()).spec.renewTime;
    await kubectl.until("the renewal of the lease", async () => (await lease()).spec.renewTime !== before);
    await kubectl.until(
      "a Ready node",
      async () => conditionOf(await kubectl.json(["get", "node", node.name]), "Ready") === "True",
    );
  };

  const expectUntouched = async () => {
    expect(await containerIds()).toEqual(ids);
    const pods = await kubectl.list("pods", "-l", "app=many");
    const restarts = pods.map(({ status }) => status.containerStatuses[0].restartCount);
    expect(restarts).toEqual(Array(PODS).fill(0));
  };

  beforeAll(async () => {
    plane = new ControlPlane();
    kubectl = new ClusterKubectl(plane);
    await plane.start();
    proxy = new StallingProxy(plane.port);
    node = new ClusterTestNode(plane);
    await node.join({ server: proxy.url });
    await kubectl.output(["create", "configmap", "settings", "--from-literal=color=blue"]);
    const container = { envFrom: [{ configMapRef: { name: "settings" } }] };
    await kubectl.apply(aWorkload("Deployment", "many", { replicas: PODS }, aPodSpec(container)));
    await readyPods(PODS);
    ids = await containerIds();
  });

  afterAll(async () => {
    await node?.cleanUp();
    proxy?.close();
    await plane?.stop();
  });

  test("killed and started again: no container is touched", async () => {
    await plane.killApiServer();
    await Bun.sleep(5_000);
    await plane.startApiServer();
    await renewal();
    await expectUntouched();
  });

  test("upgraded in place: ended gracefully and started again", async () => {
    await plane.killApiServer("SIGTERM");
    await plane.startApiServer();
    await renewal();
    await expectUntouched();
  });

  test("partitioned: a proxy that stalls, then one that cuts every five seconds", async () => {
    proxy.stall();
    await Bun.sleep(15_000);
    proxy.resume();
    await renewal();
    for (let count = 0; count < 4; count++) {
      proxy.cut();
      await Bun.sleep(2_500);
      proxy.resume();
      await Bun.sleep(2_500);
    }
    await renewal();
    await expectUntouched();
  });

  test("our own restart while it is away starts what ended, from the checkpoint; statuses are told afterwards", async () => {
    proxy.cut();
    await node.endProcesses();
    const [victim] = await node.containers("app");
    await node.docker.removeContainer(victim!.Id, { force: true });
    await node.join({ server: proxy.url });
    await node.until("all containers to run", async () => {
      const running = (await node.containers("app")).filter(({ State }) => State === "running");
      return running.length === PODS;
    });
    const now = await containerIds();
    expect(now.filter((id) => !ids.includes(id))).toHaveLength(1);
    proxy.resume();
    await renewal();
    await readyPods(PODS);
    expect(await containerIds()).toEqual(now);
  });

  test("a deletion while it is away is carried out when it is back", async () => {
    proxy.cut();
    await kubectl.output(["delete", "deployment", "many", "--wait=false"]);
    await kubectl.until("the pods to be terminating", async () => {
      const pods = await kubectl.list("pods", "-l", "app=many");
      return pods.length > 0 && pods.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
    });
    expect((await node.containers("app")).filter(({ State }) => State === "running")).toHaveLength(PODS);
    proxy.resume();
    await kubectl.until("no pod", async () => (await kubectl.list("pods", "-l", "app=many")).length === 0, 240_000);
    expect(await node.listAll()).toEqual([]);
  });
});
