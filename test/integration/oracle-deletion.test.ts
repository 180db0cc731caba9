import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describeWithEngine, testNode } from "../support/engine.ts";
import { EngineTimeline, recordedManifest } from "../support/engine-timeline.ts";
import type { KubeletProcess } from "../support/kubelet-process.ts";
import { freePorts } from "../support/test-servers.ts";

interface Deletion {
  of: string;
  /** The events of each container, in order. */
  ends: Record<string, string[]>;
  /** The least time between two happenings, by the engine's clock: grace periods are kept, whatever the load. */
  atLeast?: [from: string, to: string, seconds: number][];
}

const TERM_ENOUGH = ["kill 15", "die 0"];
const KILLED = ["kill 15", "kill 9", "die 137"];
const graceOf = (container: string, seconds: number): [string, string, number] => [
  `kill 15 ${container}`,
  `kill 9 ${container}`,
  seconds,
];
const THREE = { "one#0": TERM_ENOUGH, "three#0": TERM_ENOUGH, "never#0": KILLED };

/**
 * The recorded pods and what their end is. Where the recorded kubelet killed pods without volumes at once (case 63, 64),
 * ours keeps to the grace period as it does with volumes (case 89): docs/differences.md.
 */
const DELETIONS: Deletion[] = [
  { of: "63-delete-manifest-grace/deltrap", ends: { "a#0": TERM_ENOUGH } },
  { of: "63-delete-manifest-grace/delign", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 5)] },
  { of: "63-delete-manifest-grace/delzero", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 2)] },
  { of: "63-delete-manifest-grace/delone", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 2)] },
  { of: "63-delete-manifest-grace/deltwo", ends: THREE, atLeast: [graceOf("never#0", 5)] },
  { of: "64-delete-prestop/pshort", ends: { "a#0": KILLED } },
  { of: "64-delete-prestop/plong", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 2)] },
  { of: "64-delete-prestop/pfail", ends: { "a#0": TERM_ENOUGH } },
  { of: "64-delete-prestop/phttp", ends: { "a#0": TERM_ENOUGH } },
  { of: "89-delete-grace-with-volumes/vtrap", ends: { "a#0": TERM_ENOUGH } },
  { of: "89-delete-grace-with-volumes/vign", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 5)] },
  { of: "89-delete-grace-with-volumes/vzero", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 2)] },
  { of: "89-delete-grace-with-volumes/vone", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 2)] },
  { of: "89-delete-grace-with-volumes/vtwo", ends: THREE, atLeast: [graceOf("never#0", 6)] },
  // The hook takes two of the six seconds.
  // The hook takes what it takes, at most all; the container still gets TERM and two seconds.
  { of: "89-delete-grace-with-volumes/vpre", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 2)] },
  { of: "89-delete-grace-with-volumes/vplong", ends: { "a#0": KILLED }, atLeast: [graceOf("a#0", 2)] },
];

/** Docker counts its timeout in whole ticks: it may be some milliseconds short. */
const TICK_MS = 100;
const LIMIT_MS = 90_000;

describeWithEngine("pods end as recorded (oracle 63, 64, 66, 84, 87, 89)", () => {
  const node = testNode();
  const hostPort = String(freePorts(1)[0]);
  let timeline: EngineTimeline;
  let kubelet: KubeletProcess;
  let deletedAtMs = 0;
  const uids = new Map<string, string>();
  const pods = [...DELETIONS.map(({ of }) => of.split("/")[1]!), "clean", "cldone", "tw1", "tw2", "tw3"];

  // A network of its own, which no order depends on, costs two thirds of a pod.
  const read = (path: string) => {
    const text = recordedManifest(path).replace("18222", hostPort);
    return /port/i.test(text) ? text : text.replace("\nspec:\n", "\nspec:\n  hostNetwork: true\n");
  };
  beforeAll(async () => {
    timeline = await EngineTimeline.of(node);
    for (const { of } of DELETIONS) {
      const [folder, pod] = of.split("/");
      node.writeManifest(`${pod}.yaml`, read(`${folder}/manifest-${pod}-1.yaml`));
    }
    for (const pod of ["clean", "cldone"]) {
      node.writeManifest(`${pod}.yaml`, read(`84-cleanup-after-delete/manifest-${pod}-1.yaml`));
    }
    for (const pod of ["tw1", "tw2", "tw3"]) {
      node.writeManifest(`${pod}.yaml`, read(`87-edit-while-terminating/manifest-${pod}-1.yaml`));
    }
    kubelet = await node.start();
    await node.until(
      "every pod to run",
      async () => {
        const seen = await node.pods();
        for (const { metadata } of seen) uids.set(metadata.name!.replace(`-${node.name}`, ""), metadata.uid!);
        const isUp = ({ status }: (typeof seen)[number]) => ["Running", "Succeeded"].includes(status.phase ?? "");
        return seen.length === pods.length && seen.every(isUp);
      },
      LIMIT_MS,
    );
    // Case 84: two crashes, so that there is a dead container too many.
    await node.until("only the last dead container of clean/b to be kept", async () => {
      const dead = (await node.containers("b")).filter(({ State }) => State === "exited");
      return timeline.has("clean", "destroy b#0") && timeline.has("clean", "die 1 b#1") && dead.length === 1;
    });
    deletedAtMs = Date.now();
    for (const pod of pods) if (!/^tw[23]$/.test(pod)) node.removeManifest(`${pod}.yaml`);
    node.writeManifest("tw2.yaml", read("87-edit-while-terminating/manifest-tw2-2.yaml"));
    node.writeManifest("tw3.yaml", read("87-edit-while-terminating/manifest-tw3-2.yaml"));
    await node.until("/pods to show them as terminating while they still run", async () => {
      const left = (await node.pods())
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.name!.replace(`-${node.name}`, ""));
      return left.sort().join() === "tw2new,tw3" && !timeline.has("tw1", "die 137 a#0");
    });
    node.writeManifest("tw1.yaml", read("87-edit-while-terminating/manifest-tw1-2.yaml"));
  });

  afterAll(async () => {
    await timeline.stop();
    await node.cleanUp();
  });

  const untilDestroyed = (pod: string) =>
    node.until(`the sandbox of ${pod} to be removed`, () => timeline.has(pod, "destroy POD#0"), LIMIT_MS);

  test.each(DELETIONS)("$of", async ({ of, ends, atLeast = [] }) => {
    const pod = of.split("/")[1]!;
    await untilDestroyed(pod);
    const all = timeline.of(pod);
    for (const [container, steps] of Object.entries(ends)) {
      const had = all.filter((line) => line.endsWith(` ${container}`));
      expect(had).toEqual(steps.map((step) => `${step} ${container}`));
    }
    // The sandbox goes last, and ends without a signal.
    expect(all.slice(-2)).toEqual(["kill 15 POD#0", "die 0 POD#0"]);
    // TERM goes to all at once.
    const containers = Object.keys(ends);
    expect(all.slice(0, containers.length).sort()).toEqual(containers.map((one) => `kill 15 ${one}`).sort());
    for (const [from, to, seconds] of atLeast) {
      const tookMs = timeline.timeOf(pod, to) - timeline.timeOf(pod, from);
      expect(tookMs).toBeGreaterThanOrEqual(seconds * 1000 - TICK_MS);
    }
  });

  describe("preStop hooks count against the grace period", () => {
    test.each([
      { pod: "pshort", termAfter: 2, killAfter: 6 },
      { pod: "vpre", termAfter: 2, killAfter: 6 },
      { pod: "plong", termAfter: 4, killAfter: 6 },
      { pod: "vplong", termAfter: 4, killAfter: 6 },
    ])("$pod: TERM after $termAfter s, KILL after $killAfter s", async ({ pod, termAfter, killAfter }) => {
      await untilDestroyed(pod);
      const since = (what: string) => timeline.timeOf(pod, what) - deletedAtMs;
      expect(since("kill 15 a#0")).toBeGreaterThanOrEqual(termAfter * 1000 - TICK_MS);
      expect(since("kill 9 a#0")).toBeGreaterThanOrEqual(killAfter * 1000 - TICK_MS);
    });

    test("one that fails is reported, and the container gets its signal", async () => {
      await untilDestroyed("pfail");
      await untilDestroyed("phttp");
      const who = (pod: string) =>
        `for Container "a" in Pod "${pod}-${node.name}_default(${uids.get(pod)})" failed - error: `;
      expect(kubelet.log).toContain(
        `FailedPreStopHook: Exec lifecycle hook ([false]) ${who("pfail")}command 'false' exited with 1: , message: ""`,
      );
      expect(kubelet.log).toContain(`FailedPreStopHook: Http lifecycle hook (/) ${who("phttp")}Get "http://`);
      expect(kubelet.log).toContain(":8099: connect: connection refused");
    });

    test("one that is cut off reports it too", async () => {
      await untilDestroyed("vplong");
      const what = `Exec lifecycle hook ([sleep 20]) for Container "a" in Pod "vplong-${node.name}_default(${uids.get("vplong")})"`;
      const how = `failed - error: command 'sleep 20' exited with 137: , message: ""`;
      await node.untilLogged(kubelet, `FailedPreStopHook: ${what} ${how}`);
      // Those that had time enough did not fail.
      expect(kubelet.log).not.toContain("([sleep 2])");
    });
  });

  test("84-cleanup-after-delete: nothing is left", async () => {
    for (const pod of ["clean", "cldone"]) {
      await untilDestroyed(pod);
      const uid = uids.get(pod)!;
      await node.until(`the directory of ${pod} to go`, () => !existsSync(join(node.rootDir, "pods", uid)));
      const links = (folder: string) => readdirSync(join(node.directory, folder)).filter((name) => name.includes(pod));
      await node.until(
        `the log links of ${pod} to go`,
        () => [...links("log-pods"), ...links("log-containers")].length === 0,
      );
      expect(cgroupsOf(uid)).toEqual([]);
    }
    // A container that had ended before was not killed.
    expect(timeline.of("cldone")).toEqual(["die 0 a#0", "kill 15 POD#0", "die 0 POD#0"]);
  });

  describe("87-edit-while-terminating: the successor waits (docs/differences.md)", () => {
    test("tw1, deleted and written again: waits until its old self is gone", async () => {
      const waiting = await node.pod("tw1");
      if (!timeline.has("tw1", "destroy POD#0")) {
        expect(waiting?.status).toMatchObject({ phase: "Pending" });
        expect(waiting?.status.message).toContain("is gone");
      }
      await node.untilPhase("tw1", "Running", LIMIT_MS);
      const all = timeline.of("tw1", ["kill", "die", "destroy", "start"]);
      expect(all).toEqual([
        ...["start POD#0", "start a#0", "kill 15 a#0", "kill 9 a#0", "die 137 a#0"],
        ...["kill 15 POD#0", "die 0 POD#0", "destroy a#0", "destroy POD#0", "start POD#0", "start a#0"],
      ]);
      expect(timeline.timeOf("tw1", "kill 9 a#0") - timeline.timeOf("tw1", "kill 15 a#0")).toBeGreaterThanOrEqual(
        11_900,
      );
    });

    test("tw2, renamed: waits for the host port and then runs", async () => {
      await node.untilPhase("tw2new", "Running", LIMIT_MS);
      expect(timeline.indexOf("tw2new", "start POD#0")).toBeGreaterThan(timeline.indexOf("tw2", "die 0 POD#0"));
      expect(timeline.of("tw2").slice(0, 3)).toEqual(KILLED.map((step) => `${step} a#0`));
    });

    test("tw3, edited: the old container is given its time, the sandbox stays", async () => {
      await node.until("tw3 to run again", () => timeline.has("tw3", "start a#1"), LIMIT_MS);
      expect(timeline.of("tw3", ["start", "kill", "die"])).toEqual([
        ...["start POD#0", "start a#0"],
        ...KILLED.map((step) => `${step} a#0`),
        "start a#1",
      ]);
    });
  });

  // How long a container that was killed again waits has rows in kubelet-restarts.test.ts.
  test("66-docker-kill-container: what was killed starts again by its policy, and nothing else does", async () => {
    const names = ["kalways", "knever", "konfail"];
    for (const pod of names) node.writeManifest(`${pod}.yaml`, read(`66-docker-kill-container/manifest-${pod}-1.yaml`));
    const statusOf = async (pod: string, name = "a") =>
      (await node.statusOf(pod))?.containerStatuses?.find((one) => one.name === name);
    const untilStatus = (pod: string, state: object) =>
      node.until(`${pod} to be as recorded`, async () => {
        const seen = await statusOf(pod);
        return Bun.deepMatch(state, seen) && seen;
      });
    const isUp = async (pod: string) => (await node.statusOf(pod))?.containerStatuses?.every(({ ready }) => ready);
    for (const pod of names) await node.until(`${pod} to run`, () => isUp(pod));
    const other = await statusOf("kalways", "b");
    for (const [pod, signal] of [
      ["kalways", "SIGKILL"],
      ["knever", "SIGKILL"],
      ["konfail", "SIGTERM"],
    ] as const) {
      await node.docker.killContainer((await statusOf(pod))!.containerID!.replace("docker://", ""), signal);
    }
    const terminated = { exitCode: 137, reason: "Error" };
    await untilStatus("kalways", { restartCount: 1, ready: true, lastState: { terminated } });
    expect(await statusOf("kalways", "b")).toEqual(other!);
    await untilStatus("knever", { restartCount: 0, state: { terminated } });
    expect([(await node.statusOf("knever"))?.phase, (await statusOf("knever", "b"))?.ready]).toEqual(["Running", true]);
    await untilStatus("konfail", { restartCount: 0, state: { terminated: { exitCode: 0, reason: "Completed" } } });
    await node.untilPhase("konfail", "Succeeded");
    await node.until("its sandbox to be stopped", () => timeline.has("konfail", "kill 15 POD#0"));
    const killed = ["start POD#0", "start a#0", "start b#0", "die 137 a#0"];
    expect(timeline.of("kalways", ["start", "die"])).toEqual([...killed, "start a#1"]);
    expect(timeline.of("knever", ["start", "die"])).toEqual(killed);
  });
});

/** Directories of a pod's cgroup, in whatever hierarchy. */
function cgroupsOf(uid: string): string[] {
  const found = Bun.spawnSync(["find", "/sys/fs/cgroup", "-type", "d", "-name", `*${uid.replaceAll("-", "?")}*`]);
  return found.stdout.toString().split("\n").filter(Boolean);
}
