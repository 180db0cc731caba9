import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { LABEL } from "../../src/docker/labels.ts";
import { aClusterPod, aPodSpec } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { anExpiredWatch, aRefusal, type Fault, FaultyProxy } from "../support/cluster/faulty-proxy.ts";
import { type TestCluster, useCluster } from "../support/cluster/use-cluster.ts";
import { workload } from "../support/manifests.ts";
import { TestProxy } from "../support/test-proxy.ts";

const PODS = 50;
const LIMIT_MS = 240_000;
/** Pods, Services, the Node, two ConfigMaps, and the Secret of the service account. */
const WATCHES = 6;
const FAULT_MS = 3_000;
/** A lease is renewed every ten seconds. */
const MISSED_RENEWAL_MS = 14_000;
/** Far from a storm: there are six watches, and `--kube-api-qps` alone would allow hundreds. */
const MOST_REQUESTS = 50;
/** Times that the network goes and comes, four seconds each. */
const FLAPS = Number(process.env.KUBELET_TS_TEST_FLAPS ?? 4);
/** The API server is unreachable for this time when it is killed. Unit: milliseconds. */
const OUTAGE_MS = Number(process.env.KUBELET_TS_TEST_OUTAGE ?? 2) * 1000;

/** Faults of the connection to the API server. */
const FAULTS: Readonly<Record<string, Fault>> = {
  "410 to every watch": ({ isWatch }) => (isWatch ? anExpiredWatch() : undefined),
  "500 to every watch": ({ isWatch }) => (isWatch ? aRefusal(500, "InternalError") : undefined),
  "429 with Retry-After": () => aRefusal(429, "TooManyRequests", { "Retry-After": "2" }),
  "500 to everything": () => aRefusal(500, "InternalError"),
};

describeCluster("an API server that goes away under 50 pods", () => {
  let proxy: TestProxy;
  let ids: string[];
  const setUp = async ({ plane, kubectl, node }: TestCluster) => {
    proxy = new TestProxy(plane.port);
    await node.join({ server: proxy.url });
    await kubectl.words("create configmap settings --from-literal=color=blue");
    // A missing ConfigMap must not keep pods of an earlier process from supervision.
    const optional = { configMapRef: { name: "not-there", optional: true } };
    const container = { envFrom: [{ configMapRef: { name: "settings" } }, optional] };
    await kubectl.apply(workload("Deployment", "many", { replicas: PODS }, aPodSpec(container)));
    await kubectl.readyPods("many", PODS, LIMIT_MS);
    ids = await node.containerIds();
  };
  // An API server that ends gracefully waits for its watches for that time.
  const options = { apiServerFlags: ["--request-timeout=15s"], tearDown: () => proxy?.close() };
  const { plane, kubectl, node } = useCluster(setUp, options);

  /** The node reports to the API server after this. */
  const renewal = async () => {
    await kubectl.renewal(node.name);
    await kubectl.readyNode(node.name);
  };

  /** The node takes part: a pod is bound to it and reported. */
  const newPod = async (name: string) => {
    await kubectl.apply(aClusterPod(name, {}, { nodeName: node.name }));
    await kubectl.readyPod(name);
    await kubectl.words(`delete pod ${name}`);
  };

  const expectUntouched = async () => {
    expect(await node.containerIds()).toEqual(ids);
    const pods = await kubectl.list("pods", "-l", "app=many");
    const restarts = pods.map(({ status }) => status.containerStatuses[0].restartCount);
    expect(restarts).toEqual(Array(PODS).fill(0));
  };

  test("killed and started again: no container is touched", async () => {
    await plane.killApiServer();
    await Bun.sleep(OUTAGE_MS);
    await plane.startApiServer();
    await newPod("first");
    await expectUntouched();
  });

  test("upgraded in place: ended gracefully and started again with other flags", async () => {
    await plane.killApiServer("SIGTERM");
    await plane.startApiServer(["--feature-gates=EphemeralContainers=true,EndpointSlice=false"]);
    await renewal();
    await expectUntouched();
  });

  test("partitioned: a proxy that stalls, then one that cuts every four seconds", async () => {
    proxy.stall();
    await kubectl.until(
      "a missed renewal of the lease",
      async () => Date.now() - Date.parse((await kubectl.lease(node.name)).spec.renewTime) > MISSED_RENEWAL_MS,
    );
    proxy.resume();
    await renewal();
    const before = proxy.connections;
    for (let count = 0; count < FLAPS; count++) {
      proxy.cut();
      await Bun.sleep(2_000);
      proxy.resume();
      await Bun.sleep(2_000);
    }
    await renewal();
    expect(proxy.connections - before).toBeLessThan(MOST_REQUESTS * FLAPS);
    await expectUntouched();
  });

  test("410, 429 and 500: no container is touched, and requests stay few", async () => {
    const faulty = new FaultyProxy(plane, node.name);
    try {
      await node.endProcesses();
      await node.join({ server: faulty.url });
      await kubectl.until("all watches to be open", async () => faulty.openWatches.length === WATCHES);
      for (const fault of Object.values(FAULTS)) {
        faulty.forget();
        faulty.inject(fault);
        await Bun.sleep(FAULT_MS);
        // Statuses are not a storm: after our start each pod has one.
        expect(faulty.requests.filter(({ method }) => method === "GET").length).toBeLessThan(MOST_REQUESTS);
        faulty.inject(undefined);
        await kubectl.until("all watches to be open", async () => faulty.openWatches.length === WATCHES);
      }
      await newPod("afterwards");
      await expectUntouched();
    } finally {
      await faulty.close();
    }
  });

  test("our own restart while it is away starts what ended, from the checkpoint; statuses are reported afterwards", async () => {
    proxy.cut();
    await node.endProcesses();
    const [victim] = await node.containers("app");
    const uid = victim!.Labels[LABEL.podUid];
    await node.removeAll((await node.listAll()).filter(({ Labels }) => Labels[LABEL.podUid] === uid));
    await node.join({ server: proxy.url });
    await node.untilRunning(PODS);
    const fresh = (await node.containerIds()).filter((id) => !ids.includes(id));
    expect(fresh).toHaveLength(1);
    const { Config } = await node.docker.inspectContainerRaw(fresh[0]!);
    expect((Config as { Env: string[] }).Env).toContain("color=blue");
    const checkpoints = join(node.rootDir, "checkpoints");
    expect(statSync(checkpoints).mode & 0o077).toBe(0);
    for (const file of readdirSync(checkpoints)) expect(statSync(join(checkpoints, file)).mode & 0o777).toBe(0o600);
    // Volumes are written as well, from the Secret of the checkpoint.
    const token = "/var/run/secrets/kubernetes.io/serviceaccount/token";
    const { Mounts } = await node.docker.inspectContainerRaw(fresh[0]!);
    const mount = (Mounts as { Source: string; Destination: string }[]).find(({ Destination }) =>
      token.startsWith(Destination),
    );
    expect(readFileSync(join(mount!.Source, "token"), "utf8").length).toBeGreaterThan(100);
    // Containers that die meanwhile are started again, too.
    await node.docker.killContainer(fresh[0]!, "SIGKILL");
    const next = await node.successorOf("app", ...ids, ...fresh);
    proxy.resume();
    await renewal();
    const pods = await kubectl.readyPods("many", PODS, LIMIT_MS);
    const started = pods.filter(({ status }) => status.containerStatuses[0].containerID === `docker://${next.Id}`);
    expect(started).toHaveLength(1);
    expect(pods.filter(({ status }) => status.containerStatuses[0].restartCount > 0)).toEqual(started);
  });

  test("a deletion while it is away is carried out when it is back", async () => {
    proxy.cut();
    await kubectl.words("delete deployment many --wait=false");
    await kubectl.until("the pods to be terminating", async () => {
      const pods = await kubectl.list("pods", "-l", "app=many");
      return pods.length > 0 && pods.every(({ metadata }) => metadata.deletionTimestamp !== undefined);
    });
    expect(await node.running()).toHaveLength(PODS);
    proxy.resume();
    await kubectl.noneOf("pods", "many", LIMIT_MS);
    expect(await node.listAll()).toEqual([]);
  });
});
