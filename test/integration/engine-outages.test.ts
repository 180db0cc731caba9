import { beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { fillUp } from "../support/fill-up.ts";
import { askApi, startWithApi } from "../support/local-api.ts";
import { sleeper as aSleeper, shell } from "../support/manifests.ts";
import type { PrivateEngine } from "../support/private-engine.ts";
import type { TestNode } from "../support/test-node.ts";

/** The container has the name of the pod. */
const sleeper = (name: string, volumes: object[] = []) => aSleeper(name, { name }, { volumes });

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

/** The health ports answer at once, whatever the engine does. */
async function expectHealthy(node: TestNode): Promise<void> {
  expect(await node.read("/healthz", node.healthzPort)).toBe("ok");
}

async function killContainer(node: TestNode, name: string): Promise<void> {
  const { Id } = await node.runningContainer(name);
  await node.docker.killContainer(Id, "SIGKILL");
}

const restartsOf = async (node: TestNode) =>
  (await node.pods()).map(({ status }) => status.containerStatuses?.[0]?.restartCount).join();

const linesWith = (log: string, words: string) => log.split("\n").filter((line) => line.includes(words));

describeWithEngine("an engine that is slow, full or away", () => {
  let engine: PrivateEngine;
  beforeAll(async () => {
    engine = await privateEngine();
    await engine.provideImages("busybox:test");
  });

  test("frozen, restarted, killed: nothing is lost, nothing is doubled", async () => {
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
    await engine.start();
    await allRun();

    await engine.kill();
    await engine.start();
    await allRun();
    await node.cleanUp();
  });

  test("slow, then trickling: everything happens, late and once", async () => {
    const proxy = engine.slowProxy();
    const node = testNode({ socketPath: String(proxy.address) });
    node.writeManifest("a.json", sleeper("a"));
    const kubelet = await node.start();
    await untilRunning(node, "a");

    proxy.delayMs = 2_000;
    node.writeManifest("b.json", sleeper("b"));
    await killContainer(node, "a");
    await untilRunning(node, "a,b");
    await expectHealthy(node);
    expect(await restartsOf(node)).toBe("1,0");

    proxy.delayMs = 0;
    proxy.pieceBytes = 64;
    node.removeManifest("a.json");
    node.writeManifest("c.json", sleeper("c"));
    await untilRunning(node, "b,c");
    await expectHealthy(node);

    proxy.pieceBytes = 0;
    await node.until(
      "two sandboxes and two containers, all of them running",
      async () => (await node.listAll()).length === 4 && (await runningCount(node)) === 4,
    );
    // The pod that was removed is shown until its clean-up is done.
    await node.until("b and c alone, never restarted", async () => (await restartsOf(node)) === "0,0");
    expect(linesWith(kubelet.log, "ERROR")).toEqual([]);
    await kubelet.stop();
  });

  test.concurrent("frozen while pods start and are deleted: nothing of them is left", async () => {
    const engine = await privateEngine();
    await engine.provideImages("busybox:test");
    const node = testNode({ socketPath: engine.socketPath });
    const { spec } = sleeper("web");
    const { child: kubelet } = await startWithApi(node);
    const path = "/apis/apps/v1/namespaces/default/deployments";
    const template = { metadata: { labels: { app: "web" } }, spec };
    await askApi(node, "POST", path, {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "web" },
      spec: { replicas: 0, selector: { matchLabels: { app: "web" } }, template },
    });
    const scale = (replicas: number) =>
      askApi(node, "PATCH", `${path}/web`, { spec: { replicas } }, "application/merge-patch+json");
    const podPath = "/api/v1/namespaces/default/pods";
    await scale(4);
    await askApi(node, "POST", podPath, { apiVersion: "v1", kind: "Pod", metadata: { name: "one" }, spec });
    await Bun.sleep(500);
    engine.freeze();
    await scale(0);
    await askApi(node, "DELETE", `${podPath}/one`);
    await Bun.sleep(2000);
    engine.thaw();
    // The engine carries out the requests that waited.
    await Bun.sleep(2000);
    await node.until("nothing to be left", async () => (await node.listAll()).length === 0);
    expect(kubelet.log).not.toContain("keeps running unsupervised");
    await kubelet.stop();
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
    await killContainer(node, "a");
    const whyNot = async (index: number) =>
      (await node.pods())[index]?.status.containerStatuses?.[0]?.state.waiting?.message ?? "";
    await node.until("both to say why they do not run", async () => {
      const reasons = [await whyNot(0), await whyNot(3)];
      return reasons.every((reason) => reason.includes("no space left on device"));
    });
    expect(await runningPods(node)).toBe("b,c");
    await expectHealthy(node);
    node.removeManifest("b.json");
    await node.until("the removed pod to be gone", async () => (await node.containers("b")).length === 0);
    // The space that the engine freed may be enough for a new start: then nothing more is asked of it.
    expect(await runningPods(node)).toContain("c");

    rmSync(filler);
    await untilRunning(node, "a,c,d");
    expect((await restartsOf(node)).split(",").slice(1)).toEqual(["0", "0"]);
    // Tried again and again, reported once.
    expect(linesWith(kubelet.log, "FailedCreatePodSandBox").length).toBeLessThan(3);
    await kubelet.stop();
  });

  test.concurrent("no room in the root directory: running pods continue, and what was not written is written later", async () => {
    const node = testNode();
    const mount = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", node.rootDir]);
    expect(mount.stderr.toString()).toBe("");
    const volumes = [{ name: "cache", emptyDir: {} }];
    node.writeManifest("a.json", sleeper("a", volumes));
    const flags = ["--eviction-hard="];
    let kubelet = await node.start(flags);
    await untilRunning(node, "a");

    const filler = join(node.rootDir, "filler");
    fillUp(filler);
    node.writeManifest("b.json", sleeper("b", volumes));
    await node.until("the new pod to say why it does not run", async () =>
      (await node.pods())[1]?.status.containerStatuses?.[0]?.state.waiting?.message?.match(/^Cannot write .*ENOSPC/),
    );
    expect(await runningPods(node)).toBe("a");
    await expectHealthy(node);
    expect(linesWith(kubelet.log, "/state/pods-")).toHaveLength(1);
    const { stderr } = await kubelet.stop();
    expect(stderr).not.toContain("    at ");

    // A start without room for anything adopts what runs.
    kubelet = await node.start(flags);
    await untilRunning(node, "a");
    rmSync(filler);
    await untilRunning(node, "a,b");
    expect(await restartsOf(node)).toBe("0,0");
    await kubelet.stop();
  });
});

/** 20 by hand: `KUBELET_TS_TEST_ENGINE_RESTARTS=20`. */
const RESTARTS = Number(process.env.KUBELET_TS_TEST_ENGINE_RESTARTS ?? 2);

describeWithEngine("kubelet-ts.io/depends-on", () => {
  test(`over ${RESTARTS} restarts of the engine the application never starts before its database is Ready, and stops first`, async () => {
    const engine = await privateEngine();
    await engine.provideImages("busybox:test");
    const node = testNode({ socketPath: engine.socketPath });
    const records = join(node.directory, "records");
    mkdirSync(records);
    const volumes = [{ name: "records", hostPath: { path: records } }];
    const pod = (name: string, command: string, more: { annotations?: object; container?: object } = {}) => {
      const script = `trap 'echo ${name}-end >> /records/log; exit 0' TERM; ${command}; while :; do sleep 0.1; done`;
      const volumeMounts = [{ name: "records", mountPath: "/records" }];
      const spec = { terminationGracePeriodSeconds: 10, volumes };
      const { annotations = {} } = more;
      return aSleeper(name, { name, ...shell(script), volumeMounts, ...more.container }, spec, { annotations });
    };
    const annotations = { "kubelet-ts.io/depends-on": "default/db=Ready" };
    node.writeManifest("app.json", pod("app", "echo app-start >> /records/log", { annotations }));
    const becomesReady = "echo db-start >> /records/log; sleep 1; echo db-ready >> /records/log; touch /tmp/ready";
    const readinessProbe = { exec: { command: ["test", "-e", "/tmp/ready"] }, periodSeconds: 1 };
    node.writeManifest("db.json", pod("db", becomesReady, { container: { readinessProbe } }));
    await node.start();
    const log = () => readFileSync(join(records, "log"), "utf8").trim().split("\n");
    const starts = () => log().filter((line) => line === "app-start").length;
    for (let round = 1; round <= RESTARTS + 1; round++) {
      await node.until(`start ${round} of the application`, () => starts() === round || undefined);
      if (round > RESTARTS) break;
      // Every other round it is killed: its containers keep running, and the next process ends them.
      if (round % 2 === 0) await engine.kill();
      else await engine.stop();
      await engine.start();
    }
    const before = log();
    let database = "";
    for (const line of before) {
      if (line === "app-start") expect(database).toBe("db-ready");
      else if (line.startsWith("db-")) database = line;
    }
    expect(before.filter((line) => line === "db-start")).toHaveLength(RESTARTS + 1);

    node.removeManifest("db.json");
    node.removeManifest("app.json");
    await node.until("both to end", () => log().length >= before.length + 2 || undefined);
    expect(log().slice(before.length)).toEqual(["app-end", "db-end"]);
  });
});
