import { beforeEach, describe, expect, test } from "bun:test";
import type { Container } from "../../src/base/api/pod.ts";
import { toApiTime } from "../../src/base/text/api-time.ts";
import { PodStepError } from "../../src/plan/waiting-reasons.ts";
import { aContainer } from "../support/builders.ts";
import { KubeletWorld, named, stateOf } from "../support/kubelet-world.ts";

let world: KubeletWorld;

beforeEach(() => {
  world = new KubeletWorld();
});

/** The step of the engine fails so often. */
const failAt = (step: string, error: Error, times = 1) => void world.engine.failures.set(step, { error, times });
/** Containers a, with the hook, and b. */
const podWithHook = (lifecycle: Container["lifecycle"] & object) =>
  named("web", { containers: [aContainer({ name: "a", lifecycle }), aContainer({ name: "b" })] });

describe("errors of the runtime", () => {
  test("an unreachable engine never means that all pods are gone", async () => {
    await world.started(named("web"));
    world.engine.calls.length = 0;
    world.engine.lose();
    await world.clock.advance(300_000);
    expect(world.engine.calls).toEqual([]);
    expect(world.statusOf("web")?.phase).toBe("Running");
    expect(world.kubelet.runtimeError).toContain("does not answer");
    world.engine.back();
    await world.clock.advance(100);
    expect(world.kubelet.runtimeError).toBeUndefined();
    expect(world.engine.calls).toEqual([]);
  });

  test("before the engine has answered, pods are shown as not known; one without a manifest may run", async () => {
    const left = { namespace: "default", name: "left-node1" };
    world.podCleanup = [{ uid: "u9", ...left }];
    world.renew();
    world.want(named("web"));
    const unknown = { phase: "Pending", reason: "EngineUnavailable", message: expect.stringContaining("not known") };
    expect([world.statusOf("web"), world.kubelet.mayRun(left)]).toMatchObject([unknown, true]);
    expect(world.kubelet.mayRun({ ...left, name: "never" })).toBe(false);
    world.want();
    expect(world.kubelet.pods()).toEqual([]);
    await world.started(named("web"));
    expect(world.statusOf("web")).toMatchObject({ phase: "Running" });
    expect(world.statusOf("web")?.reason).toBeUndefined();
    expect(world.kubelet.mayRun(left)).toBe(false);
    const conditions = world.statusOf("web")?.conditions;
    world.renew();
    world.want(named("web"));
    const awaited = world.statusOf("web");
    expect(awaited).toMatchObject({ ...unknown, phase: "Running" });
    const ready = awaited?.conditions?.filter(({ type }) => type.endsWith("Ready"));
    expect(ready?.map(({ status }) => status)).toEqual(["Unknown", "Unknown"]);
    await world.started(named("web"));
    expect(world.statusOf("web")?.conditions).toEqual(conditions!);
  });

  test("an engine that refuses to end a container is told by an event, and asked again", async () => {
    await world.started(named("web"));
    failAt("kill", new Error("device or resource busy"), 1);
    world.want(named("web", { containers: [aContainer({ image: "other" })] }));
    await world.clock.advance(60_000);
    // The pod runs on: it is not killed.
    const failure = 'web-node1 Failed Error: cannot stop container "app": device or resource busy';
    expect(world.recorder.events).toContain(failure);
    world.engine.calls.length = 0;
    failAt("kill", new Error("device or resource busy"), 3);
    world.want();
    await world.clock.advance(60_000);
    const told = world.recorder.events.filter((line) => line.includes("FailedKillPod"));
    expect(told).toHaveLength(3);
    // Each try has the whole grace period: nothing shows that the program heard of the one before.
    expect(world.engine.calls.filter((call) => call.startsWith("kill"))).toEqual(Array(4).fill("kill app 30s"));
    expect(told[0]).toContain('Error: cannot stop container "app": device or resource busy');
    expect(world.engine.containers.size).toBe(0);
  });

  test("a cut of the event stream is a warning, an engine that stays away an error", async () => {
    await world.started(named("web"));
    const said = () => world.logger.lines.filter((line) => line.includes("engine"));
    world.engine.lose("The Docker engine ended the event stream");
    world.engine.back();
    await world.clock.advance(100);
    expect(said()).toEqual([
      "warn The Docker engine ended the event stream; the event stream is opened again",
      "info The Docker engine answers again",
    ]);
    world.engine.lose("The Docker engine ended the event stream");
    world.engine.lose("Cannot connect to the Docker engine");
    expect(said().slice(2)).toEqual([
      "warn The Docker engine ended the event stream; the event stream is opened again",
      "error Cannot connect to the Docker engine",
    ]);
  });

  test("an engine that has become slow is reported once, and when it is no longer", async () => {
    await world.started(named("web"));
    const { engine, clock } = world;
    let takesMs = 8_000;
    const list = engine.list.bind(engine);
    engine.list = async () => {
      await clock.sleep(takesMs, new AbortController().signal);
      return list();
    };
    await clock.advance(200_000);
    const said = () => world.logger.lines.filter((line) => line.includes("slow"));
    expect(said()).toEqual(["warn The Docker engine is slow: listing all containers took 8 s"]);
    takesMs = 100;
    await clock.advance(200_000);
    expect(said().slice(1)).toEqual(["info The Docker engine is no longer slow"]);
    expect(world.kubelet.runtimeError).toBeUndefined();
  });

  test("an engine that answers two of three inspections is followed again, after few of them", async () => {
    const names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    await world.started(...names.map((name) => named(name)));
    const { engine, clock } = world;
    const inspect = engine.inspect.bind(engine);
    let inspections = 0;
    engine.inspect = (id) => (++inspections % 3 === 0 ? Promise.reject(new Error("busy")) : inspect(id));
    engine.lose();
    engine.back();
    await clock.advance(20_000);
    expect(world.kubelet.runtimeError).toBeUndefined();
    expect(inspections).toBeLessThan(2 * engine.containers.size);
  });

  test("a container whose event could not be looked into is inspected after the next list", async () => {
    await world.started(named("web"));
    const { engine, clock } = world;
    const id = engine.idOf("web-node1", "app");
    const inspect = engine.inspect.bind(engine);
    engine.inspect = () => Promise.reject(new Error("busy"));
    await clock.advance(1_000);
    const startedAt = toApiTime(clock.now());
    engine.stopByHand(id);
    engine.startByHand(id);
    await clock.advance(1_000);
    engine.inspect = inspect;
    await clock.advance(61_000);
    expect(world.containerOf("web")?.state.running).toEqual({ startedAt });
  });

  test("a failing pull is reported, then its back-off, and it is tried again after that", async () => {
    const waiting = () => world.containerOf("web")?.state.waiting;
    const error = new PodStepError("ErrImagePull", "no such image", { retryAfterMs: 20_000 });
    failAt("pull app", error);
    await world.started(named("web"));
    expect(world.statusOf("web")?.phase).toBe("Pending");
    expect(waiting()).toEqual({ reason: "ErrImagePull", message: "no such image" });
    const backOff = new PodStepError("ImagePullBackOff", "Back-off pulling image", { retryAfterMs: 18_000 });
    failAt("pull app", backOff);
    await world.clock.advance(3_000);
    expect(waiting()).toEqual({ reason: "ImagePullBackOff", message: "Back-off pulling image" });
    await world.clock.advance(16_000);
    expect(world.statusOf("web")?.phase).toBe("Pending");
    await world.clock.advance(2_000);
    expect(world.statusOf("web")?.phase).toBe("Running");
  });

  test("one container that cannot be pulled does not delay the others", async () => {
    const error = new PodStepError("ErrImagePull", "no such image", { retryAfterMs: 20_000 });
    failAt("pull a", error, 99);
    await world.started(named("web", { containers: [aContainer({ name: "a" }), aContainer({ name: "b" })] }));
    expect(world.engine.running()).toContain("web-node1/b");
    expect(world.statusOf("web")?.phase).toBe("Pending");
  });

  test("a pod that the node refuses is reported once, and again when the reason changes", async () => {
    const web = named("web");
    const refuse = (reason: string, message: string) => world.rejections.set(web.metadata.uid!, { reason, message });
    const events = () => world.recorder.events.filter((event) => event.startsWith("web-node1 "));
    refuse("NodeAffinity", "Pod Predicate NodeAffinity failed");
    await world.started(web);
    world.want(web);
    expect(events()).toEqual(["web-node1 NodeAffinity Predicate NodeAffinity failed"]);
    expect(world.statusOf("web")).toMatchObject({ phase: "Failed", message: "Pod Predicate NodeAffinity failed" });
    refuse("OutOfcpu", "Pod Node didn't have enough resource: cpu");
    world.want(web);
    expect(events().at(-1)).toBe("web-node1 OutOfcpu Node didn't have enough resource: cpu");
    expect(events()).toHaveLength(2);
  });

  test("a sandbox that cannot be made is tried again with growing pauses", async () => {
    const message = "hostPath type check failed: /x is not a directory";
    failAt("sandbox", new PodStepError("FailedMount", message), 3);
    await world.started(named("web"));
    expect(world.containerOf("web")?.state.waiting).toEqual({ reason: "ContainerCreating", message });
    await world.clock.advance(3_400);
    expect(world.engine.calls).toHaveLength(3);
    await world.clock.advance(200);
    expect(world.statusOf("web")?.phase).toBe("Running");
    expect(world.recorder.events.filter((event) => event.includes("FailedMount"))).toHaveLength(3);
  });

  test("a container that was started, and cannot be inspected, is not made a second time", async () => {
    const { engine, clock } = world;
    const inspect = engine.inspect.bind(engine);
    let isLost = true;
    engine.inspect = (id) => (isLost && id.startsWith("app-") ? Promise.reject(new Error("lost")) : inspect(id));
    const lifecycle = { postStart: { exec: { command: ["true"] } } };
    await world.started(named("web", { containers: [aContainer({ lifecycle })] }));
    await clock.advance(120_000);
    const all = () => [...engine.containers.keys()].filter((id) => id.startsWith("app-"));
    expect(all()).toHaveLength(1);
    isLost = false;
    await clock.advance(10_000);
    expect(all()).toHaveLength(1);
    expect(world.containerOf("web")).toMatchObject({ restartCount: 0, state: { running: {} }, started: true });
    expect(engine.calls.filter((call) => call === "postStart app")).toHaveLength(1);
  });

  test("a container that cannot run counts as crashed", async () => {
    failAt("start app", new PodStepError("RunContainerError", "exec: no such file"), 99);
    await world.started(named("web"));
    await world.clock.advance(2_000);
    expect(world.containerOf("web")).toMatchObject({
      state: { waiting: { reason: "CrashLoopBackOff" } },
      lastState: { terminated: { reason: "ContainerCannotRun", exitCode: 127 } },
    });
  });

  test("a refused start whose response was lost has the back-off of a crash", async () => {
    failAt("start app", new Error("the connection was cut"), 99);
    await world.started(named("web"));
    // Once at once, then after 10, 20, 40 and 80 s.
    await world.clock.advance(160_000);
    expect(world.engine.calls.filter((call) => call.startsWith("start app"))).toHaveLength(6);
  });

  test.each([
    { gone: "the sandbox was removed unseen", isGone: true, sandboxes: 2, starts: 2, state: { running: {} } },
    { gone: "the engine is not well", isGone: false, sandboxes: 1, starts: 9, state: { waiting: {} } },
  ])(
    "a start that fails because $gone is not repeated without a pause",
    async ({ isGone, sandboxes, starts, state }) => {
      const { engine, clock } = world;
      engine.takesMs.set("pull app", 1_000);
      await world.started(named("web"));
      engine.takesMs.clear();
      failAt("start app", new PodStepError("RunContainerError", "No such container: x"), isGone ? 1 : 99);
      engine.isDeaf = true;
      if (isGone) engine.destroy(engine.idOf("web-node1", "POD"));
      engine.isDeaf = false;
      await clock.advance(9_000);
      const count = (what: string) => engine.calls.filter((call) => call.startsWith(what)).length;
      expect([count("sandbox#"), count("start app")]).toEqual([sandboxes, starts]);
      expect(world.containerOf("web")).toMatchObject({ restartCount: 0, state });
    },
  );

  test.each([
    { notice: "of the container, too late for the engine", of: "app", exitCode: 137, reason: "OOMKilled" },
    { notice: "of its sandbox only", of: "POD", exitCode: 137, reason: "OOMKilled" },
    { notice: "and an end of its own", of: "POD", exitCode: 1, reason: "Error" },
  ])("an OOM notice $notice: $reason", async ({ of, exitCode, reason }) => {
    await world.started(named("web", { restartPolicy: "Never" }));
    const id = world.engine.idOf("web-node1", "app");
    world.engine.exit(id, exitCode);
    world.engine.oom(of === "app" ? id : world.engine.idOf("web-node1", of));
    await world.clock.advance(100);
    expect(world.containerOf("web")?.state.terminated).toMatchObject({ exitCode, reason });
  });

  test.each([
    { end: "at once", isDeaf: false, afterMs: 0, untilMs: 100 },
    { end: "much later", isDeaf: true, afterMs: 1_000, untilMs: 60_000 },
  ])("a kill that only the kernel reports is an OOM kill too; the engine reports its end $end", async (row) => {
    await world.started(named("web", { restartPolicy: "Never" }));
    const id = world.engine.idOf("web-node1", "app");
    world.engine.isDeaf = row.isDeaf;
    world.kubelet.noteOom(id);
    await world.clock.advance(row.afterMs);
    world.engine.exit(id, 137);
    await world.clock.advance(row.untilMs);
    expect(world.containerOf("web")?.state.terminated?.reason).toBe("OOMKilled");
  });

  test("a clean-up that fails is tried again after 2 s, 4 s and so on, at most 60 s, and told once", async () => {
    await world.started(named("web"));
    failAt("tear-down", new Error("I/O error"), 100);
    world.want();
    await world.clock.advance(10_000);
    const tries = () => world.engine.calls.filter((call) => call.startsWith("tear-down")).length;
    expect(tries()).toBe(3);
    await world.clock.advance(10 * 60_000);
    expect(tries()).toBeLessThan(18);
    expect(world.logger.lines.filter((line) => line.includes("Cannot clean up"))).toHaveLength(1);
    failAt("tear-down", new Error(""), 0);
    await world.clock.advance(60_000);
    expect(world.kubelet.pods()).toEqual([]);
  });

  test("volumes that cannot be removed are tried again more and more seldom, and told once", async () => {
    failAt("sweep", new Error("I/O error"), 100);
    await world.started(named("web"));
    await world.clock.advance(10 * 60_000);
    expect(world.engine.sweeps.length).toBeWithin(5, 16);
    const told = () => world.logger.lines.filter((line) => line.includes("Cannot remove unused volumes"));
    expect(told()).toHaveLength(1);
    failAt("sweep", new Error(""), 0);
    await world.clock.advance(60_000);
    const { length } = world.engine.sweeps;
    await world.clock.advance(10 * 60_000);
    expect(world.engine.sweeps).toHaveLength(length);
  });

  test("a sandbox that was seen before its start, and then could not be inspected, is not made a second time", async () => {
    const inspect = world.engine.inspect.bind(world.engine);
    let calls = 0;
    world.engine.inspect = async (id) => {
      const found = await inspect(id);
      if (++calls === 2) throw new Error("the connection was closed");
      const isEarly = calls === 1 && found?.kind === "sandbox";
      return isEarly ? { ...found, sandbox: { ...found.sandbox, state: "notready" } } : found;
    };
    await world.started(named("web"));
    await world.clock.advance(5_000);
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(world.engine.calls.filter((call) => call.startsWith("sandbox"))).toHaveLength(1);
  });

  test("a sandbox that was seen before its start is replaced, not doubled, when its start is answered by an error", async () => {
    const [inspect, start] = [world.engine.inspect.bind(world.engine), world.engine.startSandbox.bind(world.engine)];
    let calls = 0;
    world.engine.inspect = async (id) => {
      const found = await inspect(id);
      const isEarly = ++calls === 1 && found?.kind === "sandbox";
      return isEarly ? { ...found, sandbox: { ...found.sandbox, state: "notready" } } : found;
    };
    world.engine.startSandbox = async (request) => {
      const started = await start(request);
      if (request.attempt > 0) return started;
      throw new Error("the connection was closed");
    };
    await world.started(named("web"));
    await world.clock.advance(5_000);
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    const wanted = ["sandbox#0 web-node1", "stop-sandbox sandbox-0", "sandbox#1 web-node1", "remove-sandbox sandbox-0"];
    expect(world.engine.calls.filter((call) => call.includes("sandbox"))).toEqual(wanted);
  });

  test("an OOM verdict outlives the process, and ends with its container", async () => {
    await world.started(named("web", { restartPolicy: "Never" }));
    const id = world.engine.idOf("web-node1", "app");
    world.engine.exit(id, 137);
    world.engine.oom(id);
    await world.clock.advance(100);
    const reasonOf = () => world.containerOf("web")?.state.terminated?.reason;
    expect(reasonOf()).toBe("OOMKilled");
    world.completions.clear();
    await world.restarted(named("web", { restartPolicy: "Never" }));
    expect(reasonOf()).toBe("OOMKilled");
    expect(world.oomVerdicts).toEqual([id]);
    world.engine.destroy(id);
    await world.clock.advance(100);
    expect(world.oomVerdicts).toEqual([]);
  });

  test("a failed postStart hook kills its container only", async () => {
    const lifecycle = { postStart: { exec: { command: ["false"] } } };
    failAt("postStart a", new Error("exit 1"));
    await world.started(podWithHook(lifecycle));
    await world.clock.advance(100);
    expect(world.recorder.events).toContain("web-node1 Killing FailedPostStartHook");
    expect(world.engine.find("web-node1", "a")).toMatchObject({ container: { restartCount: 1, state: "running" } });
    expect(world.engine.find("web-node1", "b")).toMatchObject({ container: { restartCount: 0 } });
  });

  test("a container whose postStart hook failed is not ready for the time it takes to end", async () => {
    world.engine.stopTakesMs = 5_000;
    failAt("postStart app", new Error("exit 1"));
    const lifecycle = { postStart: { exec: { command: ["false"] } } };
    await world.started(named("web", { containers: [aContainer({ lifecycle })] }));
    await world.clock.advance(1_000);
    expect(world.statusOf("web")?.containerStatuses).toMatchObject([
      { state: { running: {} }, ready: false, started: false },
    ]);
  });

  test("a container whose predecessor died of its postStart hook is started when its own hook has ended", async () => {
    failAt("postStart app", new Error("exit 1"));
    const lifecycle = { postStart: { exec: { command: ["false"] } } };
    await world.started(named("web", { containers: [aContainer({ lifecycle })] }));
    await world.clock.advance(60_000);
    expect(world.containerOf("web")).toMatchObject({ restartCount: 1, ready: true, started: true });
  });

  test("a postStart hook delays its own container only", async () => {
    const lifecycle = { postStart: { exec: { command: ["sleep", "12"] } } };
    const hook = Promise.withResolvers<void>();
    world.engine.runPostStart = () => hook.promise;
    await world.started(podWithHook(lifecycle));
    expect(world.statusOf("web")).toMatchObject({
      phase: "Running",
      containerStatuses: [
        { name: "a", state: { running: {} }, ready: false, started: false },
        { name: "b", state: { running: {} }, ready: true, started: true },
      ],
    });
    hook.resolve();
    await world.clock.advance(10);
    expect(world.containerOf("web")).toMatchObject({ ready: true, started: true });
  });
});

describe("an evicted pod", () => {
  const why = { reason: "Evicted", message: "The node was low on resource: memory. " };
  /** Starts the pods, and evicts `web`. */
  async function evicted(...pods: ReturnType<typeof named>[]): Promise<void> {
    await world.started(...pods);
    world.kubelet.evict("uid-web", why, 0);
    await world.clock.advance(1_000);
  }

  test("is stopped and removed, and its status says why", async () => {
    await evicted(named("web"), named("db"));
    expect(world.engine.running()).toEqual(["db-node1/POD", "db-node1/app"]);
    expect(world.statusOf("web")).toMatchObject({ phase: "Failed", ...why });
    expect(world.statusOf("db")?.phase).toBe("Running");
    await world.clock.advance(600_000);
    expect(world.statusOf("web")?.phase).toBe("Failed");
  });

  test("runs, and is shown so, until its eviction is stored, or for a second", async () => {
    for (const [name, isStored] of [
      ["web", true],
      ["db", false],
    ] as const) {
      await world.started(named("web"), named("db"));
      const { promise, resolve } = Promise.withResolvers<void>();
      world.disk = promise;
      world.kubelet.evict(`uid-${name}`, why, 0);
      world.kubelet.refresh();
      await world.clock.advance(900);
      expect([world.statusOf(name)?.phase, world.engine.running()]).toMatchObject([
        "Running",
        { length: isStored ? 4 : 2 },
      ]);
      if (isStored) resolve();
      await world.clock.advance(isStored ? 50 : 1_000);
      expect(world.statusOf(name)).toMatchObject({ phase: "Failed", ...why });
    }
  });

  test("admitted again while it still stops: starts when it is gone", async () => {
    await world.started(named("web"));
    world.engine.stopTakesMs = 5_000;
    world.kubelet.evict("uid-web", why, 30);
    await world.clock.advance(1_000);
    world.kubelet.readmit(["uid-web"]);
    await world.clock.advance(20_000);
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(world.engine.calls.filter((call) => call.startsWith("start app"))).toHaveLength(2);
  });

  test("stays stopped, with its status and the start of the pod, through our own restart", async () => {
    await world.started(named("web"), named("db"));
    const { startTime } = world.statusOf("web")!;
    await world.clock.advance(60_000);
    world.kubelet.evict("uid-web", why, 0);
    await world.clock.advance(0);
    expect(world.statusOf("web")).toEqual({ phase: "Failed", ...why, startTime });
    await world.clock.advance(1_000);
    const before = world.statusOf("web");
    expect(before?.startTime).toBe(startTime);
    await world.clock.advance(60_000);
    await world.restarted(named("web"), named("db"));
    await world.clock.advance(60_000);
    expect(world.engine.running()).toEqual(["db-node1/POD", "db-node1/app"]);
    expect(world.statusOf("web")).toEqual(before!);
    world.kubelet.readmit(["uid-web"]);
    await world.clock.advance(1_000);
    expect(world.statusOf("web")?.phase).toBe("Running");
    await world.restarted(named("web"), named("db"));
    expect(world.statusOf("web")?.phase).toBe("Running");
  });

  test("the process ends before it is stopped: the next process stops it", async () => {
    await world.started(named("web"));
    world.engine.stopTakesMs = 5_000;
    world.kubelet.evict("uid-web", why, 30);
    await world.clock.advance(0);
    world.renew();
    world.want(named("web"));
    // Before the engine has answered.
    expect(world.statusOf("web")).toMatchObject({ phase: "Failed", ...why });
    await world.started(named("web"));
    await world.clock.advance(60_000);
    expect(world.engine.running()).toEqual([]);
    expect(world.statusOf("web")).toMatchObject({ phase: "Failed", ...why });
  });

  test("is not forgotten while a source was not read yet, but when it was edited meanwhile", async () => {
    await evicted(named("web"));
    world.renew();
    world.kubelet.start();
    world.kubelet.setDesired(stateOf([]), false);
    await world.clock.advance(1_000);
    expect([...world.kubelet.evicted.keys()]).toEqual(["uid-web"]);
    world.kubelet.setDesired(stateOf([named("web")], {}, { revision: "another" }), false);
    await world.clock.advance(1_000);
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(world.evictions).toEqual([]);
  });

  test("that is no longer wanted is forgotten", async () => {
    await world.started(named("web"));
    world.kubelet.evict("uid-web", why, 0);
    world.want();
    await world.clock.advance(1_000);
    expect([...world.kubelet.evicted]).toEqual([]);
  });
});

test("--maximum-dead-containers: surplus dead containers are removed, but not those that a restart depends on", async () => {
  await world.started(named("a", { restartPolicy: "Never" }), named("b", { restartPolicy: "Never" }), named("c"));
  for (const name of ["a", "b"]) {
    world.engine.exit(world.engine.idOf(`${name}-node1`, "app"), 0);
    await world.clock.advance(1_000);
  }
  await world.exit("c", "app", 1, 10);
  await world.exit("c", "app", 1, 1_000);
  expect(world.kubelet.removeSurplusDead({ maxInAll: 0, minTtlMs: 0 })).toBe(2);
  await world.clock.advance(1_000);
  const dead = [...world.engine.containers.values()].filter((it) => it.kind === "container");
  expect(dead.map(({ pod }) => pod.name)).toEqual(["c-node1"]);
  expect([world.statusOf("a")?.phase, world.statusOf("b")?.phase]).toEqual(["Succeeded", "Succeeded"]);
});
