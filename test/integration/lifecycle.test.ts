import { test } from "bun:test";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";

describeWithEngine("a pod on a real engine", () => {
  test("a killed container comes back, a removed one too, a killed sandbox takes the pod with it", async () => {
    const node = testNode();
    node.writeManifest("web.yaml", sleeper("web"));
    await node.start();
    const first = await node.runningContainer("app");
    await node.docker.killContainer(first.Id, "SIGKILL");
    const second = await node.successorOf("app", first.Id);
    await node.removeAll([second]);
    const third = await node.successorOf("app", second.Id);
    const [sandbox] = await node.sandboxes();
    await node.docker.killContainer(sandbox!.Id, "SIGKILL");
    await node.successorOf("app", third.Id);
    await node.until("another sandbox", async () =>
      (await node.sandboxes()).some(({ Id, State }) => State === "running" && Id !== sandbox!.Id),
    );
  });
});
