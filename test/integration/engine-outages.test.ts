import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { fillUp } from "../support/fill-up.ts";
import { sleeper as aSleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";

/** The container has the name of the pod. */
const sleeper = (name: string) => aSleeper(name, { name });

/** Names of the pods that run, without the node's. */
async function runningPods(node: TestNode): Promise<string> {
  const up = (await node.pods()).filter(
    ({ status }) => status.phase === "Running" && status.containerStatuses?.[0]?.state.running,
  );
  return up.map(({ metadata }) => metadata.name?.replace(`-${node.name}`, "")).join();
}

const untilRunning = (node: TestNode, names: string) =>
  node.until(`pods ${names} to run, and no others`, async () => (await runningPods(node)) === names);

const runningCount = async (node: TestNode) => (await node.listAll()).filter(({ State }) => State === "running").length;

const restartsOf = async (node: TestNode) =>
  (await node.pods()).map(({ status }) => status.containerStatuses?.[0]?.restartCount).join();

const linesWith = (log: string, words: string) => log.split("\n").filter((line) => line.includes(words));

describeWithEngine("an engine that is full or away", () => {
  test.concurrent("frozen, restarted, killed: nothing is lost, nothing is doubled", async () => {
    const engine = await privateEngine();
    await engine.provideImages("busybox:test");
    const node = testNode({ socketPath: engine.socketPath });
    for (const name of ["a", "b", "c"]) node.writeManifest(`${name}.json`, sleeper(name));
    const kubelet = await node.start();
    const allRun = async () => {
      await untilRunning(node, "a,b,c");
      // Their predecessors, which ended with the engine, are there too.
      await node.until("three sandboxes and three containers to run", async () => (await runningCount(node)) === 6);
    };
    await allRun();

    engine.freeze();
    node.writeManifest("d.json", sleeper("d"));
    await node.until("the edit to be seen", async () => (await node.pods()).length === 4);
    node.removeManifest("d.json");
    engine.thaw();
    await node.until("the pod to be gone", async () => (await node.pods()).length === 3);
    await allRun();

    await engine.stop();
    await node.until("the outage to be reported", async () => linesWith(kubelet.log, "No Docker engine").length > 0);
    expect((await node.pods()).length).toBe(3);
    const { stdout, exitCode } = await node.run("explain node");
    expect(exitCode).toBe(1);
    expect(stdout).toMatch(
      /^node "\S+" is not ready: pods may not run\n\nReady is False: [^\n]*\n {2}Fix: kubelet-ts doctor/,
    );
    // One that no engine has answered shows what is wanted, and calls no pod gone that may run.
    await kubelet.stop();
    const again = node.spawn(node.flags());
    await node.until("a kubelet without an engine", async () =>
      (await node.run("explain node")).stdout.includes("Ready is False"),
    );
    const stderr = expect.stringContaining("No Docker engine at");
    const shown = await node.run("get pods");
    expect(shown).toMatchObject({ exitCode: 0, stderr });
    expect(shown.stdout.match(/EngineUnavailable/g)).toHaveLength(3);
    expect((await node.run("explain")).stdout).toContain("Fix: kubelet-ts doctor");
    node.removeManifest("a.json");
    await node.until("a pod without a manifest", async () => (await node.pods()).length === 2);
    for (const command of [`delete pod a-${node.name}`, `wait pod/a-${node.name} --for=delete`])
      expect(await node.run(command)).toMatchObject({ exitCode: 1, stdout: "", stderr });
    node.writeManifest("a.json", sleeper("a"));
    // Not the engine that it finds without a flag.
    expect((await node.run("doctor")).stdout).toContain(`No Docker engine at unix://${engine.socketPath}`);
    await engine.start();
    await allRun();

    await engine.kill();
    await engine.start();
    await allRun();

    // On another engine all of them would run a second time.
    await again.stop();
    const late = node.spawn([...node.flags(), `--docker-endpoint=unix://${node.directory}/none.sock`]);
    await node.untilLogged(late, "No Docker engine");
    await late.stop();
    const elsewhere = await node.spawn([...node.flags(), "--docker-endpoint="]).finished();
    expect([elsewhere.exitCode, elsewhere.stderr]).toEqual([1, expect.stringContaining("would run a second time")]);
    expect((await node.run("get pods")).stdout.match(/Running/g)).toHaveLength(3);
    expect((await node.run("down --all --now")).exitCode).toBe(0);
    await node.untilEmpty();
  });

  test.concurrent("out of disk: running pods continue, the others say why, and start when there is room", async () => {
    const small = await privateEngine({ dataMiB: 48 });
    await small.provideImages("busybox:test");
    const node = testNode({ socketPath: small.socketPath });
    for (const name of ["a", "b", "c"]) node.writeManifest(`${name}.json`, sleeper(name));
    // Pods would be evicted from a full disk; this is about an engine that can do nothing.
    const kubelet = await node.start(["--eviction-hard="]);
    await untilRunning(node, "a,b,c");

    const filler = join(small.dataRoot, "filler");
    fillUp(filler);
    node.writeManifest("d.json", sleeper("d"));
    await node.docker.killContainer((await node.runningContainer("a")).Id, "SIGKILL");
    const whyNot = async (index: number) =>
      (await node.pods())[index]?.status.containerStatuses?.[0]?.state.waiting?.message ?? "";
    await node.until("both to say why they do not run", async () => {
      const reasons = [await whyNot(0), await whyNot(3)];
      return reasons.every((reason) => reason.includes("no space left on device"));
    });
    expect(await runningPods(node)).toBe("b,c");
    // The health ports answer at once, whatever the engine does.
    expect(await node.read("/healthz", node.healthzPort)).toBe("ok");
    node.removeManifest("b.json");
    await node.until("the removed pod to be gone", async () => (await node.containers("b")).length === 0);
    // The space that the engine freed may be enough for a new start: then nothing more is asked of it.
    expect(await runningPods(node)).toContain("c");

    rmSync(filler);
    await untilRunning(node, "a,c,d");
    expect((await restartsOf(node)).split(",").slice(1)).toEqual(["0", "0"]);
    // Tried again and again, reported once.
    expect(linesWith(kubelet.log, "FailedCreatePodSandBox").length).toBeLessThan(3);
  });
});
