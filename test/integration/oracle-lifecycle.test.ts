import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ContainerStatus } from "../../src/base/api/pod.ts";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { EngineTimeline, recordedManifest } from "../support/engine-timeline.ts";
import type { KubeletProcess } from "../support/kubelet-process.ts";
import type { PodItem } from "../support/test-node.ts";

const LIMIT_MS = 90_000;
/** Long enough for a wrong reaction to show; what has to happen is waited for. */
const WRONG_REACTION_MS = 2_000;

describeWithEngine("edits, kills and deadlines as recorded (oracle 60 to 83)", () => {
  const node = testNode();
  let timeline: EngineTimeline;
  let kubelet: KubeletProcess;

  beforeAll(async () => {
    timeline = await EngineTimeline.of(node);
    kubelet = await node.start();
  });

  afterAll(async () => {
    await timeline.stop();
    await node.cleanUp();
  });

  const write = (folder: string, pod: string, revision = 1) =>
    node.writeManifest(`${pod}.yaml`, recordedManifest(`${folder}/manifest-${pod}-${revision}.yaml`));

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

  test.concurrent("60-edit-image: only that container is replaced (docs/differences.md)", async () => {
    write("60-edit-image", "edi");
    const before = await untilRunning("edi");
    write("60-edit-image", "edi", 2);
    const after = await untilPod("edi", "to have the new image", (seen) => {
      return statusOf(seen).image === "oracle/named:1" && statusOf(seen).ready && statusOf(seen, "b").ready;
    });
    expect(idOf(after, "b")).toBe(idOf(before, "b"));
    expect(after.status.podIP).toBe(before.status.podIP);
    expect(statusOf(after)).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 0, reason: "Completed" } },
    });
    expect(timeline.of("edi")).toEqual(["kill 15 a#0", "die 0 a#0"]);
    expect(kubelet.log).toContain("Killing: Container a definition changed, will be restarted");
  });

  test.concurrent("66-docker-kill-container", async () => {
    const folder = "66-docker-kill-container";
    for (const pod of ["kalways", "knever", "konfail"]) write(folder, pod);
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

  test.concurrent("74-truncated-then-fixed: the pod stays as it was, the finding is reported (docs/differences.md)", async () => {
    write("74-truncated-then-fixed", "tru");
    const file = join(node.manifestDir, "tru.yaml");
    const good = recordedManifest("74-truncated-then-fixed/manifest-tru-1.yaml");
    const before = await untilRunning("tru");
    const live = ({ status }: PodItem) => status.conditions?.find(({ type }) => type === "ManifestLive");
    const noContainers = good.slice(0, good.indexOf("  containers:")).concat("  containers: []\n");
    for (const bad of [recordedManifest("74-truncated-then-fixed/manifest-truncated.yaml"), "", noContainers]) {
      writeFileSync(file, bad);
      const seen = await untilPod("tru", `to say why not ${JSON.stringify(bad.slice(-40))}`, (one) => !!live(one));
      expect(live(seen)).toMatchObject({ status: "False", reason: "InvalidManifest" });
      expect(live(seen)?.message).toContain(`${file}:`);
      expect(seen.status.phase).toBe("Running");
      writeFileSync(file, good);
      await untilPod("tru", "to be as it was", (one) => !live(one));
    }
    await Bun.sleep(WRONG_REACTION_MS);
    expect(idOf(await untilRunning("tru"))).toBe(idOf(before));
    expect(timeline.of("tru", ["kill", "die", "start"])).toEqual(["start POD#0", "start a#0"]);
  });

  test.concurrent("75-crashloop-backoff-delays: what cannot start", async () => {
    for (const pod of ["bocfg", "bonocmd"]) write("75-crashloop-backoff-delays", pod);
    const cfg = await untilPod("bocfg", "to say why", (seen) => statusOf(seen).state.waiting?.message !== undefined);
    expect(cfg.status.phase).toBe("Pending");
    const why = `container has runAsNonRoot and image will run as root (pod: "bocfg-${node.name}_default(${cfg.metadata.uid})", container: a)`;
    expect(statusOf(cfg)).toMatchObject({
      state: { waiting: { reason: "CreateContainerConfigError", message: why } },
      lastState: {},
      restartCount: 0,
      imageID: "",
      started: false,
    });
    expect(kubelet.log).toContain(`Failed: Error: ${why}`);

    const isBackingOff = (seen: PodItem) => statusOf(seen).state.waiting?.reason === "CrashLoopBackOff";
    const noCmd = await untilPod("bonocmd", "to back off", isBackingOff);
    expect(noCmd.status.phase).toBe("Running");
    const cannotRun =
      'failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/nosuch": stat /nosuch: no such file or directory: unknown';
    expect(statusOf(noCmd)).toMatchObject({
      lastState: { terminated: { exitCode: 127, reason: "ContainerCannotRun", message: cannotRun } },
      ready: false,
      started: false,
    });
    expect(kubelet.log).toContain(
      `Failed: Error: failed to start container "a": Error response from daemon: ${cannotRun}`,
    );
  });

  // Alone: a machine that starts other containers meanwhile does not start these within their deadline.
  test("78-active-deadline, 83-deadline-with-volume: TERM, grace, KILL; the true state (docs/differences.md)", async () => {
    for (const pod of ["adl", "adltrap", "adlback"]) write("78-active-deadline", pod);
    for (const pod of ["advol", "advoltrap"]) write("83-deadline-with-volume", pod);
    for (const [pod, graceSeconds] of Object.entries({ adl: 3, advol: 5 })) {
      await node.until(`${pod} to be at rest`, () => timeline.has(pod, "die 0 POD#0"), LIMIT_MS);
      expect(timeline.of(pod)).toEqual(["kill 15 a#0", "kill 9 a#0", "die 137 a#0", "kill 15 POD#0", "die 0 POD#0"]);
      const graceMs = timeline.timeOf(pod, "kill 9 a#0") - timeline.timeOf(pod, "kill 15 a#0");
      // A busy engine delivers the first signal late; the recorded kubelet left no more than 2 s.
      expect(graceMs).toBeGreaterThan(graceSeconds * 700);
    }
    for (const pod of ["adltrap", "advoltrap", "adlback"]) {
      await node.until(`${pod} to be at rest`, () => timeline.has(pod, "die 0 POD#0"), LIMIT_MS);
      expect(timeline.of(pod)).toEqual(["kill 15 a#0", "die 0 a#0", "kill 15 POD#0", "die 0 POD#0"]);
    }
    for (const [pod, exitCode] of Object.entries({ adl: 137, adltrap: 0 })) {
      const seen = await untilPod(pod, "to have failed", (one) => statusOf(one).state.terminated !== undefined);
      expect(seen.status).toMatchObject({
        phase: "Failed",
        reason: "DeadlineExceeded",
        message: "Pod was active on the node longer than the specified deadline",
      });
      expect(statusOf(seen)).toMatchObject({ state: { terminated: { exitCode } }, ready: false, started: false });
      const sinceMs = timeline.timeOf(pod, "kill 15 a#0") - new Date(seen.status.startTime!).getTime();
      expect(sinceMs).toBeGreaterThanOrEqual(6_000);
    }
    expect(kubelet.log).toContain("DeadlineExceeded: Pod was active on the node longer than the specified deadline");

    // The recorded edit has a label `y`, which is not a string: it is reported. A label starts nothing either.
    write("78-active-deadline", "adlback", 2);
    await node.untilLogged(kubelet, /adlback\.yaml.*labels/);
    const edited = recordedManifest("78-active-deadline/manifest-adlback-2.yaml").replace("{x: y}", '{x: "y"}');
    node.writeManifest("adlback.yaml", edited);
    await untilPod("adlback", "to show the label", ({ metadata }) => metadata.labels?.x === "y");
    await Bun.sleep(WRONG_REACTION_MS);
    expect((await node.pod("adlback"))?.status.phase).toBe("Failed");
    expect(timeline.of("adlback", ["start"])).toEqual(["start POD#0", "start a#0"]);
  });
});
