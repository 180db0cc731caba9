import { beforeEach, describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { PodStepError } from "../../src/plan/waiting-reasons.ts";
import { aContainer } from "../support/builders.ts";
import { KubeletWorld, named } from "../support/kubelet-world.ts";
import { samplesOf } from "../support/metrics.ts";

let world: KubeletWorld;

const pod = (name: string, image: string, annotations: Record<string, string> = {}): Pod =>
  named(name, { nodeName: "node1", containers: [aContainer({ image })] }, { annotations });

const guarded = (image: string, more: Record<string, string> = {}) =>
  pod("web", image, { "kubelet-ts.io/rollback": "on-failure", ...more });

const imageOf = (name: string) => {
  const found = world.engine.find(`${name}-node1`, "app");
  return found?.kind === "container" && found.container.state === "running" ? found.container.image : undefined;
};

const conditionOf = (name: string, type: string) =>
  world.statusOf(name)?.conditions?.find((condition) => condition.type === type);

/** The container of a pod crashes a second after each start. */
async function crash(name: string, times: number): Promise<void> {
  for (let count = 0; count < times; count++) {
    for (let seconds = 0; imageOf(name) === undefined && seconds < 400; seconds++) await world.clock.advance(1_000);
    world.engine.exit(world.engine.idOf(`${name}-node1`, "app"), 1);
    await world.clock.advance(100);
  }
  await world.clock.advance(45_000);
}

async function start(...pods: Pod[]): Promise<void> {
  world.kubelet.start();
  world.submit(...pods);
  await world.clock.advance(20_000);
}

describe("an edit with rollback: on-failure", () => {
  beforeEach(() => {
    world = new KubeletWorld();
  });

  test("stays when its pod is Ready", async () => {
    await start(guarded("web:1"));
    world.submit(guarded("web:2"));
    await world.clock.advance(1_000_000);
    expect(imageOf("web")).toBe("web:2");
    expect(world.recorder.events.filter((event) => event.includes("RolledBack"))).toEqual([]);
  });

  test("stays also when its pod has a debug container", async () => {
    await start(guarded("web:1"));
    world.kubelet.setEphemeralContainers("uid-web", [{ ...aContainer({ name: "debug" }), targetContainerName: "app" }]);
    world.submit(guarded("web:2"));
    await world.clock.advance(1_000_000);
    expect(imageOf("web")).toBe("web:2");
  });

  test("is rolled back when the image cannot be pulled within the deadline; condition and event say so", async () => {
    await start(guarded("web:1"));
    world.engine.failures.set("pull app", { error: new PodStepError("ErrImagePull", "no such image"), times: 1000 });
    world.submit(guarded("web:2", { "kubelet-ts.io/rollback-deadline": "60s" }));
    await world.clock.advance(59_000);
    expect(imageOf("web")).toBeUndefined();
    expect(conditionOf("web", "ManifestLive")).toBeUndefined();
    await world.clock.advance(2_000);
    world.engine.failures.clear();
    await world.clock.advance(30_000);
    expect(imageOf("web")).toBe("web:1");
    const message = "revision web:2 was rolled back to web:1: the pod was not Ready within 1m0s";
    expect(world.recorder.events).toContain(`web-node1 RolledBack ${message}`);
    expect(conditionOf("web", "ManifestLive")).toMatchObject({ status: "False", reason: "RolledBack", message });
    expect(samplesOf(world.metrics.rollbacks)).toEqual(['{namespace="default",pod="web-node1"} 1']);
  });

  test("is rolled back when its container crash-loops, although it is Ready in between", async () => {
    await start(guarded("web:1"));
    world.submit(guarded("web:2"));
    await world.clock.advance(1_000);
    expect(imageOf("web")).toBe("web:2");
    await crash("web", 3);
    expect(imageOf("web")).toBe("web:1");
    expect(world.recorder.events).toContain(
      "web-node1 RolledBack revision web:2 was rolled back to web:1: container app restarted 3 times",
    );
  });

  test("stays rolled back, also after a restart of the kubelet; the next edit is tried", async () => {
    await start(guarded("web:1"));
    world.submit(guarded("web:2"));
    await world.clock.advance(1_000);
    await crash("web", 3);
    world.submit(guarded("web:2"));
    await world.clock.advance(1_000);
    expect(imageOf("web")).toBe("web:1");
    world.renew();
    await start(guarded("web:2"));
    expect(imageOf("web")).toBe("web:1");
    world.submit(guarded("web:3"));
    await world.clock.advance(60_000);
    expect(imageOf("web")).toBe("web:3");
    expect(conditionOf("web", "ManifestLive")).toBeUndefined();
  });

  test("without an earlier revision that was Ready there is nothing to roll back", async () => {
    world.kubelet.start();
    world.submit(guarded("web:1"));
    await world.clock.advance(1_000);
    await crash("web", 4);
    expect(world.engine.find("web-node1", "app")).toMatchObject({ container: { image: "web:1" } });
  });

  test("a pod without the annotation crash-loops on, and nothing is stored", async () => {
    await start(pod("web", "web:1"));
    world.submit(pod("web", "web:2"));
    await world.clock.advance(1_000);
    await crash("web", 4);
    expect(world.engine.find("web-node1", "app")).toMatchObject({ container: { image: "web:2" } });
    expect(world.rollouts).toEqual([]);
  });

  test("a pod that is removed is forgotten, and no timer is left", async () => {
    await start(guarded("web:1"));
    world.submit(guarded("web:2"));
    await world.clock.advance(1_000);
    expect(world.rollouts).toHaveLength(1);
    world.submit();
    await world.clock.advance(60_000);
    expect(world.rollouts).toEqual([]);
    expect(world.clock.pendingTimers).toBe(1);
  });
});

describe("--rollout=serial", () => {
  beforeEach(() => {
    world = new KubeletWorld({ isSerialRollout: true });
  });

  const all = (image: string) => [pod("a", image), pod("b", image), pod("c", image)];

  test("a serial rollout changes one pod at a time and stops at a failure", async () => {
    await start(...all("1"));
    world.submit(...all("2"));
    await world.clock.advance(1_000);
    expect(["a", "b", "c"].map(imageOf)).toEqual(["2", "1", "1"]);
    expect(conditionOf("b", "ManifestLive")).toMatchObject({
      reason: "RolloutPaused",
      message: 'waits until the edit of pod "default/a-node1" is Ready',
    });
    await world.clock.advance(11_000);
    expect(["a", "b", "c"].map(imageOf)).toEqual(["2", "2", "1"]);
    await crash("b", 3);
    await world.clock.advance(60_000);
    expect(imageOf("c")).toBe("1");
    expect(world.recorder.events).toContain("b-node1 RolloutFailed The edit failed: container app restarted 3 times");
    expect(conditionOf("c", "ManifestLive")?.message).toBe(
      'stopped: the edit of pod "default/b-node1" failed: container app restarted 3 times',
    );
    world.submit(pod("a", "2"), pod("b", "3"), pod("c", "2"));
    await world.clock.advance(120_000);
    expect(["a", "b", "c"].map(imageOf)).toEqual(["2", "3", "2"]);
  });

  test("a rollout that stopped stays stopped over a restart of the kubelet; edits made meanwhile wait their turn", async () => {
    await start(...all("1"));
    world.submit(...all("2"));
    await world.clock.advance(12_000);
    await crash("b", 3);
    expect(["a", "c"].map(imageOf)).toEqual(["2", "1"]);
    world.renew();
    await start(pod("a", "3"), pod("b", "2"), pod("c", "2"));
    expect(["a", "c"].map(imageOf)).toEqual(["3", "1"]);
    expect(conditionOf("c", "ManifestLive")?.reason).toBe("RolloutPaused");
  });

  test("new pods and removals do not wait", async () => {
    await start(...all("1"));
    world.submit(pod("a", "2"), pod("b", "2"), pod("d", "1"));
    await world.clock.advance(5_000);
    expect(["a", "b", "c", "d"].map(imageOf)).toEqual(["2", "1", undefined, "1"]);
  });
});

describe("ephemeral containers", () => {
  const debug = { ...aContainer({ name: "debug" }), targetContainerName: "app" };
  beforeEach(async () => {
    world = new KubeletWorld();
    await world.started(named("web"));
    world.engine.calls.length = 0;
  });

  const starts = () => world.engine.calls.filter((call) => call.startsWith("start"));

  test("a container added to a running pod starts once, in the process namespace of its target", async () => {
    world.kubelet.setEphemeralContainers("uid-web", [debug]);
    await world.clock.advance(100);
    expect(starts()).toEqual(["start debug#0 web-node1"]);
    expect(world.engine.requests.at(-1)?.targetId).toBe(world.engine.idOf("web-node1", "app"));
    expect(world.kubelet.pods()[0]?.spec.ephemeralContainers).toMatchObject([{ name: "debug" }]);
    expect(world.statusOf("web")).toMatchObject({
      phase: "Running",
      ephemeralContainerStatuses: [{ name: "debug", ready: false, restartCount: 0, state: { running: {} } }],
    });
    await world.exit("web", "debug", 3, 60_000);
    expect(starts()).toHaveLength(1);
    const [status] = world.statusOf("web")?.ephemeralContainerStatuses ?? [];
    expect(status?.state).toMatchObject({ terminated: { exitCode: 3, reason: "Error" } });
    expect(status).not.toHaveProperty("started");
  });

  test("it waits for a target that does not run", async () => {
    world.kubelet.setEphemeralContainers("uid-web", [{ ...debug, targetContainerName: "other" }]);
    await world.clock.advance(100);
    expect(world.statusOf("web")?.ephemeralContainerStatuses?.[0]?.state.waiting).toEqual({
      reason: "CreateContainerConfigError",
      message: 'unable to find target container "other"',
    });
    expect(world.engine.find("web-node1", "debug")).toBeUndefined();
  });

  test("a restart of the kubelet and an edit of the pod keep it, its deletion does not", async () => {
    world.kubelet.setEphemeralContainers("uid-web", [debug]);
    await world.clock.advance(100);
    await world.restarted(named("web"));
    world.want(named("web", {}, { labels: { tier: "front" } }));
    await world.clock.advance(100);
    expect(world.engine.find("web-node1", "debug")).toMatchObject({ container: { state: "running" } });
    expect(starts()).toHaveLength(1);
    world.want();
    await world.clock.advance(60_000);
    world.want();
    await world.clock.advance(0);
    expect(world.engine.find("web-node1", "debug")).toBeUndefined();
    expect(world.ephemeralContainers).toEqual([]);
  });
});
