import { expect, test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper, workload } from "../support/manifests.ts";

describeWithEngine("a node that is renamed", () => {
  test("replaces pods of manifests, keeps those of workloads, and runs none twice", async () => {
    const node = testNode();
    node.writeManifest("web.json", sleeper("web"));
    node.writeManifest("db.json", workload("Deployment", "db"));
    const first = await node.start();
    const before = await node.untilRunning(2);
    await first.stop();
    const again = await node.start([`--hostname-override=${node.name}-b`]);
    await node.until("the pod under its new name", async () =>
      (await node.running()).some(({ Labels }) => Labels["io.kubernetes.pod.name"] === `web-${node.name}-b`),
    );
    expect(again.log).toContain(`The node was "${node.name}" and is "${node.name}-b" now`);
    const after = await node.running();
    expect(after).toHaveLength(2);
    const ofWorkload = (list: typeof after) =>
      list.find(({ Labels }) => Labels["io.kubernetes.pod.name"]?.startsWith("db-"))?.Id;
    expect(ofWorkload(after)).toBe(ofWorkload(before)!);
    expect(after.some(({ Labels }) => Labels["io.kubernetes.pod.name"] === `web-${node.name}`)).toBe(false);
  });
});
