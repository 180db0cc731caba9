import { beforeEach, describe, expect, test } from "bun:test";
import type { Pod } from "../../src/api/pod.ts";
import { Kubelet } from "../../src/kubelet/kubelet.ts";
import type { Completion, WantedPod } from "../../src/kubelet/wanted-pod.ts";
import type { DesiredPod } from "../../src/model/desired-pod.ts";
import { PodStepError } from "../../src/model/pod-services.ts";
import type { ContainerProbeState } from "../../src/plan/pod-plan.ts";
import { aContainer, aPod, NO_LIMITS } from "../support/builders.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { FakeEngine } from "../support/fake-engine.ts";
import { RecordingLogger, RecordingRecorder } from "../support/recording-logger.ts";

let clock: FakeClock;
let engine: FakeEngine;
let logger: RecordingLogger;
let recorder: RecordingRecorder;
let completions: Map<string, Completion>;
let probes: Map<string, Map<string, ContainerProbeState>>;
let kubelet: Kubelet;
let desired: Pod[];

/** The image names the revision of a container; labels and the like change nothing. */
const toWanted = ({ pod }: DesiredPod): WantedPod => ({
  pod,
  objects: { configMaps: new Map(), secrets: new Map() },
  hashes: {
    sandbox: `sandbox ${pod.spec.hostname ?? ""}`,
    containers: new Map([...(pod.spec.initContainers ?? []), ...pod.spec.containers].map((c) => [c.name, c.image!])),
    limits: new Map(
      pod.spec.containers.map((c) => [c.name, { ...NO_LIMITS, Memory: Number(c.resources.limits?.memory ?? 0) }]),
    ),
  },
  qosClass: "BestEffort",
  options: { maxBackOffMs: 300_000, maxDeadPerContainer: 1, minDeadTtlMs: 0 },
  runRevision: JSON.stringify(pod.spec),
  objectsRevision: "",
});

function newKubelet(): Kubelet {
  return new Kubelet({
    clock,
    logger,
    recorder,
    runtime: engine,
    services: engine,
    probes: {
      update: () => {},
      remove: () => {},
      states: (uid) => probes.get(uid) ?? new Map(),
    },
    hostIp: () => "10.0.0.1",
    imageNames: new Map(),
    learnImage: async () => {},
    toWanted,
    admit: () => new Map(),
    conflict: (a, b) => a.metadata.labels?.port !== undefined && a.metadata.labels.port === b.metadata.labels?.port,
    completions: {
      get: (uid) => completions.get(uid),
      set: (uid, completion) => (completion ? completions.set(uid, completion) : completions.delete(uid)),
    },
    relistPeriodMs: 60_000,
  });
}

const named = (name: string, spec: Partial<Pod["spec"]> = {}, metadata: Partial<Pod["metadata"]> = {}) =>
  aPod(spec, { name: `${name}-node1`, uid: `uid-${name}`, ...metadata });

function want(...pods: Pod[]): void {
  desired = pods;
  kubelet.setDesired(
    {
      pods: pods.map((pod) => ({ pod, source: "file", origin: "test", revision: "" })),
      configMaps: new Map(),
      secrets: new Map(),
    },
    true,
  );
}

const statusOf = (name: string) => kubelet.pods().find((pod) => pod.metadata.name === `${name}-node1`)?.status;

beforeEach(() => {
  clock = new FakeClock();
  engine = new FakeEngine(clock);
  logger = new RecordingLogger();
  recorder = new RecordingRecorder();
  completions = new Map();
  probes = new Map();
  kubelet = newKubelet();
});

async function started(...pods: Pod[]): Promise<void> {
  kubelet.start();
  want(...pods);
  await clock.advance(10);
}

describe("a pod", () => {
  test("starts: sandbox, then its containers in order, then it is Running", async () => {
    await started(named("web", { containers: [aContainer({ name: "b" }), aContainer({ name: "a" })] }));
    expect(engine.calls).toEqual(["sandbox#0 web-node1", "start b#0 web-node1", "start a#0 web-node1"]);
    expect(statusOf("web")).toMatchObject({ phase: "Running", podIP: "172.17.0.1", hostIP: "10.0.0.1" });
  });

  test("at rest nothing wakes up but the net", async () => {
    await started(named("web"));
    expect(clock.pendingTimers).toBe(1);
    const before = kubelet.podsRevision;
    await clock.advance(600_000);
    expect(kubelet.podsRevision).toBe(before);
  });

  test("nothing is done before the engine was looked at", async () => {
    want(named("web"));
    await clock.advance(10);
    expect(engine.calls).toEqual([]);
  });

  test("a container that dies starts again at once", async () => {
    await started(named("web"));
    engine.exit(engine.idOf("web-node1", "app"), 1);
    await clock.advance(1);
    expect(engine.running()).toContain("web-node1/app");
    expect(statusOf("web")?.containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 1, reason: "Error" } },
    });
  });

  test("the second crash waits ten seconds in CrashLoopBackOff", async () => {
    await started(named("web"));
    engine.exit(engine.idOf("web-node1", "app"), 1);
    await clock.advance(1);
    engine.exit(engine.idOf("web-node1", "app"), 1);
    await clock.advance(9_000);
    expect(statusOf("web")).toMatchObject({ phase: "Running" });
    expect(statusOf("web")?.containerStatuses?.[0]?.state.waiting?.reason).toBe("CrashLoopBackOff");
    expect(recorder.events).toContain("web-node1 BackOff Back-off restarting failed container");
    await clock.advance(1_100);
    expect(statusOf("web")?.containerStatuses?.[0]?.restartCount).toBe(2);
  });

  test("docker restart goes unnoticed, docker stop does not [oracle C 47]", async () => {
    await started(named("web"), named("db"));
    const [web, db] = [engine.idOf("web-node1", "app"), engine.idOf("db-node1", "app")];
    engine.stopByHand(web);
    engine.stopByHand(db);
    await clock.advance(100);
    engine.startByHand(web);
    await clock.advance(1_000);
    expect(engine.idOf("web-node1", "app")).toBe(web);
    expect(statusOf("web")?.containerStatuses?.[0]).toMatchObject({ restartCount: 0, lastState: {} });
    expect(statusOf("db")?.containerStatuses?.[0]).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 0, reason: "Completed" } },
    });
  });

  test.each(["Always", "Never"])(
    "docker rm -f is no crash, policy %s: attempt 0 again [oracle C 67]",
    async (policy) => {
      await started(named("web", { restartPolicy: policy }));
      const first = engine.idOf("web-node1", "app");
      engine.beginRemoval(first);
      await clock.advance(100);
      engine.destroy(first);
      await clock.advance(100);
      expect(engine.idOf("web-node1", "app")).not.toBe(first);
      expect(statusOf("web")).toMatchObject({
        phase: "Running",
        containerStatuses: [{ restartCount: 0, lastState: {} }],
      });
    },
  );

  test("a removal that the engine does not finish is a crash after all", async () => {
    await started(named("web"));
    const first = engine.idOf("web-node1", "app");
    engine.beginRemoval(first);
    await clock.advance(6_000);
    expect(statusOf("web")).toMatchObject({ phase: "Running", containerStatuses: [{ restartCount: 1 }] });
  });

  test("an old attempt that somebody starts by hand is stopped again", async () => {
    await started(named("web"));
    const first = engine.idOf("web-node1", "app");
    engine.exit(first, 1);
    await clock.advance(10);
    engine.startByHand(first);
    await clock.advance(1_000);
    expect(engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(engine.find("web-node1", "app")).toMatchObject({ container: { restartCount: 1, state: "running" } });
  });

  test.each([
    { what: "crashes at once, always", exitCode: 1, runsMs: 20 },
    { what: "ends well at once, always", exitCode: 0, runsMs: 20 },
    { what: "crashes after 3 s, always", exitCode: 1, runsMs: 3_000 },
  ])("back-off of what $what: 0, 10, 20, 40, 80, 160, 300, 300 s [oracle C 75]", async ({ exitCode, runsMs }) => {
    await started(named("web"));
    const delays: number[] = [];
    const messages: (string | undefined)[] = [];
    for (let crash = 0; crash < 8; crash++) {
      await clock.advance(runsMs);
      const id = engine.idOf("web-node1", "app");
      engine.exit(id, exitCode);
      const endedAtMs = clock.monotonicMs();
      await clock.advance(1);
      messages.push(statusOf("web")?.containerStatuses?.[0]?.state.waiting?.message);
      while (engine.idOf("web-node1", "app") === id) await clock.advance(100);
      delays.push(Math.round((clock.monotonicMs() - endedAtMs) / 1000));
    }
    expect(delays).toEqual([0, 10, 20, 40, 80, 160, 300, 300]);
    const tail = "restarting failed container=app pod=web-node1_default(uid-web)";
    expect(messages).toEqual([
      undefined,
      ...["10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"].map((delay) => `back-off ${delay} ${tail}`),
    ]);
  });

  test("back-off of an init container [oracle C 75]", async () => {
    await started(named("web", { initContainers: [aContainer({ name: "i" })] }));
    const delays: number[] = [];
    for (let crash = 0; crash < 5; crash++) {
      const id = engine.idOf("web-node1", "i");
      engine.exit(id, 1);
      const endedAtMs = clock.monotonicMs();
      while (engine.idOf("web-node1", "i") === id) await clock.advance(100);
      delays.push(Math.round((clock.monotonicMs() - endedAtMs) / 1000));
    }
    expect(delays).toEqual([0, 10, 20, 40, 80]);
    expect(statusOf("web")).toMatchObject({
      phase: "Pending",
      containerStatuses: [{ state: { waiting: { reason: "PodInitializing" } } }],
    });
  });

  test("a missed event is caught by the net", async () => {
    await started(named("web"));
    engine.isDeaf = true;
    engine.exit(engine.idOf("web-node1", "app"), 1);
    await clock.advance(59_000);
    expect(engine.running()).not.toContain("web-node1/app");
    await clock.advance(2_000);
    expect(engine.running()).toContain("web-node1/app");
  });

  test("docker rm -f of everything brings everything back", async () => {
    await started(named("web"));
    engine.destroy(engine.idOf("web-node1", "app"));
    engine.destroy(engine.idOf("web-node1", "POD"));
    await clock.advance(10);
    expect(engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
  });

  test("a killed sandbox takes the containers with it into a new one", async () => {
    await started(named("web"));
    engine.exit(engine.idOf("web-node1", "POD"), 137);
    await clock.advance(100);
    expect(engine.calls).toContain("sandbox#1 web-node1");
    expect(statusOf("web")).toMatchObject({ phase: "Running", containerStatuses: [{ restartCount: 1 }] });
  });

  test("an edit restarts only what it touches", async () => {
    await started(named("web", { containers: [aContainer({ name: "a" }), aContainer({ name: "b" })] }));
    const b = engine.idOf("web-node1", "b");
    want(named("web", { containers: [aContainer({ name: "a", image: "new" }), aContainer({ name: "b" })] }));
    await clock.advance(100);
    expect(engine.idOf("web-node1", "b")).toBe(b);
    expect(engine.find("web-node1", "a")).toMatchObject({ container: { image: "new", state: "running" } });
    expect(recorder.events).toContain("web-node1 Killing Container a definition changed, will be restarted");
  });

  test("an edit of its memory takes effect in the running container [M13]", async () => {
    await started(named("web"));
    engine.calls.length = 0;
    want(named("web", { containers: [aContainer({ resources: { limits: { memory: "4096" } } })] }));
    await clock.advance(100);
    expect(engine.calls).toEqual(["resize app"]);
    expect(engine.find("web-node1", "app")).toMatchObject({ container: { limits: { Memory: 4096 }, restartCount: 0 } });
  });

  test("a resize that the engine refuses is told and tried again later", async () => {
    await started(named("web"));
    engine.failures.set("resize", { error: new Error("too small"), times: 1 });
    want(named("web", { containers: [aContainer({ resources: { limits: { memory: "4096" } } })] }));
    await clock.advance(5_000);
    expect(engine.calls.filter((call) => call === "resize app")).toHaveLength(1);
    expect(recorder.events).toContain("web-node1 ResizeFailed Cannot change the resources of container app: too small");
    await clock.advance(6_000);
    expect(engine.find("web-node1", "app")).toMatchObject({ container: { limits: { Memory: 4096 } } });
  });

  test("an edit of a label restarts nothing and shows", async () => {
    await started(named("web"));
    engine.calls.length = 0;
    want(named("web", {}, { labels: { tier: "front" } }));
    await clock.advance(100);
    expect(engine.calls).toEqual([]);
    expect(kubelet.pods()[0]?.metadata.labels).toEqual({ tier: "front" });
  });

  test("an edit during a long kill counts once that is over", async () => {
    engine.stopTakesMs = 5_000;
    await started(named("web"));
    want(named("web", { containers: [aContainer({ image: "second" })] }));
    await clock.advance(1_000);
    want(named("web", { containers: [aContainer({ image: "third" })] }));
    await clock.advance(10_000);
    expect(engine.find("web-node1", "app")).toMatchObject({ container: { image: "third", state: "running" } });
    expect(engine.calls.filter((call) => call.startsWith("kill"))).toHaveLength(1);
  });

  test("volumes that an edit took out go when nothing of the old revision runs any more", async () => {
    engine.stopTakesMs = 5_000;
    const two = (image: string) =>
      named("web", { containers: [aContainer({ name: "a", image }), aContainer({ name: "b" })] });
    const wantRevision = (pod: Pod, objectsRevision: string) =>
      kubelet
        .worker("uid-web")!
        .want({ ...toWanted({ pod, source: "file", origin: "", revision: "" }), objectsRevision });
    await started(two("old"));
    expect(engine.sweeps).toEqual([]);
    engine.failures.set("sweep", { error: new Error("in use"), times: 1 });
    wantRevision(two("new"), "2");
    await clock.advance(4_000);
    expect(engine.sweeps).toEqual([]);
    await clock.advance(2_000);
    expect(engine.sweeps).toEqual(["web-node1"]);
    await clock.advance(8_000);
    expect(engine.sweeps).toHaveLength(1);
    await clock.advance(20_000);
    expect(engine.sweeps).toHaveLength(2);
  });

  test("its files are written again when the objects it uses change", async () => {
    await started(named("web"));
    expect(engine.calls).not.toContain("refresh web-node1");
    const pod = named("web");
    kubelet
      .worker("uid-web")!
      .want({ ...toWanted({ pod, source: "file", origin: "", revision: "" }), objectsRevision: "2" });
    await clock.advance(10);
    expect(engine.calls).toContain("refresh web-node1");
  });
});

describe("removal", () => {
  test("kills, stops the sandbox, removes everything and cleans up", async () => {
    await started(named("web"));
    engine.calls.length = 0;
    want();
    await clock.advance(100);
    expect(engine.calls.map((call) => call.split(" ")[0])).toEqual([
      "kill",
      "stop-sandbox",
      "remove",
      "remove-sandbox",
      "tear-down",
    ]);
    expect(engine.containers.size).toBe(0);
    expect(kubelet.pods()).toEqual([]);
  });

  test("wanted again meanwhile: the old one ends first, then a new one starts", async () => {
    engine.stopTakesMs = 5_000;
    await started(named("web"));
    want();
    await clock.advance(100);
    want(named("web"));
    await clock.advance(1_000);
    expect(engine.calls.filter((call) => call.startsWith("sandbox"))).toHaveLength(1);
    expect(statusOf("web")).toMatchObject({ phase: "Pending", message: 'waits until pod "default/web-node1" is gone' });
    await clock.advance(10_000);
    expect(engine.calls.indexOf("tear-down web-node1")).toBeLessThan(engine.calls.lastIndexOf("sandbox#0 web-node1"));
    expect(statusOf("web")?.phase).toBe("Running");
  });

  test("a successor of the same name with another uid waits for its predecessor [U16]", async () => {
    engine.stopTakesMs = 5_000;
    await started(named("web"));
    want(named("web", {}, { uid: "other" }));
    await clock.advance(1_000);
    expect(engine.calls.filter((call) => call.startsWith("sandbox"))).toHaveLength(1);
    await clock.advance(10_000);
    expect(statusOf("web")?.phase).toBe("Running");
  });

  test("a pod that wants the host port of one that leaves waits for it", async () => {
    engine.stopTakesMs = 5_000;
    await started(named("old", {}, { labels: { port: "80" } }));
    want(named("new", {}, { labels: { port: "80" } }), named("free"));
    await clock.advance(1_000);
    expect(statusOf("free")?.phase).toBe("Running");
    expect(statusOf("new")?.phase).toBe("Pending");
    await clock.advance(10_000);
    expect(statusOf("new")?.phase).toBe("Running");
  });

  test("orphans of this node go, once every source has spoken [U17]", async () => {
    await started(named("web"), named("lost"));
    kubelet.stop();
    kubelet = newKubelet();
    kubelet.start();
    const pods = [{ pod: named("web"), source: "file", origin: "", revision: "" } as const];
    kubelet.setDesired({ pods, configMaps: new Map(), secrets: new Map() }, false);
    await clock.advance(100);
    expect(engine.running()).toContain("lost-node1/app");
    want(named("web"));
    await clock.advance(100);
    expect(engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
  });
});

describe("our own restart", () => {
  test("adopts what runs: nothing is created, nothing restarted [S181]", async () => {
    await started(named("web"), named("db"));
    kubelet.stop();
    engine.calls.length = 0;
    kubelet = newKubelet();
    await started(...desired);
    // Only files are brought up to date: what they are made from may have changed meanwhile.
    expect(engine.calls).toEqual(["refresh web-node1", "refresh db-node1"]);
    expect(statusOf("web")).toMatchObject({ phase: "Running", containerStatuses: [{ restartCount: 0 }] });
  });

  test("at any step of a start: the next start converges without a twin", async () => {
    for (let step = 0; step < 12; step++) {
      clock = new FakeClock();
      engine = new FakeEngine(clock);
      kubelet = newKubelet();
      kubelet.start();
      want(named("web", { initContainers: [aContainer({ name: "init", restartPolicy: "Always" })] }));
      for (let tick = 0; tick < step; tick++) await Promise.resolve();
      kubelet.stop();
      kubelet = newKubelet();
      await started(...desired);
      await clock.advance(15_000);
      expect(engine.running()).toEqual(["web-node1/POD", "web-node1/app", "web-node1/init"]);
    }
  });

  test("a crash loop goes on where it was", async () => {
    await started(named("web"));
    engine.exit(engine.idOf("web-node1", "app"), 1);
    await clock.advance(1);
    engine.exit(engine.idOf("web-node1", "app"), 1);
    kubelet.stop();
    kubelet = newKubelet();
    await started(...desired);
    expect(statusOf("web")?.containerStatuses?.[0]?.state.waiting?.reason).toBe("CrashLoopBackOff");
  });

  test("a finished pod stays finished, even when its container was removed [U15]", async () => {
    const job = named("job", { restartPolicy: "Never" });
    await started(job);
    engine.exit(engine.idOf("job-node1", "app"), 0);
    await clock.advance(100);
    expect(statusOf("job")?.phase).toBe("Succeeded");
    kubelet.stop();
    engine.destroy(engine.idOf("job-node1", "app"));
    engine.destroy(engine.idOf("job-node1", "POD"));
    engine.calls.length = 0;
    kubelet = newKubelet();
    await started(job);
    expect(engine.calls).toEqual([]);
    expect(statusOf("job")).toMatchObject({
      phase: "Succeeded",
      containerStatuses: [{ state: { terminated: { exitCode: 0 } } }],
    });
  });

  test("what is removed while its last words are read, or just after, is not forgotten [oracle C 85]", async () => {
    const job = named("job", { restartPolicy: "Never" });
    await started(job);
    const words = Promise.withResolvers<string>();
    engine.readTerminationMessage = () => words.promise;
    engine.exit(engine.idOf("job-node1", "app"), 0);
    await clock.advance(100);
    words.resolve("");
    await clock.advance(100);
    const ended = statusOf("job");
    expect(completions.get("uid-job")?.status).toEqual(ended!);
    engine.destroy(engine.idOf("job-node1", "app"));
    await clock.advance(100);
    expect(statusOf("job")).toEqual(ended!);
    kubelet.stop();
    kubelet = newKubelet();
    await started(job);
    expect(statusOf("job")).toMatchObject({ phase: "Succeeded", podIP: ended!.podIP! });
    expect(statusOf("job")?.containerStatuses).toEqual(ended!.containerStatuses!);
  });

  test("but an edit runs it again", async () => {
    await started(named("job", { restartPolicy: "Never" }));
    engine.exit(engine.idOf("job-node1", "app"), 0);
    await clock.advance(100);
    want(named("job", { restartPolicy: "Never", containers: [aContainer({ image: "new" })] }));
    await clock.advance(100);
    expect(statusOf("job")?.phase).toBe("Running");
    expect(completions.size).toBe(0);
  });
});

describe("trouble", () => {
  test("an unreachable engine never means that all pods are gone", async () => {
    await started(named("web"));
    engine.calls.length = 0;
    engine.lose();
    await clock.advance(300_000);
    expect(engine.calls).toEqual([]);
    expect(statusOf("web")?.phase).toBe("Running");
    expect(kubelet.trouble).toContain("does not answer");
    engine.back();
    await clock.advance(100);
    expect(kubelet.trouble).toBeUndefined();
    expect(engine.calls).toEqual([]);
  });

  test("what died meanwhile is seen when the engine is back", async () => {
    await started(named("web"));
    engine.lose();
    engine.exit(engine.idOf("web-node1", "app"), 137);
    engine.back();
    await clock.advance(100);
    expect(engine.running()).toContain("web-node1/app");
  });

  test("a failing pull is told, then its back-off, and it is tried again when that says so [oracle B 33]", async () => {
    const waiting = () => statusOf("web")?.containerStatuses?.[0]?.state.waiting;
    const error = new PodStepError("ErrImagePull", "no such image", { retryAfterMs: 20_000 });
    engine.failures.set("pull app", { error, times: 1 });
    await started(named("web"));
    expect(statusOf("web")?.phase).toBe("Pending");
    expect(waiting()).toEqual({ reason: "ErrImagePull", message: "no such image" });
    const backOff = new PodStepError("ImagePullBackOff", "Back-off pulling image", { retryAfterMs: 18_000 });
    engine.failures.set("pull app", { error: backOff, times: 1 });
    await clock.advance(3_000);
    expect(waiting()).toEqual({ reason: "ImagePullBackOff", message: "Back-off pulling image" });
    await clock.advance(16_000);
    expect(statusOf("web")?.phase).toBe("Pending");
    await clock.advance(2_000);
    expect(statusOf("web")?.phase).toBe("Running");
  });

  test("one container that cannot be pulled does not hold up the others", async () => {
    const error = new PodStepError("ErrImagePull", "no such image", { retryAfterMs: 20_000 });
    engine.failures.set("pull a", { error, times: 99 });
    await started(named("web", { containers: [aContainer({ name: "a" }), aContainer({ name: "b" })] }));
    expect(engine.running()).toContain("web-node1/b");
    expect(statusOf("web")?.phase).toBe("Pending");
  });

  test("a sandbox that cannot be made is tried again with growing pauses", async () => {
    const error = new PodStepError("FailedMount", "hostPath type check failed: /x is not a directory");
    engine.failures.set("sandbox", { error, times: 3 });
    await started(named("web"));
    await clock.advance(3_400);
    expect(engine.calls).toHaveLength(3);
    await clock.advance(200);
    expect(statusOf("web")?.phase).toBe("Running");
    expect(recorder.events.filter((event) => event.includes("FailedMount"))).toHaveLength(3);
  });

  test("a container that cannot run counts as crashed", async () => {
    engine.failures.set("start app", { error: new PodStepError("RunContainerError", "exec: no such file"), times: 99 });
    await started(named("web"));
    await clock.advance(2_000);
    expect(statusOf("web")?.containerStatuses?.[0]).toMatchObject({
      state: { waiting: { reason: "CrashLoopBackOff" } },
      lastState: { terminated: { reason: "ContainerCannotRun", exitCode: 127 } },
    });
  });

  test.each([
    { notice: "of the container, too late for the engine", of: "app", exitCode: 137, reason: "OOMKilled" },
    { notice: "of its sandbox only", of: "POD", exitCode: 137, reason: "OOMKilled" },
    { notice: "and an end of its own", of: "POD", exitCode: 1, reason: "Error" },
  ])("a notice of no memory $notice: $reason", async ({ of, exitCode, reason }) => {
    await started(named("web", { restartPolicy: "Never" }));
    const id = engine.idOf("web-node1", "app");
    engine.exit(id, exitCode);
    engine.oom(of === "app" ? id : engine.idOf("web-node1", of));
    await clock.advance(100);
    expect(statusOf("web")?.containerStatuses?.[0]?.state.terminated).toMatchObject({ exitCode, reason });
  });

  test("a failed postStart hook kills its container only", async () => {
    const lifecycle = { postStart: { exec: { command: ["false"] } } };
    engine.failures.set("postStart a", { error: new Error("exit 1"), times: 1 });
    await started(named("web", { containers: [aContainer({ name: "a", lifecycle }), aContainer({ name: "b" })] }));
    await clock.advance(100);
    expect(recorder.events).toContain("web-node1 Killing FailedPostStartHook");
    expect(engine.find("web-node1", "a")).toMatchObject({ container: { restartCount: 1, state: "running" } });
    expect(engine.find("web-node1", "b")).toMatchObject({ container: { restartCount: 0 } });
  });

  test("a postStart hook holds up its own container only", async () => {
    const lifecycle = { postStart: { exec: { command: ["sleep", "12"] } } };
    const hook = Promise.withResolvers<void>();
    engine.runPostStart = () => hook.promise;
    await started(named("web", { containers: [aContainer({ name: "a", lifecycle }), aContainer({ name: "b" })] }));
    expect(statusOf("web")).toMatchObject({
      phase: "Running",
      containerStatuses: [
        { name: "a", state: { running: {} }, ready: false, started: false },
        { name: "b", state: { running: {} }, ready: true, started: true },
      ],
    });
    hook.resolve();
    await clock.advance(10);
    expect(statusOf("web")?.containerStatuses?.[0]).toMatchObject({ ready: true, started: true });
  });

  test("who waits for a sandbox or a volume is told for what", async () => {
    const message = 'MountVolume.SetUp failed for volume "v" : hostPath type check failed: /x is not a directory';
    engine.failures.set("sandbox", { error: new PodStepError("FailedMount", message), times: 1 });
    await started(named("web"));
    expect(statusOf("web")).toMatchObject({
      phase: "Pending",
      containerStatuses: [{ state: { waiting: { reason: "ContainerCreating", message } } }],
    });
    await clock.advance(1_000);
    expect(statusOf("web")?.phase).toBe("Running");
  });

  test("a failed liveness probe restarts the container", async () => {
    await started(named("web"));
    const containerId = engine.idOf("web-node1", "app");
    probes.set("uid-web", new Map([["app", { containerId, liveness: "failure", started: true, ready: true }]]));
    kubelet.worker("uid-web")!.wake();
    await clock.advance(100);
    expect(statusOf("web")?.containerStatuses?.[0]).toMatchObject({ restartCount: 1 });
  });
});

describe("an evicted pod", () => {
  const why = { reason: "Evicted", message: "The node was low on resource: memory. " };

  test("is stopped and removed, and its status tells why", async () => {
    await started(named("web"), named("db"));
    kubelet.evict("uid-web", why, 0);
    await clock.advance(1_000);
    expect(engine.running()).toEqual(["db-node1/POD", "db-node1/app"]);
    expect(statusOf("web")).toMatchObject({ phase: "Failed", ...why });
    expect(statusOf("db")?.phase).toBe("Running");
    await clock.advance(600_000);
    expect(statusOf("web")?.phase).toBe("Failed");
  });

  test("runs again when it is admitted again", async () => {
    await started(named("web"));
    kubelet.evict("uid-web", why, 0);
    await clock.advance(1_000);
    kubelet.readmit(["uid-web"]);
    await clock.advance(1_000);
    expect(engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(statusOf("web")?.phase).toBe("Running");
  });

  test("admitted again while it still stops: starts when it is gone", async () => {
    await started(named("web"));
    engine.stopTakesMs = 5_000;
    kubelet.evict("uid-web", why, 30);
    await clock.advance(1_000);
    kubelet.readmit(["uid-web"]);
    await clock.advance(20_000);
    expect(engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(engine.calls.filter((call) => call.startsWith("start app"))).toHaveLength(2);
  });

  test("that is no longer wanted is forgotten", async () => {
    await started(named("web"));
    kubelet.evict("uid-web", why, 0);
    want();
    await clock.advance(1_000);
    expect([...kubelet.evicted]).toEqual([]);
  });
});

test("--maximum-dead-containers: the net removes what is too many, but not what a restart rests on [S056]", async () => {
  await started(named("a", { restartPolicy: "Never" }), named("b", { restartPolicy: "Never" }), named("c"));
  for (const name of ["a", "b"]) {
    engine.exit(engine.idOf(`${name}-node1`, "app"), 0);
    await clock.advance(1_000);
  }
  engine.exit(engine.idOf("c-node1", "app"), 1);
  await clock.advance(10);
  engine.exit(engine.idOf("c-node1", "app"), 1);
  await clock.advance(1_000);
  expect(kubelet.removeSurplusDead({ maxInAll: 0, minTtlMs: 0 })).toBe(2);
  await clock.advance(1_000);
  const dead = [...engine.containers.values()].filter((it) => it.kind === "container");
  expect(dead.map(({ pod }) => pod.name)).toEqual(["c-node1"]);
  expect([statusOf("a")?.phase, statusOf("b")?.phase]).toEqual(["Succeeded", "Succeeded"]);
});
