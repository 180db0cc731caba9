import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { describeWithEngine, testNode } from "../support/engine.ts";
import {
  claim,
  claimSpec,
  list,
  object,
  persistentVolume,
  podSpec,
  STOPPABLE,
  shell,
  sleeper,
  workload,
} from "../support/manifests.ts";
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
});

describeWithEngine("Services and claims", () => {
  const HTTPD = "cat /etc/hostname > /data/index.html; exec httpd -f -p 8080 -h /data";
  const server = (version: string) => {
    const container = {
      name: "server",
      ...shell(HTTPD),
      env: [{ name: "VERSION", value: version }],
      volumeMounts: [{ name: "data", mountPath: "/data" }],
      readinessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 1 },
    };
    const volumes = [{ name: "data", persistentVolumeClaim: { claimName: "data" } }];
    return workload("Deployment", "db", {}, podSpec(container, { volumes }));
  };
  const service = object("Service", "db", { spec: { selector: { app: "db" }, ports: [{ port: 8080 }] } });

  test("a name leads to the pod, follows it, works while we are down, and restarts nothing", async () => {
    const node = testNode();
    const path = `${node.directory}/volume`;
    node.writeManifest("storage.yaml", list(persistentVolume("disk", { hostPath: { path } }), claim("data")));
    node.writeManifest("db.yaml", server("1"));
    node.writeManifest("client.yaml", sleeper("client"));
    const kubelet = await node.start();
    const client = await node.runningContainer("app");
    const fetched = async () => {
      const output = await node.exec(client.Id, "wget", "-q", "-O", "-", "http://db.default.svc:8080/");
      return /^db-\w+-\w{5}$/.exec(output.trim())?.[0];
    };
    await readyPods(node, 2);
    await volumeStatistics(node, "data");
    expect(await fetched()).toBeUndefined();
    const outside = object("Service", "outside", { spec: { type: "ExternalName", externalName: "localhost" } });
    node.writeManifest("service.yaml", list(service, outside));
    const first = await node.until("an answer by name", fetched);
    node.writeManifest("db.yaml", server("2"));
    await node.until("an answer of the next pod", async () => {
      const name = await fetched();
      return name && name !== first;
    });
    expect(existsSync(`${path}/index.html`)).toBe(true);
    const hosts = await node.exec(client.Id, "cat", "/etc/hosts");
    expect(hosts).toMatch(/^127\.0\.0\.1\s+outside\soutside\.default\soutside\.default\.svc\s/m);
    await kubelet.stop();
    expect(await fetched()).toMatch(/^db-/);
    expect((await node.runningContainer("app")).Id).toBe(client.Id);
  });
});
