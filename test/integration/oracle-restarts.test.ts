import { expect, test } from "bun:test";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LABEL } from "../../src/docker/labels.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { recordedManifest } from "../support/engine-timeline.ts";

describeWithEngine("--runonce and manifest paths as recorded (oracle 79, 88)", () => {
  test.concurrent("88-manifest-path-missing-or-file: a single file", async () => {
    const node = testNode();
    const file = join(node.directory, "single.yaml");
    const manifest = (seconds: string) =>
      recordedManifest("81-file-moved/manifest-mova-1.yaml")
        .replace("name: mov", "name: single")
        .replace("0.2", seconds);
    writeFileSync(file, manifest("0.2"));
    const flags = node
      .flags()
      .map((flag) => (flag.startsWith("--pod-manifest-path=") ? `--pod-manifest-path=${file}` : flag));
    node.spawn(flags);
    const first = await node.runningContainer("a");
    writeFileSync(file, manifest("0.3"));
    const second = await node.successorOf("a", first.Id);
    writeFileSync(`${file}.new`, manifest("0.4"));
    renameSync(`${file}.new`, file);
    await node.successorOf("a", first.Id, second.Id);
    await node.untilRunning(1);
    rmSync(file);
    await Bun.sleep(2000);
    expect((await node.running("a")).length).toBe(1);
  });

  /**
   * The recorded kubelet crashes with its default flags; of its third set, where pods run, the outcomes are the same but
   * for exit code 1 instead of 255, a crash that is reported at once, and a pod that has failed permanently and is not waited for.
   */
  test.each([
    { tag: "goodtwo", files: ["goodtwo-g", "goodtwo-g2"], exitCode: 0, left: { ronce: "running", ronce2: "running" } },
    { tag: "mixedinvalid", files: ["mixedinvalid-g", "mixedinvalid-i"], exitCode: 2, left: { ronce: "running" } },
    { tag: "mixedbadimage", files: ["mixedbadimage-g", "mixedbadimage-b"], exitCode: 1, left: { ronce: "running" } },
    { tag: "crash", files: ["crash-c"], exitCode: 1, left: { rcrash: "exited" } },
    { tag: "neverfails", files: ["neverfails-f"], exitCode: 1, left: { rfail: "exited" } },
  ])("79-runonce: $tag", async ({ files, exitCode, left }) => {
    const node = testNode();
    const paths = files.map((file) => {
      const path = join(node.directory, `${file}.yaml`);
      writeFileSync(path, recordedManifest(`79-runonce/manifest-${file}.yaml`));
      return path;
    });
    const exit = await node.runOnce(paths);
    // The engine may not be done yet with the predecessor of one that crashed.
    const kept = (await node.containers("a")).filter(({ State }) => State !== "removing");
    const states = Object.fromEntries(
      kept.map(({ Labels, State }) => [Labels[LABEL.podName]!.replace(`-${node.name}`, ""), State]),
    );
    expect({ exitCode: exit.exitCode, states }).toEqual({ exitCode, states: left } as never);
    if (exitCode !== 0) expect(exit.stderr).not.toBe("");
  });
});
