import { expect, test } from "bun:test";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { FakeLogind } from "../support/fake-logind.ts";
import { sleeper } from "../support/manifests.ts";

const FLAGS = ["--shutdown-grace-period=20s", "--shutdown-grace-period-critical-pods=10s"];

/** A node whose pods stop at once on SIGTERM. */
async function started() {
  const node = testNode();
  const logind = new FakeLogind(join(node.directory, "systemd"));
  node.writeManifest("web.json", sleeper("web"));
  node.writeManifest("dns.json", sleeper("dns", {}, { priorityClassName: "system-node-critical" }));
  const start = () => node.spawn([...node.flags(), ...FLAGS], { env: logind.env });
  const kubelet = start();
  await node.untilRunning(2);
  return { node, logind, kubelet, start };
}

describeWithEngine("a shutdown of the machine", () => {
  test("waits for pods, critical ones last; afterwards they run again", async () => {
    const { node, logind, kubelet, start } = await started();
    await node.until("the shutdown to be delayed", () => logind.isHeld);
    logind.announce(true);
    await node.until("the shutdown to continue", () => !logind.isHeld);
    expect(await node.running()).toEqual([]);
    const stopped = [...kubelet.log.matchAll(/Killing: .*pod=default\/(\w+)-/g)].map(([, name]) => name);
    expect(stopped).toEqual(["web", "dns"]);
    for (const { status } of await node.pods()) {
      expect(status).toMatchObject({
        phase: "Failed",
        reason: "Terminated",
        message: "Pod was terminated in response to imminent node shutdown.",
      });
    }
    node.writeManifest("late.json", sleeper("late"));
    await node.until("the late pod to be refused", async () =>
      (await node.pods()).some(({ status }) => status.reason === "NodeShutdown"),
    );
    await kubelet.stop();
    logind.reboot();
    start();
    await node.untilRunning(3);
  });
});
