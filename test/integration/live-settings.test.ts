import { expect, test } from "bun:test";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { HOST, sleeper } from "../support/manifests.ts";
import { engineSocketPath } from "../support/test-node.ts";

const config = (body: string) => `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${body}`;

describeWithEngine("settings while running", () => {
  test.concurrent("50 edits, invalid ones among them: new settings are in force, and neither the kubelet nor a pod restarts", async () => {
    const node = testNode();
    const file = join(node.directory, "config.yaml");
    const write = (text: string) => {
      writeFileSync(`${file}.tmp`, text);
      renameSync(`${file}.tmp`, file);
    };
    write(config("imageGCHighThresholdPercent: 90\nimageGCLowThresholdPercent: 20\n"));
    node.writeManifest("web.json", sleeper("web", {}, HOST));
    const kubelet = await node.start([`--config=${file}`]);
    const before = await node.runningContainer("app");
    for (let index = 0; index < 50; index++) {
      const logging = `logging: {verbosity: ${index % 3}}`;
      const thresholds = `imageGCLowThresholdPercent: 20\nimageGCHighThresholdPercent: ${40 + index}`;
      write(config(index % 5 === 4 ? "imageGCHighThresholdPercent: many\n" : `${thresholds}\n${logging}\n`));
      if (index % 10 === 0) kubelet.signal("SIGHUP");
      await Bun.sleep(20);
    }
    write(config("imageGCLowThresholdPercent: 20\nimageGCHighThresholdPercent: 77\nmaxPods: 5\n"));
    await node.until("the last configuration", async () =>
      (await node.read("/configz")).includes('"imageGCHighThresholdPercent":77'),
    );
    kubelet.signal("SIGHUP");
    await node.untilLogged(kubelet, /need a restart .*maxPods/);
    expect(kubelet.running).toBe(true);
    expect((await node.runningContainer("app")).Id).toBe(before.Id);
    const [pod] = await node.pods();
    expect(pod?.status.containerStatuses?.[0]?.restartCount).toBe(0);
  });

  test.concurrent("the last known good configuration comes back: files invalid at a start, deaths on trial, an engine that is gone", async () => {
    const node = testNode();
    const file = join(node.directory, "config.yaml");
    const state = join(node.directory, "configurations");
    // The engine is named by the configuration alone.
    const own = node.flags().filter((flag) => !flag.startsWith("--docker-endpoint"));
    const endpoint = `dockerEndpoint: unix://${engineSocketPath()}`;
    const args = [...own, `--config=${file}`, `--dynamic-config-dir=${state}`];
    // Long enough that the engine was asked.
    const short = [...args, "--config-trial-period=5s"];
    node.writeManifest("web.json", sleeper("web", {}, HOST));
    const statusIs = (what: string, isSo: (config: NodeConfig) => boolean) =>
      node.until(what, async () => {
        const { status } = await node.readJson<{ status: { config: NodeConfig } }>("/node");
        return isSo(status.config);
      });
    const idOf = (source: ConfigSource | undefined) => source?.configMap.resourceVersion;
    const isBack = ({ assigned, active, lastKnownGood, error }: NodeConfig, text: string) =>
      idOf(active) === idOf(lastKnownGood) && idOf(assigned) !== idOf(active) && error?.includes(text) === true;

    writeFileSync(file, config(`kubeletTs: {${endpoint}}\n`));
    const first = node.spawn(short);
    const before = await node.runningContainer("app");
    await statusIs("the first one to be good", ({ assigned, lastKnownGood }) => idOf(assigned) === idOf(lastKnownGood));
    expect(readFileSync(join(state, ".lkg"), "utf8")).toContain(endpoint);
    writeFileSync(file, config("maxPod: 3\n"));
    await statusIs("the error", ({ error }) => error?.includes("did you mean maxPods?") === true);
    first.signal("SIGKILL");
    await first.finished();
    const second = node.spawn(args);
    await statusIs("an invalid file to be left aside", (found) => isBack(found, "did you mean maxPods?"));
    await second.stop();

    const { CgroupDriver } = await node.docker.info();
    const other = CgroupDriver === "systemd" ? "cgroupfs" : "systemd";
    writeFileSync(file, config(`cgroupDriver: ${other}\nkubeletTs: {${endpoint}}\n`));
    for (let death = 0; death < 3; death++) expect((await node.spawn(args).finished()).exitCode).toBe(1);
    const third = node.spawn(args);
    await statusIs("a configuration that ends us to be left aside", (found) => isBack(found, "ended 3 times"));
    writeFileSync(file, config("kubeletTs: {dockerEndpoint: unix:///none.sock}\n"));
    await statusIs("a setting to wait for a restart", ({ error }) => error?.includes("dockerEndpoint") === true);
    expect((await node.read("/metrics")).match(/^kubelet_node_config_error .*/gm)).toEqual([
      "kubelet_node_config_error 1",
    ]);
    await third.stop();
    const fourth = node.spawn(short);
    await statusIs("the engine to be the previous one", (found) => isBack(found, "No Docker engine"));
    // The process is the same one, in a second run.
    await node.until("the second run", () => fourth.log.split("on node").length === 3);
    expect((await node.runningContainer("app")).Id).toBe(before.Id);
    expect((await fourth.stop()).exitCode).toBe(0);
  });
});

interface ConfigSource {
  configMap: { resourceVersion: string };
}
interface NodeConfig {
  assigned?: ConfigSource;
  active?: ConfigSource;
  lastKnownGood?: ConfigSource;
  error?: string;
}
