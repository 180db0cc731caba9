import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";

describeWithEngine("a node that is renamed", () => {
  test("replaces pods of manifests, keeps those of workloads, and runs none twice", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web"));
    const { metadata: _, spec } = sleeper("db");
    node.writeManifest("db.json", {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "db" },
      spec: { selector: { matchLabels: { app: "db" } }, template: { metadata: { labels: { app: "db" } }, spec } },
    });
    const running = async (container = "app") =>
      (await node.containers()).filter(({ Labels, State }) => {
        const isSame = Labels["io.kubernetes.container.name"] === container;
        return isSame && State === "running";
      });
    const first = await node.start();
    await node.until("two pods", async () => (await running()).length === 2);
    const before = await running();
    await first.stop();
    const again = await node.start([`--hostname-override=${node.name}-b`]);
    await node.until("the pod under its new name", async () =>
      (await running()).some(({ Labels }) => Labels["io.kubernetes.pod.name"] === `web-${node.name}-b`),
    );
    expect(again.log).toContain(`The node was "${node.name}" and is "${node.name}-b" now`);
    const after = await running();
    expect(after).toHaveLength(2);
    const workload = (list: typeof after) =>
      list.find(({ Labels }) => Labels["io.kubernetes.pod.name"]?.startsWith("db-"))?.Id;
    expect(workload(after)).toBe(workload(before));
    expect(after.some(({ Labels }) => Labels["io.kubernetes.pod.name"] === `web-${node.name}`)).toBe(false);
  });
});
