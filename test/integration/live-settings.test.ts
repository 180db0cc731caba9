import { expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";

const config = (body: string) => `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${body}`;

describeWithEngine("settings while running", () => {
  test("50 edits, invalid ones among them: new settings are in force, and neither the kubelet nor a pod restarts", async () => {
    const node = testNode();
    const file = join(node.directory, "config.yaml");
    const write = (text: string) => {
      writeFileSync(`${file}.tmp`, text);
      renameSync(`${file}.tmp`, file);
    };
    write(config("imageGCHighThresholdPercent: 90\nimageGCLowThresholdPercent: 20\n"));
    node.writeManifest("web.json", sleeper("web", {}));
    const kubelet = await node.start([`--config=${file}`]);
    const before = await node.runningContainer("app");
    const configz = async () =>
      (
        (await (await fetch(`http://127.0.0.1:${node.readOnlyPort}/configz`)).json()) as {
          kubeletconfig: Record<string, unknown>;
        }
      ).kubeletconfig;
    for (let index = 0; index < 50; index++) {
      if (index % 5 === 4) write(config("imageGCHighThresholdPercent: many\n"));
      else
        write(
          config(
            `imageGCLowThresholdPercent: 20\nimageGCHighThresholdPercent: ${40 + index}\nlogging: {verbosity: ${index % 3}}\n`,
          ),
        );
      if (index % 10 === 0) kubelet.signal("SIGHUP");
      await Bun.sleep(20);
    }
    write(config("imageGCLowThresholdPercent: 20\nimageGCHighThresholdPercent: 77\nmaxPods: 5\n"));
    await node.until(
      "the last configuration",
      async () => (await configz()).imageGCHighThresholdPercent === 77 || undefined,
    );
    kubelet.signal("SIGHUP");
    await node.until("the line about maxPods", async () => /need a restart .*maxPods/.test(kubelet.log) || undefined);
    expect(kubelet.running).toBe(true);
    expect((await node.runningContainer("app")).Id).toBe(before.Id);
    const [pod] = await node.pods();
    expect(pod?.status.containerStatuses?.[0]?.restartCount).toBe(0);
  });
});
