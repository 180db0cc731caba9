import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { claimSpec, list, object, podSpec, STOPPABLE, shell, workload } from "../support/manifests.ts";
import { isReady, type PodItem, removeContainersOf, type TestNode } from "../support/test-node.ts";

const readyPods = (node: TestNode, count: number, isWanted: (pod: PodItem) => boolean = () => true) =>
  node.until(`${count} Ready pods and no other`, async () => {
    const pods = await node.pods();
    return pods.length === count && pods.every((pod) => isReady(pod) && isWanted(pod)) && pods;
  });

const namesOf = (pods: readonly PodItem[]) => pods.map(({ metadata }) => metadata.name!);
const uidsOf = (pods: readonly PodItem[]) => pods.map(({ metadata }) => metadata.uid!);

/** Waits for as many Ready pods as there were before, all of them others. */
const untilReplaced = (node: TestNode, before: readonly PodItem[]) =>
  node.until("other pods than before", async () =>
    uidsOf(await readyPods(node, before.length)).every((uid) => !uidsOf(before).includes(uid)),
  );

/** The metrics have this claim. Its first measurement begins with the first request. */
const volumeStatistics = (node: TestNode, name: string) =>
  node.until(`statistics of claim ${name}`, async () =>
    (await node.read("/metrics")).includes(
      `kubelet_volume_stats_used_bytes{namespace="default",persistentvolumeclaim="${name}"} `,
    ),
  );

describeWithEngine("the other workloads", () => {
  test("a StatefulSet starts its pods in order, and each finds its claim again after an update", async () => {
    const node = testNode();
    const data = `data-${node.name}`;
    const statefulSet = (version: string) => {
      const container = {
        ...shell(`hostname >> /data/names; ${STOPPABLE}`),
        env: [{ name: "VERSION", value: version }],
        volumeMounts: [{ name: data, mountPath: "/data" }],
        readinessProbe: { exec: { command: ["true"] }, periodSeconds: 1 },
      };
      const volumeClaimTemplates = [{ metadata: { name: data }, spec: claimSpec() }];
      const spec = { replicas: 2, serviceName: "db", volumeClaimTemplates };
      return workload("StatefulSet", "db", spec, podSpec(container));
    };
    try {
      node.writeManifest("db.yaml", statefulSet("1"));
      await node.start();
      const before = await readyPods(node, 2);
      expect(namesOf(before).sort()).toEqual(["db-0", "db-1"]);
      await volumeStatistics(node, `${data}-db-0`);
      node.writeManifest("db.yaml", statefulSet("2"));
      await untilReplaced(node, before);
      const [container] = await node.containers("app");
      // Written by two pods of one name.
      await node.until("what the pod before it wrote", async () => {
        return /^(db-[01])\n\1\n$/.test(await node.exec(container!.Id, "cat", "/data/names"));
      });
    } finally {
      await node.endProcesses();
      await removeContainersOf(node.docker, node.name);
      for (const ordinal of [0, 1]) await node.docker.removeVolume(`${data}-db-${ordinal}`);
    }
  });

  test("--runonce rolls edited workloads out before it ends, and Services have names", async () => {
    const node = testNode();
    const edition = (version: string) => {
      const pod = podSpec({ ...shell(STOPPABLE), env: [{ name: "VERSION", value: version }] });
      const service = object("Service", "db", { spec: { selector: { app: "db" }, ports: [{ port: 80 }] } });
      const deployment = workload("Deployment", "web", { replicas: 3 }, pod);
      const statefulSet = workload("StatefulSet", "db", { replicas: 2, serviceName: "db" }, pod);
      return node.writeManifest("shop.json", list(service, deployment, statefulSet));
    };
    for (const version of ["1", "2"]) expect((await node.runOnce([edition(version)])).exitCode).toBe(0);
    const containers = await node.containers("app");
    const versions = await Promise.all(
      containers.map(async ({ Id }) => (await node.exec(Id, "sh", "-c", "echo $VERSION")).trim()),
    );
    expect(versions).toEqual(Array.from({ length: 5 }, () => "2"));
    const web = containers.find(({ Names }) => Names[0]!.includes("_web-"))!;
    expect(await node.exec(web.Id, "cat", "/etc/hosts")).toMatch(/\tdb\tdb.default\t/);
  });
});
