import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

const podsOf = async (node: TestNode) =>
  (await node.pods()).map(({ metadata, spec, status }) => ({
    name: metadata.name!,
    uid: metadata.uid!,
    image: spec.containers[0]!.image,
    owner: metadata.ownerReferences?.[0],
    isReady: status.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false,
  }));

const deployment = (container: Record<string, unknown> = {}, spec: object = {}) => {
  const { spec: podSpec } = sleeper("web", container);
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web" },
    spec: {
      selector: { matchLabels: { app: "web" } },
      template: { metadata: { labels: { app: "web" } }, spec: podSpec },
      ...spec,
    },
  };
};

const readyPods = (node: TestNode, count: number, isWanted: (image: string) => boolean = () => true) =>
  node.until(`${count} Ready pods and no other`, async () => {
    const pods = await podsOf(node);
    return pods.length === count && pods.every(({ isReady, image }) => isReady && isWanted(image!)) && pods;
  });

describeWithEngine("a Deployment in a manifest directory", () => {
  test("runs, keeps its pods over a restart, rolls, survives a bad image, and goes with its file", async () => {
    const node = testNode();
    node.writeManifest("web.yaml", deployment({}, { replicas: 2 }));
    let kubelet = await node.start();
    const first = await readyPods(node, 2);
    expect(first[0]!.name).toMatch(/^web-\w+-\w{5}$/);
    expect(first[0]!.owner).toMatchObject({ apiVersion: "apps/v1", kind: "ReplicaSet", controller: true });
    const containers = (await node.containers("app")).map(({ Id }) => Id).sort();

    await kubelet.stop();
    kubelet = await node.start();
    const again = await readyPods(node, 2);
    expect(again.map(({ uid }) => uid)).toEqual(first.map(({ uid }) => uid));
    expect((await node.containers("app")).map(({ Id }) => Id).sort()).toEqual(containers);

    node.writeManifest("web.yaml", deployment({ image: "busybox:absent", imagePullPolicy: "Never" }, { replicas: 2 }));
    await node.until("a pod of the bad image", async () => (await podsOf(node)).length === 3);
    const good = (await podsOf(node)).filter(({ isReady }) => isReady);
    expect(good.map(({ uid }) => uid)).toEqual(first.map(({ uid }) => uid));

    node.writeManifest("web.yaml", deployment({ env: [{ name: "ROUND", value: "2" }] }, { replicas: 2 }));
    const last = await readyPods(node, 2, (image) => image === "busybox:test");
    await node.until("other pods than before", async () =>
      (await readyPods(node, 2)).every(({ uid }) => !first.some((old) => old.uid === uid)),
    );
    expect(last).toHaveLength(2);

    node.removeManifest("web.yaml");
    await node.until("nothing left", async () => (await node.listAll()).length === 0);
  });
});
