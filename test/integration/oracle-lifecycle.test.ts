import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ContainerStatus } from "../../src/base/api/pod.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { EngineTimeline, recordedManifest } from "../support/engine-timeline.ts";
import type { PodItem } from "../support/test-node.ts";

const LIMIT_MS = 90_000;

describeWithEngine("kills as recorded (oracle 66)", () => {
  const node = testNode();
  let timeline: EngineTimeline;

  beforeAll(async () => {
    timeline = await EngineTimeline.of(node);
    await node.start();
  });

  afterAll(async () => {
    await timeline.stop();
    await node.cleanUp();
  });

  const untilPod = (pod: string, what: string, is: (seen: PodItem) => boolean) =>
    node.until(
      `${pod} ${what}`,
      async () => {
        const seen = await node.pod(pod);
        return seen && is(seen) && seen;
      },
      LIMIT_MS,
    );

  const untilRunning = (pod: string) =>
    untilPod(
      pod,
      "to run",
      ({ status }) => status.phase === "Running" && !!status.containerStatuses?.every((one) => one.ready),
    );

  const statusOf = ({ status }: PodItem, name = "a"): ContainerStatus => {
    const found = status.containerStatuses?.find((one) => one.name === name);
    if (!found) throw new Error(`no status of ${name}`);
    return found;
  };

  const idOf = (seen: PodItem, name = "a") => statusOf(seen, name).containerID!.replace("docker://", "");

  test("66-docker-kill-container", async () => {
    for (const pod of ["kalways", "knever", "konfail"]) {
      const manifest = recordedManifest(`66-docker-kill-container/manifest-${pod}-1.yaml`);
      node.writeManifest(`${pod}.yaml`, manifest);
    }
    const before = await untilRunning("kalways");
    const [knever, konfail] = [await untilRunning("knever"), await untilRunning("konfail")];
    await node.docker.killContainer(idOf(before), "SIGKILL");
    await node.docker.killContainer(idOf(knever), "SIGKILL");
    await node.docker.killContainer(idOf(konfail), "SIGTERM");

    const isBack = (seen: PodItem) => statusOf(seen).restartCount === 1 && statusOf(seen).ready;
    const again = await untilPod("kalways", "to be back", isBack);
    expect(statusOf(again).lastState.terminated).toMatchObject({ exitCode: 137, reason: "Error" });
    expect(idOf(again, "b")).toBe(idOf(before, "b"));
    await node.docker.killContainer(idOf(again), "SIGKILL");
    const backOff = await untilPod("kalways", "to back off", (seen) => statusOf(seen).state.waiting !== undefined);
    expect(backOff.status.phase).toBe("Running");
    expect(statusOf(backOff)).toMatchObject({
      state: {
        waiting: {
          reason: "CrashLoopBackOff",
          message: `back-off 10s restarting failed container=a pod=kalways-${node.name}_default(${before.metadata.uid})`,
        },
      },
      lastState: { terminated: { exitCode: 137, reason: "Error" } },
      restartCount: 1,
      ready: false,
      started: false,
    });

    const failed = await untilPod("knever", "to notice", (seen) => statusOf(seen).state.terminated !== undefined);
    expect(failed.status.phase).toBe("Running");
    expect(statusOf(failed)).toMatchObject({
      state: { terminated: { exitCode: 137, reason: "Error" } },
      restartCount: 0,
    });
    expect(statusOf(failed, "b").ready).toBe(true);

    const done = await untilPod("konfail", "to be done", ({ status }) => status.phase === "Succeeded");
    expect(statusOf(done)).toMatchObject({
      state: { terminated: { exitCode: 0, reason: "Completed" } },
      restartCount: 0,
    });
    await node.until("its sandbox to be stopped", () => timeline.has("konfail", "kill 15 POD#0"));

    await untilPod("kalways", "to be back once more", (seen) => statusOf(seen).restartCount === 2);
    const waitedMs = timeline.timeOf("kalways", "start a#2") - timeline.timeOf("kalways", "die 137 a#1");
    expect(waitedMs).toBeGreaterThanOrEqual(9_900);
    expect(timeline.of("kalways", ["start", "die"])).toEqual([
      ...["start POD#0", "start a#0", "start b#0", "die 137 a#0", "start a#1", "die 137 a#1", "start a#2"],
    ]);
  });
});
