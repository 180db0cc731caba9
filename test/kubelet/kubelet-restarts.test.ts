import { beforeEach, describe, expect, test } from "bun:test";
import type { Pod, PodCondition } from "../../src/base/api/pod.ts";
import type { DesiredState } from "../../src/base/model/desired-state.ts";
import { aContainer } from "../support/builders.ts";
import { KubeletWorld, named, stateOf } from "../support/kubelet-world.ts";

let world: KubeletWorld;

beforeEach(() => {
  world = new KubeletWorld();
});

/** Seconds until another container of the name is there. */
async function secondsToNext(name: string, id: string): Promise<number> {
  const endedAtMs = world.clock.monotonicMs();
  while (world.engine.idOf("web-node1", name) === id) await world.clock.advance(100);
  return Math.round((world.clock.monotonicMs() - endedAtMs) / 1000);
}

describe("a container", () => {
  test("the name of an image is looked up once for all pods of it", async () => {
    await world.started(named("web"), named("api"), named("db"));
    world.imageLookUps.length = 0;
    await world.restarted(named("web"), named("api"), named("db"));
    expect(world.imageLookUps).toEqual(["sha256:image"]);
  });

  test("an event names the exit code of each container that ended and was not killed, once", async () => {
    await world.started(named("web"));
    const exits = () => world.recorder.events.filter((event) => event.includes(" Exited "));
    await world.exit("web", "app", 1, 1);
    await world.exit("web", "app", 0, 20_000);
    world.engine.oom(world.engine.idOf("web-node1", "app"));
    await world.exit("web", "app", 137, 60_000);
    await world.clock.advance(120_000);
    expect(exits()).toEqual([
      "web-node1 Exited Container app exited with code 1",
      "web-node1 Exited Container app exited with code 0",
      "web-node1 Exited Container app exited with code 137 (OOMKilled)",
    ]);
    world.want();
    await world.clock.advance(60_000);
    expect(exits()).toHaveLength(3);
  });

  test.each(["Never", "OnFailure"] as const)(
    "an event names the exit code of a pod that is done (%s)",
    async (restartPolicy) => {
      await world.started(named("web", { restartPolicy }));
      await world.exit("web", "app", 0, 1_000);
      expect(world.statusOf("web")?.phase).toBe("Succeeded");
      expect(world.recorder.events).toContain("web-node1 Exited Container app exited with code 0");
    },
  );

  test.each(["app", "POD"])("a wall clock that is set back does not hide the successor of %s", async (ended) => {
    await world.started(named("web"));
    world.clock.jump("1970-01-01T00:00:00Z");
    world.engine.calls.length = 0;
    world.engine.exit(world.engine.idOf("web-node1", ended), 1);
    await world.clock.advance(1_000);
    const newSandbox = ended === "POD" ? ["kill app 30s", "sandbox#1 web-node1"] : [];
    const starts = (call: string) => !call.startsWith("remove-sandbox");
    expect(world.engine.calls.filter(starts)).toEqual([...newSandbox, "start app#1 web-node1"]);
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(world.containerOf("web")).toMatchObject({ restartCount: 1, state: { running: {} } });
  });

  test("docker restart goes unnoticed, docker stop does not", async () => {
    await world.started(named("web"), named("db"));
    const [web, db] = [world.engine.idOf("web-node1", "app"), world.engine.idOf("db-node1", "app")];
    world.engine.stopByHand(web);
    world.engine.stopByHand(db);
    await world.clock.advance(100);
    world.engine.startByHand(web);
    await world.clock.advance(1_000);
    expect(world.engine.idOf("web-node1", "app")).toBe(web);
    expect(world.containerOf("web")).toMatchObject({ restartCount: 0, lastState: {} });
    expect(world.containerOf("db")).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 0, reason: "Completed" } },
    });
  });

  test.each(["reported by events", "while events were lost"])(
    "docker restart of a sandbox, %s, takes the network from the pod: it gets a new one",
    async (when) => {
      await world.started(named("web"));
      const before = ["POD", "app"].map((name) => world.engine.idOf("web-node1", name));
      await world.clock.advance(1_000);
      if (when !== "reported by events") world.engine.lose();
      world.engine.stopByHand(before[0]!);
      await world.clock.advance(100);
      world.engine.startByHand(before[0]!);
      world.engine.back();
      await world.clock.advance(2_000);
      expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
      const after = ["POD", "app"].map((name) => world.engine.idOf("web-node1", name));
      for (const id of before) expect(after).not.toContain(id);
    },
  );

  test.each(["Always", "Never"])("docker rm -f is not a crash, policy %s: attempt 0 again", async (policy) => {
    await world.started(named("web", { restartPolicy: policy }));
    const first = world.engine.idOf("web-node1", "app");
    world.engine.beginRemoval(first);
    await world.clock.advance(100);
    world.engine.destroy(first);
    await world.clock.advance(100);
    // Its log links go with it.
    expect(world.engine.gone).toEqual([first]);
    expect(world.engine.idOf("web-node1", "app")).not.toBe(first);
    expect(world.statusOf("web")).toMatchObject({
      phase: "Running",
      containerStatuses: [{ restartCount: 0, lastState: {} }],
    });
  });

  test.each([
    { of: "one that failed and stays so", restartPolicy: "Never", exitCode: 3, after: { restartCount: 0 } },
    { of: "one that is done", restartPolicy: "OnFailure", exitCode: 0, after: { restartCount: 0 } },
    { of: "one that crashed", restartPolicy: "Always", exitCode: 1, after: { restartCount: 5 } },
  ] as const)("docker container prune in a pod that runs, of $of: its end still counts", async (row) => {
    const { restartPolicy, exitCode } = row;
    await world.started(
      named("web", {
        restartPolicy,
        containers: [aContainer({ name: "app" }), aContainer({ name: "other" })],
      }),
    );
    await world.exit("web", "app", exitCode, 11_000);
    for (let crash = 1; crash < 5 && restartPolicy === "Always"; crash++) {
      await world.clock.advance(300_000);
      await world.exit("web", "app", exitCode, 11_000);
    }
    const [removed, before] = [world.engine.idOf("web-node1", "app"), world.containerOf("web")];
    world.engine.destroy(removed);
    await world.clock.advance(10);
    expect(world.containerOf("web")).toEqual(before!);
    expect(world.engine.gone).toContain(removed);
    await world.clock.advance(600_000);
    expect(world.containerOf("web")).toMatchObject(row.after);
    expect(world.engine.running()).toHaveLength(restartPolicy === "Always" ? 3 : 2);
    await world.exit("web", "other", 0, 11_000);
    world.want();
    await world.clock.advance(120_000);
    expect([world.engine.containers.size, world.kubelet.workers.size]).toEqual([0, 0]);
  });

  test("a removal that the engine does not finish is a crash after all", async () => {
    await world.started(named("web"));
    const first = world.engine.idOf("web-node1", "app");
    world.engine.beginRemoval(first);
    await world.clock.advance(6_000);
    expect(world.statusOf("web")).toMatchObject({ phase: "Running", containerStatuses: [{ restartCount: 1 }] });
  });

  test("an old attempt that is started by hand is stopped again", async () => {
    await world.started(named("web"));
    const first = world.engine.idOf("web-node1", "app");
    world.engine.exit(first, 1);
    await world.clock.advance(10);
    world.engine.startByHand(first);
    await world.clock.advance(1_000);
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(world.engine.find("web-node1", "app")).toMatchObject({ container: { restartCount: 1, state: "running" } });
  });

  test.each([
    { what: "crashes at once, always", exitCode: 1, runsMs: 20 },
    { what: "ends well at once, always", exitCode: 0, runsMs: 20 },
    { what: "crashes after 3 s, always", exitCode: 1, runsMs: 3_000 },
  ])("back-off of a container that $what: 0, 10, 20, 40, 80, 160, 300, 300 s", async ({ exitCode, runsMs }) => {
    await world.started(named("web"));
    const delays: number[] = [];
    const messages: (string | undefined)[] = [];
    for (let crash = 0; crash < 8; crash++) {
      await world.clock.advance(runsMs);
      const id = world.engine.idOf("web-node1", "app");
      world.engine.exit(id, exitCode);
      await world.clock.advance(1);
      messages.push(world.containerOf("web")?.state.waiting?.message);
      delays.push(await secondsToNext("app", id));
    }
    expect(delays).toEqual([0, 10, 20, 40, 80, 160, 300, 300]);
    expect(world.recorder.events).toContain("web-node1 BackOff Back-off restarting failed container");
    const tail = "restarting failed container=app pod=web-node1_default(uid-web)";
    expect(messages).toEqual([
      undefined,
      ...["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"].map((delay) => `back-off ${delay} ${tail}`),
    ]);
  });

  test("a liveness probe that always fails: the third restart waits", async () => {
    world.engine.stopResponsesAfterMs = 50;
    await world.started(named("web"));
    const delays: number[] = [];
    for (let kill = 0; kill < 6; kill++) {
      await world.clock.advance(5_000);
      const containerId = world.engine.idOf("web-node1", "app");
      world.probes.set("uid-web", new Map([["app", { containerId, liveness: "failure", started: true, ready: true }]]));
      world.kubelet.workers.get("uid-web")!.wake();
      delays.push(await secondsToNext("app", containerId));
    }
    expect(delays).toEqual([0, 0, 10, 20, 40, 80]);
  });

  test("back-off of an init container", async () => {
    await world.started(named("web", { initContainers: [aContainer({ name: "i" })] }));
    const delays: number[] = [];
    for (let crash = 0; crash < 5; crash++) {
      const id = world.engine.idOf("web-node1", "i");
      world.engine.exit(id, 1);
      delays.push(await secondsToNext("i", id));
    }
    expect(delays).toEqual([0, 10, 20, 40, 80]);
    expect(world.statusOf("web")).toMatchObject({
      phase: "Pending",
      containerStatuses: [{ state: { waiting: { reason: "PodInitializing" } } }],
    });
  });
});

describe("our own restart", () => {
  test("adopts what runs: nothing is created, nothing restarted", async () => {
    await world.started(named("web"), named("db"));
    world.renew();
    world.engine.calls.length = 0;
    await world.started(...world.desired);
    // Only files are brought up to date: what they are made from may have changed meanwhile.
    expect(world.engine.calls).toEqual(["refresh web-node1", "refresh db-node1"]);
    expect(world.statusOf("web")).toMatchObject({ phase: "Running", containerStatuses: [{ restartCount: 0 }] });
  });

  test("startTime is when the pod was accepted, although its sandbox is younger", async () => {
    world.engine.takesMs.set("sandbox", 5000);
    await world.started(named("web"));
    await world.clock.advance(60_000);
    const { phase, startTime } = world.statusOf("web")!;
    await world.restarted(...world.desired);
    expect([phase, world.statusOf("web")?.startTime]).toEqual(["Running", startTime]);
  });

  test("at any step of a pod's start: no container is created twice", async () => {
    for (let step = 0; step < 12; step++) {
      world = new KubeletWorld();
      world.kubelet.start();
      world.want(named("web", { initContainers: [aContainer({ name: "init", restartPolicy: "Always" })] }));
      for (let tick = 0; tick < step; tick++) await Promise.resolve();
      await world.restarted(...world.desired);
      await world.clock.advance(15_000);
      expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app", "web-node1/init"]);
    }
  });

  test("what is left of a pod whose containers are gone already is cleaned up, once every source was read", async () => {
    await world.started(named("web"), named("db"));
    world.renew();
    for (const kind of ["app", "POD"]) world.engine.destroy(world.engine.idOf("web-node1", kind));
    world.engine.calls.length = 0;
    world.kubelet.start();
    world.want(named("db"));
    await world.clock.advance(100);
    expect(world.engine.calls).toEqual(["refresh db-node1", "tear-down web-node1"]);
    expect(world.podCleanup).toMatchObject([{ name: "web-node1", isRemoved: true }, { name: "db-node1" }]);
  });

  test("the end of a removed pod is forgotten, also when the process ended between the writes", async () => {
    await world.started(named("web", { restartPolicy: "Never" }));
    await world.exit("web", "app", 0, 1_000);
    const [completions, conditions] = [new Map(world.completions), world.conditions];
    expect([completions.size, conditions.length]).toEqual([1, 1]);
    world.want();
    await world.clock.advance(60_000);
    Object.assign(world, { completions, conditions });
    world.renew();
    world.kubelet.start();
    world.want();
    await world.clock.advance(1_000);
    expect([world.completions.size, world.conditions, world.podCleanup.length]).toEqual([0, [], 1]);
  });

  test("nothing of a pod is made before the disk knows that there may be something to clean up", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    world.disk = promise;
    world.kubelet.start();
    world.want(named("web"));
    await world.clock.advance(1_000);
    expect([world.podCleanup.length, world.engine.calls]).toEqual([1, []]);
    resolve();
    await world.clock.advance(100);
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
  });

  test("containers that a hanging engine creates after the removal of their pod are removed, also after a restart", async () => {
    const pod = named("web");
    const state = (...pods: Pod[]) => stateOf(pods, { completeSources: new Set() }, { source: "api", sourceId: "api" });
    world.kubelet.setDesired(state(pod), true);
    world.kubelet.start();
    await world.clock.advance(100);
    world.kubelet.setDesired(state(), true);
    await world.clock.advance(60_000);
    expect(world.engine.running()).toEqual([]);
    for (const step of ["late", "after our restart"]) {
      world.engine.takesMs.set("stop", 500);
      await world.engine.startSandbox({ pod, attempt: 1, hash: "" });
      let isCleanedUp = false;
      for (let waited = 0; waited < 60_000; waited += 100) {
        await world.clock.advance(100);
        isCleanedUp ||= world.podCleanup.some((left) => !("isRemoved" in left));
      }
      // A crash of the kubelet in between leaves what it had to clean up on disk.
      expect(isCleanedUp).toBe(true);
      expect({ step, running: world.engine.running() }).toEqual({ step, running: [] });
      world.renew();
      world.kubelet.setDesired(state(), true);
      world.kubelet.start();
      await world.clock.advance(100);
    }
    await world.clock.advance(20 * 60_000);
    expect(world.podCleanup).toEqual([]);
  });

  test("a crash loop continues where it was", async () => {
    await world.started(named("web"));
    await world.exit("web", "app", 1, 1);
    world.engine.exit(world.engine.idOf("web-node1", "app"), 1);
    await world.restarted(...world.desired);
    expect(world.containerOf("web")?.state.waiting?.reason).toBe("CrashLoopBackOff");
  });

  test("restarts for edits are not crashes: the first crash after them restarts at once", async () => {
    for (const tag of [1, 2, 3, 4]) {
      await world.started(named("web", { containers: [aContainer({ image: `busybox:${tag}` })] }));
      await world.clock.advance(100);
    }
    expect(world.containerOf("web")?.restartCount).toBe(3);
    await world.restarted(...world.desired);
    await world.exit("web", "app", 1, 1);
    expect(world.containerOf("web")).toMatchObject({ restartCount: 4, state: { running: {} } });
  });

  test("a finished pod stays finished, even when its container was removed", async () => {
    const job = named("job", { restartPolicy: "Never" });
    await world.started(job);
    await world.exit("job", "app", 0, 100);
    expect(world.statusOf("job")?.phase).toBe("Succeeded");
    world.renew();
    world.engine.destroy(world.engine.idOf("job-node1", "app"));
    world.engine.destroy(world.engine.idOf("job-node1", "POD"));
    world.engine.calls.length = 0;
    await world.started(job);
    expect(world.engine.calls).toEqual([]);
    expect(world.statusOf("job")).toMatchObject({
      phase: "Succeeded",
      containerStatuses: [{ state: { terminated: { exitCode: 0 } } }],
    });
  });

  test("a finished pod keeps its restart count when the newest attempt of its container is removed first", async () => {
    const job = named("job", { restartPolicy: "OnFailure" });
    await world.started(job);
    await world.exit("job", "app", 1, 100);
    await world.exit("job", "app", 0, 100);
    const ended = world.statusOf("job");
    expect(ended).toMatchObject({ phase: "Succeeded", containerStatuses: [{ restartCount: 1 }] });
    world.engine.destroy(world.engine.idOf("job-node1", "app"));
    await world.clock.advance(1_000);
    expect(world.statusOf("job")).toEqual(ended!);
    await world.restarted(job);
    expect(world.statusOf("job")).toEqual(ended!);
  });

  test.each([
    { gone: "app", why: "that had ended", ends: [{ reason: "Completed" }, { reason: "Error" }] },
    {
      gone: "side",
      why: "that is being stopped",
      ends: [{ reason: "Completed" }, { reason: "ContainerStatusUnknown" }],
    },
  ])("a container $why is removed while its pod ends: every container of the pod has ended", async ({ gone, ends }) => {
    const containers = [aContainer({ name: "app" }), aContainer({ name: "side" })];
    await world.started(named("job", { restartPolicy: "Never", activeDeadlineSeconds: 10, containers }));
    world.engine.stopTakesMs = 5_000;
    await world.exit("job", "app", 0, 11_000);
    if (gone === "app") world.kubelet.removeSurplusDead({ maxInAll: 0, minTtlMs: 0 });
    else world.engine.destroy(world.engine.idOf("job-node1", gone));
    await world.clock.advance(10_000);
    const containerStatuses = ends.map((terminated) => ({ state: { terminated }, ready: false, started: false }));
    expect(world.statusOf("job")).toMatchObject({ phase: "Failed", containerStatuses });
  });

  test("its end is published with its termination message, in one status", async () => {
    await world.started(named("job", { restartPolicy: "Never" }));
    const message = Promise.withResolvers<string>();
    world.engine.readTerminationMessage = () => message.promise;
    const before = world.statusOf("job");
    world.engine.exit(world.engine.idOf("job-node1", "app"), 0);
    await world.clock.advance(100);
    expect(world.statusOf("job")).toEqual(before!);
    message.resolve("done");
    await world.clock.advance(100);
    expect(world.statusOf("job")).toMatchObject({
      phase: "Succeeded",
      containerStatuses: [{ state: { terminated: { exitCode: 0, message: "done" } } }],
    });
  });

  test("a pod whose container is removed while its termination message is read, or just after, keeps its status", async () => {
    const job = named("job", { restartPolicy: "Never" });
    await world.started(job);
    const words = Promise.withResolvers<string>();
    world.engine.readTerminationMessage = () => words.promise;
    await world.exit("job", "app", 0, 100);
    words.resolve("");
    await world.clock.advance(100);
    const ended = world.statusOf("job");
    expect(world.completions.get("uid-job")?.status).toEqual(ended!);
    world.engine.destroy(world.engine.idOf("job-node1", "app"));
    await world.clock.advance(100);
    expect(world.statusOf("job")).toEqual(ended!);
    world.renew();
    world.want(job);
    // Also before the engine has answered.
    expect(world.statusOf("job")).toMatchObject({ phase: "Succeeded" });
    await world.started(job);
    expect(world.statusOf("job")).toMatchObject({ phase: "Succeeded", podIP: ended!.podIP! });
    expect(world.statusOf("job")?.containerStatuses).toEqual(ended!.containerStatuses!);
  });

  test("conditions keep their transition times over a restart of kubelet-ts, until they change", async () => {
    const readyOf = () => world.statusOf("web")?.conditions?.find(({ type }) => type === "Ready");
    await world.started(named("web"));
    await world.clock.advance(60_000);
    const before = world.statusOf("web")?.conditions;
    world.renew();
    await world.clock.advance(60_000);
    await world.started(named("web"));
    expect(world.statusOf("web")?.conditions).toEqual(before!);
    await world.exit("web", "app", 1, 1);
    await world.exit("web", "app", 1, 1);
    expect(readyOf()).toMatchObject({ status: "False" });
    expect(readyOf()?.lastTransitionTime).not.toBe(before?.find(({ type }) => type === "Ready")?.lastTransitionTime);
    world.want();
    await world.clock.advance(60_000);
    expect(world.conditions).toEqual([]);
  });
});

test("conditions of clients make a pod with readiness gates Ready, outlive our restart and its end, and go with it", async () => {
  const gate = { type: "x/up", status: "True" as const };
  const pod = named("web", { restartPolicy: "Never", readinessGates: [{ conditionType: "x/up" }] });
  const shown = () =>
    (world.statusOf("web")?.conditions ?? [])
      .filter(({ type }) => type === "Ready" || type === "x/up")
      .map(({ type, status }) => `${type} ${status}`);
  const set = (...conditions: PodCondition[]) => world.kubelet.workers.get("uid-web")!.setForeign(conditions);
  await world.started(pod);
  set({ ...gate, status: "False" });
  expect(shown()).toEqual(["Ready False", "x/up False"]);
  set(gate);
  expect(shown()).toEqual(["Ready False", "x/up True"]);
  await world.clock.advance(10);
  expect(shown()).toEqual(["Ready True", "x/up True"]);
  await world.restarted(pod);
  expect(shown()).toEqual(["Ready True", "x/up True"]);
  set();
  await world.clock.advance(10);
  expect(shown()).toEqual(["Ready False"]);
  await world.exit("web", "app", 0, 100);
  set(gate);
  world.engine.destroy(world.engine.idOf("web-node1", "app"));
  await world.clock.advance(10);
  expect(shown()).toEqual(["Ready False", "x/up True"]);
  await world.restarted(pod);
  expect(shown()).toEqual(["Ready False", "x/up True"]);
  world.want();
  await world.clock.advance(120_000);
  expect(world.conditions).toEqual([]);
});

test.each(["Never", "Always"] as const)(
  "a pod that a client ends is stopped, and has ended also after our restart: %s",
  async (restartPolicy) => {
    const pod = named("web", { restartPolicy });
    const end = { phase: "Failed", reason: "Drained", message: "moved" } as const;
    await world.started(pod);
    await world.kubelet.workers.get("uid-web")!.setEnd(end);
    await world.clock.advance(60_000);
    expect(world.statusOf("web")).toMatchObject({ ...end, containerStatuses: [{ state: { terminated: {} } }] });
    await world.kubelet.workers.get("uid-web")!.setEnd({ phase: "Succeeded" });
    await world.restarted(pod);
    await world.clock.advance(60_000);
    expect(world.statusOf("web")).toMatchObject({ ...end, containerStatuses: [{ state: { terminated: {} } }] });
  },
);

test("a pod that a client ends has ended for a process that begins before its containers have stopped", async () => {
  const pod = named("web");
  await world.started(pod);
  world.engine.stopTakesMs = 5_000;
  const writing = world.kubelet.workers.get("uid-web")!.setEnd({ phase: "Failed", reason: "Drained" });
  await world.clock.advance(1_000);
  expect(await writing).toBe(true);
  await world.restarted(pod);
  await world.clock.advance(60_000);
  expect(world.statusOf("web")).toMatchObject({ phase: "Failed", reason: "Drained" });
  expect(world.statusOf("web")?.containerStatuses).toMatchObject([{ restartCount: 0, state: { terminated: {} } }]);
});

test("a running pod is supervised though an optional ConfigMap is missing once every source was read", async () => {
  const container = aContainer({ envFrom: [{ configMapRef: { name: "words", optional: true } }] });
  const pod = named("web", { containers: [container] });
  await world.started(pod);
  world.renew();
  world.kubelet.start();
  // As with --runonce: all sources were read, and pods of others are left alone.
  world.kubelet.setDesired(stateOf([pod]), false);
  await world.clock.advance(100);
  expect(world.statusOf("web")?.phase).toBe("Running");
});

test("a running pod whose ConfigMap may be in a source that was not read yet is left as it is", async () => {
  const container = aContainer({ envFrom: [{ configMapRef: { name: "words" } }] });
  const pod = named("web", { containers: [container] });
  await world.started(pod);
  const before = world.engine.idOf("web-node1", "app");
  world.renew();
  world.kubelet.start();
  // Its hash without the ConfigMap is another one.
  const edited = named("web", { containers: [{ ...container, image: "without" }] });
  const state = (of: typeof pod, configMaps: DesiredState["configMaps"]) =>
    stateOf([of], { configMaps, completeSources: new Set() }, { source: "api" });
  world.kubelet.setDesired(state(edited, new Map()), false);
  await world.clock.advance(100);
  expect(world.engine.idOf("web-node1", "app")).toBe(before);
  expect(world.statusOf("web")?.phase).toBe("Running");
  world.kubelet.setDesired(state(pod, new Map([["default/words", { metadata: { name: "words" } }]])), true);
  await world.clock.advance(100);
  expect(world.engine.idOf("web-node1", "app")).toBe(before);
  expect(world.statusOf("web")?.phase).toBe("Running");
});

describe("restartPod", () => {
  const uidOf = (name: string) =>
    world.kubelet.desiredPods.find(({ pod }) => pod.metadata.name === name)!.pod.metadata.uid!;

  test("stops the containers within their grace period, then the sandbox, and starts them in a new one, once", async () => {
    await world.started(named("web"));
    world.engine.calls.length = 0;
    expect(world.kubelet.restartPod(uidOf("web-node1"))).toBeUndefined();
    expect(world.kubelet.restartPod(uidOf("web-node1"))).toBeUndefined();
    await world.clock.advance(1_000);
    expect(world.engine.calls.filter((call) => !call.startsWith("remove-sandbox"))).toEqual([
      "kill app 30s",
      "stop-sandbox sandbox-0",
      "sandbox#1 web-node1",
      "start app#1 web-node1",
    ]);
    expect(world.containerOf("web")).toMatchObject({ restartCount: 1, state: { running: {} } });
  });

  test("refuses a pod whose containers may count as done, one that does not run, and one that is not known", async () => {
    await world.started(named("job", { restartPolicy: "Never" }), named("web"));
    expect(world.kubelet.restartPod(uidOf("job-node1"))).toContain("has restartPolicy Never");
    void world.kubelet.halt(uidOf("web-node1"), { phase: "Failed" }, 0);
    await world.clock.advance(10);
    expect(world.kubelet.restartPod(uidOf("web-node1"))).toContain("does not run now");
    expect(world.kubelet.restartPod("gone")).toContain("is not started");
  });
});

describe("a pod that finishes", () => {
  const once = (image = "job:1") => named("job", { restartPolicy: "Never", containers: [aContainer({ image })] });
  async function finished(): Promise<void> {
    await world.started(once());
    await world.exit("job", "app", 0, 100);
  }

  test("the volumes of a pod are removed when it has ended and its sandbox has stopped, once", async () => {
    await finished();
    expect(world.engine.running()).toEqual([]);
    expect(world.engine.releases).toEqual(["job-node1"]);
    await world.clock.advance(600_000);
    expect(world.engine.releases).toHaveLength(1);
  });

  test("a pod that has not ended keeps its volumes", async () => {
    await world.started(named("web"));
    await world.exit("web", "app", 1, 600_000);
    expect(world.engine.releases).toEqual([]);
  });

  test("a volume that is still in use is removed later", async () => {
    world.engine.failures.set("release", { error: new Error("busy"), times: 1 });
    await finished();
    await world.clock.advance(20_000);
    expect(world.engine.releases).toHaveLength(2);
  });

  test("every end of a pod that an edit made run again counts", async () => {
    await finished();
    for (const image of ["job:2", "job:1"]) {
      world.want(once(image));
      await world.clock.advance(100);
      expect([world.statusOf("job")?.phase, world.completions.size]).toEqual(["Running", 0]);
      await world.exit("job", "app", 0, 100);
    }
    expect(world.engine.releases).toHaveLength(3);
  });

  test.each(["while the kubelet runs", "while the kubelet does not run"])(
    "an edit of a pod past its deadline, %s, gives it all of its time again",
    async (when) => {
      const limited = (image: string) => {
        const job = once(image);
        return { ...job, spec: { ...job.spec, activeDeadlineSeconds: 60 } };
      };
      await world.started(limited("job:1"));
      await world.clock.advance(61_000);
      expect(world.statusOf("job")).toMatchObject({ phase: "Failed", reason: "DeadlineExceeded" });
      await world.clock.advance(600_000);
      if (when === "while the kubelet does not run") world.renew();
      const editedAt = `${world.clock.now().toISOString().slice(0, 19)}Z`;
      await world.started(limited("job:2"));
      await world.clock.advance(30_000);
      await world.restarted(...world.desired);
      await world.clock.advance(29_000);
      expect(world.statusOf("job")).toMatchObject({ phase: "Running", startTime: editedAt });
      await world.clock.advance(2_000);
      expect(world.statusOf("job")).toMatchObject({ phase: "Failed", reason: "DeadlineExceeded" });
    },
  );
});

test.each(["an ephemeral container", "a condition"])(
  "%s that a client adds counts as stored when it is in the file",
  async (what) => {
    await world.started(named("web"));
    const { promise, resolve } = Promise.withResolvers<void>();
    world.disk = promise;
    let isStored = false;
    const container = { name: "debug", image: "debug" } as never;
    const condition = { type: "x/up", status: "True" } as PodCondition;
    const isContainer = what === "an ephemeral container";
    const stored = isContainer
      ? world.kubelet.setEphemeralContainers("uid-web", [container])
      : world.kubelet.workers.get("uid-web")!.setForeign([condition]);
    void stored.then(() => {
      isStored = true;
    });
    await world.clock.advance(1_000);
    expect(isStored).toBe(false);
    resolve();
    await world.clock.advance(1);
    expect(isStored).toBe(true);
    if (isContainer) expect(world.ephemeralContainers).toEqual([["uid-web", [container]]]);
    else expect(world.conditions[0]?.[1]).toContainEqual(expect.objectContaining(condition));
  },
);
