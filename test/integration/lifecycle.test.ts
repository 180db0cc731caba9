import { expect, test } from "bun:test";
import { describeWithEngine, privateEngine, testNode } from "../support/engine.ts";
import { sleeper } from "../support/manifests.ts";
import type { TestNode } from "../support/test-node.ts";
import { SLOWNESS } from "../support/until.ts";

const phaseOf = async (node: TestNode, index = 0) => (await node.pods())[index]?.status.phase;
const isRunning = (node: TestNode) =>
  node.until("the pod to be Running", async () => (await phaseOf(node)) === "Running");

describeWithEngine("a pod on a real engine", () => {
  test("a killed container comes back, a removed one too, a killed sandbox takes the pod with it", async () => {
    const node = testNode();
    node.writeManifest("web.yaml", sleeper("web"));
    await node.start();
    const first = await node.runningContainer("app");
    await node.docker.killContainer(first.Id, "SIGKILL");
    const second = await node.until("a successor", async () => {
      const now = await node.runningContainer("app");
      return now.Id !== first.Id && now;
    });
    await node.docker.removeContainer(second.Id, { force: true });
    const third = await node.until("another successor", async () => {
      const now = await node.runningContainer("app");
      return now.Id !== second.Id && now;
    });
    const [sandbox] = await node.sandboxes();
    await node.docker.killContainer(sandbox!.Id, "SIGKILL");
    await node.until("another sandbox and container", async () => {
      const [now] = (await node.sandboxes()).filter(({ State }) => State === "running");
      const [container] = (await node.containers("app")).filter(({ State }) => State === "running");
      return now && now.Id !== sandbox!.Id && container && container.Id !== third.Id;
    });
  });

  test("an edit of one container leaves the other alone; an edit of cpu changes it in place", async () => {
    const node = testNode();
    const two = (command: string, cpu: string) => {
      const pod = sleeper("two");
      const [app] = pod.spec.containers;
      const other = { ...app!, name: "other", resources: { limits: { cpu, memory: "64Mi" } } };
      return { ...pod, spec: { ...pod.spec, containers: [{ ...app!, args: [command] }, other] } };
    };
    node.writeManifest("two.yaml", two("one", "100m"));
    await node.start();
    const app = await node.runningContainer("app");
    const other = await node.runningContainer("other");
    node.writeManifest("two.yaml", two("two", "250m"));
    await node.until("app to be replaced", async () => (await node.runningContainer("app")).Id !== app.Id);
    await node.until("the quota to be raised", async () => {
      const { HostConfig } = await node.docker.inspectContainer(other.Id);
      return HostConfig.CpuQuota === 25_000;
    });
    expect((await node.runningContainer("other")).Id).toBe(other.Id);
  });

  test("a Never pod that failed stays failed, after our own restart and a docker rm", async () => {
    const node = testNode();
    const manifest = sleeper(
      "job",
      { command: ["sh", "-c", "echo gone > /dev/termination-log; exit 3"] },
      { restartPolicy: "Never" },
    );
    node.writeManifest("job.yaml", manifest);
    const kubelet = await node.start();
    await node.until("the pod to fail", async () => (await phaseOf(node)) === "Failed");
    await node.until("its last words", async () => {
      const [pod] = await node.pods();
      return pod?.status.containerStatuses?.[0]?.state.terminated?.message === "gone\n";
    });
    await node.until("its sandbox to be at rest", async () =>
      (await node.sandboxes()).every(({ State }) => State !== "running"),
    );
    await kubelet.stop();
    for (const { Id } of await node.listAll()) await node.docker.removeContainer(Id, { force: true });
    await node.start();
    await node.until("the pod to be shown", async () => (await phaseOf(node)) === "Failed");
    expect(await node.listAll()).toHaveLength(0);
  });

  test("SIGTERM ends us at once and leaves the pods", async () => {
    const node = testNode();
    node.writeManifest("web.yaml", sleeper("web"));
    const kubelet = await node.start();
    await isRunning(node);
    const exit = await kubelet.stop();
    expect(exit.exitCode).toBe(0);
    expect((await node.listAll()).filter(({ State }) => State === "running")).toHaveLength(2);
  });

  test("the successor of a pod with a host port waits until the predecessor is gone", async () => {
    const node = testNode();
    const [port] = [20_000 + Math.floor(Math.random() * 10_000)];
    const withPort = (name: string) => {
      const ports = [{ containerPort: 80, hostPort: port }];
      const command = ["sh", "-c", "trap 'sleep 2; exit 0' TERM; while :; do sleep 1 & wait $!; done"];
      return sleeper(name, { ports, command }, { terminationGracePeriodSeconds: 10 });
    };
    node.writeManifest("web.yaml", withPort("old"));
    await node.start();
    await isRunning(node);
    node.writeManifest("web.yaml", withPort("new"));
    await node.until("the successor to run", async () => {
      const [pod] = await node.pods();
      return pod?.metadata.name?.startsWith("new") && pod.status.phase === "Running";
    });
    expect((await node.sandboxes()).length).toBe(1);
  });
});

describeWithEngine("outages of the engine", () => {
  test(
    "restarted, killed, frozen: nothing is lost, nothing is doubled",
    async () => {
      const engine = await privateEngine();
      await engine.provideImages("busybox:test");
      const node = testNode({ socketPath: engine.socketPath });
      for (const name of ["a", "b", "c"]) node.writeManifest(`${name}.yaml`, sleeper(name));
      const kubelet = await node.start();
      const allRun = (what: string) =>
        node.until(
          what,
          async () => {
            const pods = await node.pods();
            const up = (await node.listAll()).filter(({ State }) => State === "running");
            return pods.length === 3 && pods.every(({ status }) => status.phase === "Running") && up.length === 6;
          },
          60_000,
        );
      await allRun("three pods to run");

      engine.freeze();
      node.writeManifest("d.yaml", sleeper("d"));
      await Bun.sleep(2000);
      node.removeManifest("d.yaml");
      engine.thaw();
      await allRun("three pods to run after a freeze");

      await engine.stop();
      await Bun.sleep(500);
      expect(kubelet.running).toBe(true);
      expect((await node.pods()).length).toBe(3);
      await engine.start();
      await allRun("three pods to run after a restart of the engine");

      await engine.kill();
      await engine.start();
      await allRun("three pods to run after the engine was killed");
      await kubelet.stop();
    },
    240_000 * SLOWNESS,
  );
});
