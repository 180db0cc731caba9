import { expect, test } from "bun:test";
import { aPodSpec, IMAGE } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import { batch, claimSpec, persistentVolume, STOPPABLE, shell, workload } from "../support/manifests.ts";

const LOCAL = { image: IMAGE, imagePullPolicy: "Never" };

describeCluster("workloads of a cluster", () => {
  const { kubectl, node } = useCluster();

  test("a Deployment of 20 is scaled, rolled and rolled back", async () => {
    await kubectl.apply(workload("Deployment", "web", { replicas: 3 }, aPodSpec()));
    await kubectl.readyPods("web", 3);
    await kubectl.words("scale deployment/web --replicas=20");
    const first = await kubectl.readyPods("web", 20);
    expect(new Set(first.map((pod) => pod.status.podIP)).size).toBe(20);
    await kubectl.words("set env deployment/web REVISION=two");
    await kubectl.words("rollout status deployment/web --timeout=180s");
    const second = await kubectl.readyPods("web", 20);
    expect(second.map((pod) => pod.spec.containers[0].env)).toEqual(
      second.map(() => [{ name: "REVISION", value: "two" }]),
    );
    await kubectl.words("rollout undo deployment/web");
    await kubectl.words("rollout status deployment/web --timeout=180s");
    const third = await kubectl.readyPods("web", 20);
    expect(third.filter((pod) => pod.spec.containers[0].env !== undefined)).toEqual([]);
    expect(third.filter((pod) => pod.status.containerStatuses[0].restartCount > 0)).toEqual([]);
    await kubectl.words("delete deployment web");
    await kubectl.noneOf("pods", "web");
    expect(await node.listAll()).toEqual([]);
  });

  test("a DaemonSet, a Job and a CronJob", async () => {
    await kubectl.apply(
      workload("DaemonSet", "agent", {}, aPodSpec({}, { hostNetwork: true })),
      batch("Job", "sums", { completions: 3, parallelism: 2 }, { ...LOCAL, ...shell("echo done") }),
      batch("CronJob", "ticks", { schedule: "* * * * *" }, { ...LOCAL, command: ["true"] }, "batch/v1beta1"),
    );
    const [agent] = await kubectl.readyPods("agent", 1);
    expect(agent.status.podIP).toBe(agent.status.hostIP);
    const job = await kubectl.until("the completed Job", async () => {
      const found = await kubectl.json("get job sums");
      return found.status.succeeded === 3 && found;
    });
    expect(job.status.failed ?? 0).toBe(0);
    expect(await kubectl.words("logs -l app=sums")).toBe("done\ndone\ndone");
    // The controller checks for runs that are due every ten seconds after the full minute.
    await kubectl.until(
      "a pod of the CronJob that succeeded",
      async () => (await kubectl.list("pods", "-l", "app=ticks")).some((pod) => pod.status.phase === "Succeeded"),
      150_000,
    );
    await kubectl.words("delete cronjob/ticks job/sums daemonset/agent");
    for (const app of ["agent", "sums", "ticks"]) await kubectl.noneOf("pods", app);
  });

  test("a StatefulSet with local volumes keeps its data", async () => {
    const directories = ["a", "b"].map((name) => `${node.directory}/volume-${name}`);
    for (const directory of directories) Bun.spawnSync(["mkdir", "-p", directory]);
    const matchExpressions = [{ key: "kubernetes.io/hostname", operator: "In", values: [node.name] }];
    const volumes = directories.map((path, index) =>
      persistentVolume(`local-${index}`, {
        storageClassName: "local",
        persistentVolumeReclaimPolicy: "Retain",
        local: { path },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      }),
    );
    await kubectl.apply(
      {
        apiVersion: "storage.k8s.io/v1",
        kind: "StorageClass",
        metadata: { name: "local" },
        provisioner: "kubernetes.io/no-provisioner",
        volumeBindingMode: "WaitForFirstConsumer",
      },
      ...volumes,
      workload(
        "StatefulSet",
        "db",
        {
          serviceName: "db",
          replicas: 2,
          volumeClaimTemplates: [{ metadata: { name: "data" }, spec: claimSpec({ storageClassName: "local" }) }],
        },
        aPodSpec({
          ...shell(`echo $HOSTNAME >> /data/starts; ${STOPPABLE}`),
          volumeMounts: [{ name: "data", mountPath: "/data" }],
        }),
      ),
    );
    await kubectl.readyPods("db", 2);
    await kubectl.words("delete pod db-0");
    await kubectl.readyPods("db", 2);
    expect(await kubectl.exec("db-0", "cat", "/data/starts")).toBe("db-0\ndb-0");
    expect(await kubectl.exec("db-1", "cat", "/data/starts")).toBe("db-1");
    await kubectl.words("delete statefulset db");
    await kubectl.noneOf("pods", "db");
  });
});
