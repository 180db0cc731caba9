import { expect, test } from "bun:test";
import { aClusterPod } from "../support/cluster/cluster-objects.ts";
import { describeCluster } from "../support/cluster/cluster-tools.ts";
import { useCluster } from "../support/cluster/use-cluster.ts";
import type { AnyObject } from "../support/kubectl.ts";
import type { KubeletProcess } from "../support/kubelet-process.ts";
import { object, shell } from "../support/manifests.ts";

describeCluster("what a node of a cluster tells, and how often", () => {
  let kubelet: KubeletProcess;
  const { kubectl, node } = useCluster(async ({ node }) => {
    kubelet = await node.join();
  });
  const linesWith = (...words: string[]) =>
    kubelet.log.split("\n").filter((line) => words.every((word) => line.includes(word)));

  test("NodeReady is one event", async () => {
    await kubectl.readyNode(node.name);
    await kubectl.untilEvent(node.name, "NodeReady");
    const events = await kubectl.list("events", "--field-selector=reason=NodeReady");
    expect(events.map(({ count }: AnyObject) => count)).toEqual([1]);
    expect(linesWith("NodeReady:")).toHaveLength(1);
  });

  test("an extended resource in the capacity of the Node is allocatable, and pods take it", async () => {
    const patch = [{ op: "add", path: "/status/capacity/example.com~1dongle", value: "1" }];
    const proxy = kubectl.spawn(["proxy", "--port=0"]);
    const line = new TextDecoder().decode((await proxy.stdout.getReader().read()).value);
    const url = `http://${/127\.0\.0\.1:\d+/.exec(line)?.[0]}/api/v1/nodes/${node.name}/status`;
    const headers = { "Content-Type": "application/json-patch+json" };
    const patched = await fetch(url, { method: "PATCH", headers, body: JSON.stringify(patch) });
    proxy.kill();
    expect(patched.status).toBe(200);
    await kubectl.until("the allocatable resource", async () => {
      const { status } = await kubectl.json(`get node ${node.name}`);
      return status.allocatable["example.com/dongle"] === "1";
    });
    const dongle = { resources: { limits: { "example.com/dongle": "1" } } };
    await kubectl.apply(aClusterPod("with-dongle", dongle));
    await kubectl.readyPod("with-dongle");
    await kubectl.apply(aClusterPod("without-dongle", dongle));
    await kubectl.untilEvent("without-dongle", "FailedScheduling", "Insufficient example.com/dongle");
    await kubectl.words("delete pod with-dongle without-dongle");
  });

  test("a refused pod is one line of the log", async () => {
    const names = ["refused-a", "refused-b", "refused-c"];
    await kubectl.apply(
      ...names.map((name) => aClusterPod(name, {}, { nodeName: node.name, nodeSelector: { disk: "none" } })),
    );
    for (const name of names) {
      await kubectl.until(`"${name}" to fail`, async () => (await kubectl.pod(name)).status.phase === "Failed");
      expect(linesWith(name)).toHaveLength(1);
    }
    await kubectl.words(`delete pod ${names.join(" ")}`);
  });

  test("of two pods with one host port the one that was created first runs", async () => {
    for (const round of [1, 2, 3]) {
      const ports = { ports: [{ containerPort: 80, hostPort: 24_000 + round }] };
      const pod = (name: string) => aClusterPod(`${name}-${round}`, ports, { nodeName: node.name });
      await kubectl.apply(pod("z"));
      // Times of creation are whole seconds.
      await Bun.sleep(1_100);
      await kubectl.apply(pod("a"));
      await kubectl.until(
        "the later one to fail",
        async () => (await kubectl.pod(`a-${round}`)).status.phase === "Failed",
      );
      await kubectl.readyPod(`z-${round}`);
    }
    await node.endProcesses();
    await kubectl.apply(
      aClusterPod("y", { ports: [{ containerPort: 80, hostPort: 24_010 }] }, { nodeName: node.name }),
    );
    await Bun.sleep(1_100);
    await kubectl.apply(
      aClusterPod("b", { ports: [{ containerPort: 80, hostPort: 24_010 }] }, { nodeName: node.name }),
    );
    kubelet = await node.join();
    await kubectl.readyPod("y");
    expect((await kubectl.pod("b")).status.phase).toBe("Failed");
    for (const round of [1, 2, 3]) expect((await kubectl.pod(`z-${round}`)).status.phase).toBe("Running");
    await kubectl.words("delete pod z-1 z-2 z-3 a-1 a-2 a-3 y b");
  });

  test("the end of a pod is one write of its status, with the termination message", async () => {
    const watch = kubectl.spawn(["get", "pods", "-w", "-o", "json", "--output-watch-events"]);
    const names = ["end-1", "end-2", "end-3", "end-4"];
    await kubectl.apply(
      ...names.map((name) =>
        aClusterPod(name, shell("sleep 1; echo -n bye > /dev/termination-log"), { restartPolicy: "Never" }),
      ),
    );
    for (const name of names)
      await kubectl.until(`the end of "${name}"`, async () => (await kubectl.pod(name)).status.phase === "Succeeded");
    await Bun.sleep(2_000);
    watch.kill();
    const texts = (await watch.stdout.text()).split(/^(?=\{)/m);
    const events: AnyObject[] = texts.map((text) => JSON.parse(text));
    for (const name of names) {
      const ended = events.filter(
        ({ object: { metadata, status } }) => metadata.name === name && status.containerStatuses?.[0]?.state.terminated,
      );
      expect(ended.map(({ object: { status } }) => status.containerStatuses[0].state.terminated.message)).toEqual([
        "bye",
      ]);
    }
    await kubectl.words(`delete pod ${names.join(" ")}`);
  });

  test("the end of a namespace is no FailedMount", async () => {
    await kubectl.words("create namespace ending");
    const inIt = <T extends { metadata: object }>(it: T) => ({
      ...it,
      metadata: { ...it.metadata, namespace: "ending" },
    });
    await kubectl.until(
      "its account",
      async () => (await kubectl.run("get serviceaccount default -n ending".split(" "))).code === 0,
    );
    const volumes = [
      { name: "c", configMap: { name: "settings" } },
      { name: "s", secret: { secretName: "key" } },
    ];
    const container = {
      ...shell("trap '' TERM; while :; do sleep 0.1; done"),
      envFrom: [{ configMapRef: { name: "settings" } }],
      volumeMounts: [
        { name: "c", mountPath: "/c" },
        { name: "s", mountPath: "/s" },
      ],
    };
    const names = Array.from({ length: 8 }, (_, index) => `mounting-${index}`);
    await kubectl.apply(
      inIt(object("ConfigMap", "settings", { data: { a: "1" } })),
      inIt(object("Secret", "key", { data: { a: "MQ==" } })),
      ...names.map((name) => inIt(aClusterPod(name, container, { volumes, terminationGracePeriodSeconds: 8 }))),
    );
    await kubectl.words("wait pod --all -n ending --for=condition=Ready --timeout=60s");
    await kubectl.words("delete namespace ending --timeout=120s");
    await node.untilEmpty();
    expect(linesWith("FailedMount")).toEqual([]);
  });
});
