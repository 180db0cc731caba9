import { expect, test } from "bun:test";
import type { ClusterKubectl } from "../support/cluster/cluster-kubectl.ts";
import type { ClusterTestNode } from "../support/cluster/cluster-node.ts";
import { aPodSpec, aWorkload, isReady } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";

describeCluster("workloads of a cluster", () => {
  let kubectl: ClusterKubectl;
  let node: ClusterTestNode;

  useCluster(async (cluster) => {
    ({ kubectl, node } = cluster);
    await node.join();
  });

  /** Waits until exactly this number of pods of an app exist and are Ready. */
  const readyPods = (app: string, count: number) =>
    kubectl.until(`${count} Ready pods of "${app}"`, async () => {
      const pods = await kubectl.list("pods", "-l", `app=${app}`);
      return pods.length === count && pods.every(isReady) && pods;
    });

  const gone = (kind: string, selector: string) =>
    kubectl.until(`no ${kind} of ${selector}`, async () => (await kubectl.list(kind, "-l", selector)).length === 0);

  test("a Deployment of 20 is scaled, rolled and rolled back", async () => {
    await kubectl.apply(aWorkload("Deployment", "web", { replicas: 3 }));
    await readyPods("web", 3);
    await kubectl.output(["scale", "deployment/web", "--replicas=20"]);
    const first = await readyPods("web", 20);
    expect(new Set(first.map((pod) => pod.status.podIP)).size).toBe(20);
    await kubectl.output(["set", "env", "deployment/web", "REVISION=two"]);
    await kubectl.output(["rollout", "status", "deployment/web", "--timeout=180s"]);
    const second = await readyPods("web", 20);
    expect(second.map((pod) => pod.spec.containers[0].env)).toEqual(
      second.map(() => [{ name: "REVISION", value: "two" }]),
    );
    await kubectl.output(["rollout", "undo", "deployment/web"]);
    await kubectl.output(["rollout", "status", "deployment/web", "--timeout=180s"]);
    const third = await readyPods("web", 20);
    expect(third.filter((pod) => pod.spec.containers[0].env !== undefined)).toEqual([]);
    expect(third.filter((pod) => pod.status.containerStatuses[0].restartCount > 0)).toEqual([]);
    await kubectl.output(["delete", "deployment", "web"]);
    await gone("pods", "app=web");
    expect(await node.listAll()).toEqual([]);
  });

  test("a DaemonSet, a Job and a CronJob", async () => {
    await kubectl.apply(
      aWorkload("DaemonSet", "agent", {}, aPodSpec({}, { hostNetwork: true })),
      {
        apiVersion: "batch/v1",
        kind: "Job",
        metadata: { name: "sums" },
        spec: {
          completions: 3,
          parallelism: 2,
          template: {
            metadata: { labels: { app: "sums" } },
            spec: aPodSpec({ command: ["sh", "-c", "echo done"] }, { restartPolicy: "Never" }),
          },
        },
      },
      {
        apiVersion: "batch/v1beta1",
        kind: "CronJob",
        metadata: { name: "ticks" },
        spec: {
          schedule: "* * * * *",
          jobTemplate: {
            spec: {
              template: {
                metadata: { labels: { app: "ticks" } },
                spec: aPodSpec({ command: ["true"] }, { restartPolicy: "OnFailure" }),
              },
            },
          },
        },
      },
    );
    const [agent] = await readyPods("agent", 1);
    expect(agent.status.podIP).toBe(agent.status.hostIP);
    const job = await kubectl.until("the completed Job", async () => {
      const found = await kubectl.json(["get", "job", "sums"]);
      return found.status.succeeded === 3 && found;
    });
    expect(job.status.failed ?? 0).toBe(0);
    expect(await kubectl.output(["logs", "-l", "app=sums"])).toBe("done\ndone\ndone");
    // The controller checks for runs that are due every ten seconds after the full minute.
    await kubectl.until(
      "a pod of the CronJob that succeeded",
      async () => (await kubectl.list("pods", "-l", "app=ticks")).some((pod) => pod.status.phase === "Succeeded"),
      150_000,
    );
    await kubectl.output(["delete", "cronjob/ticks", "job/sums", "daemonset/agent"]);
    for (const app of ["agent", "sums", "ticks"]) await gone("pods", `app=${app}`);
  });

  test("a StatefulSet with local volumes keeps its data", async () => {
    const directories = ["a", "b"].map((name) => `${node.directory}/volume-${name}`);
    for (const directory of directories) Bun.spawnSync(["mkdir", "-p", directory]);
    const volumes = directories.map((path, index) => ({
      apiVersion: "v1",
      kind: "PersistentVolume",
      metadata: { name: `local-${index}` },
      spec: {
        capacity: { storage: "1Gi" },
        accessModes: ["ReadWriteOnce"],
        storageClassName: "local",
        persistentVolumeReclaimPolicy: "Retain",
        local: { path },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: [node.name] }] },
            ],
          },
        },
      },
    }));
    await kubectl.apply(
      {
        apiVersion: "storage.k8s.io/v1",
        kind: "StorageClass",
        metadata: { name: "local" },
        provisioner: "kubernetes.io/no-provisioner",
        volumeBindingMode: "WaitForFirstConsumer",
      },
      ...volumes,
      aWorkload(
        "StatefulSet",
        "db",
        {
          serviceName: "db",
          replicas: 2,
          volumeClaimTemplates: [
            {
              metadata: { name: "data" },
              spec: {
                accessModes: ["ReadWriteOnce"],
                storageClassName: "local",
                resources: { requests: { storage: "1Gi" } },
              },
            },
          ],
        },
        aPodSpec({
          command: ["sh", "-c", "echo $HOSTNAME >> /data/starts; sleep 100000"],
          volumeMounts: [{ name: "data", mountPath: "/data" }],
        }),
      ),
    );
    await readyPods("db", 2);
    await kubectl.output(["delete", "pod", "db-0"]);
    await readyPods("db", 2);
    expect(await kubectl.output(["exec", "db-0", "--", "cat", "/data/starts"])).toBe("db-0\ndb-0");
    expect(await kubectl.output(["exec", "db-1", "--", "cat", "/data/starts"])).toBe("db-1");
    await kubectl.output(["delete", "statefulset", "db"]);
    await gone("pods", "app=db");
  });
});
