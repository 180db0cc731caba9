import { expect, test } from "bun:test";
import { LABEL } from "../../src/docker/labels.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

const PODS = 20;
/** Milliseconds after the start at which the binary is killed; one after another, each on what the last one left. */
const KILL_POINTS_MS = [20, 60, 100, 150, 200, 300, 400, 500, 650, 800, 1000, 1300, 1600, 2000, 2500, 3000];

describeWithEngine("kill -9 at any moment", () => {
  async function killedAfter(node: TestNode, points: readonly number[]): Promise<void> {
    for (const afterMs of points) {
      const kubelet = node.spawn(node.flags());
      await Bun.sleep(afterMs);
      await kubelet.kill();
    }
    await node.start();
  }

  test("while 20 pods start: the next start ends with exactly the right containers", async () => {
    const node = testNode();
    for (let index = 0; index < PODS; index++) node.writeManifest(`p${index}.yaml`, sleeper(`p${index}`));
    await killedAfter(node, KILL_POINTS_MS);
    await expectExactly(node, PODS);
  });

  test("while 20 pods end: the next start finishes the work", async () => {
    const node = testNode();
    for (let index = 0; index < PODS; index++) node.writeManifest(`p${index}.yaml`, sleeper(`p${index}`));
    const first = await node.start();
    await expectExactly(node, PODS);
    for (let index = 0; index < PODS; index++) if (index % 2 === 0) node.removeManifest(`p${index}.yaml`);
    await Bun.sleep(150);
    await first.kill();
    await killedAfter(node, [50, 200, 500]);
    await expectExactly(node, PODS / 2);
  });
});

/** As many pods as wanted, each Running with one sandbox and one container, and nothing else on the node. */
async function expectExactly(node: TestNode, count: number): Promise<void> {
  await node.until(
    `${count} pods to run`,
    async () => {
      const all = await node.listAll();
      const pods = await node.pods();
      const running = pods.filter(({ status }) => status.phase === "Running");
      return running.length === count && pods.length === count && all.length === 2 * count;
    },
    90_000,
  );
  const all = await node.listAll();
  expect(all.every(({ State }) => State === "running")).toBe(true);
  const uids = new Set(all.map(({ Labels }) => Labels[LABEL.podUid]));
  expect(uids.size).toBe(count);
}
