import { beforeEach, describe, expect, test } from "bun:test";
import type { Pod } from "../../src/base/api/pod.ts";
import { aContainer } from "../support/builders.ts";
import { KubeletWorld, named, stateOf } from "../support/kubelet-world.ts";
import { aMetrics, samplesOf } from "../support/metrics.ts";

let world: KubeletWorld;

beforeEach(() => {
  world = new KubeletWorld();
});

test("after a change of the node's name a pod of a manifest starts when its predecessor is gone", async () => {
  const before = named("web");
  await world.started({ ...before, metadata: { ...before.metadata, name: "web-old", uid: "old" } });
  world.formerNodeNames = ["old"];
  world.renew();
  world.engine.calls.length = 0;
  world.want(named("web"));
  world.kubelet.start();
  await world.clock.advance(60_000);
  const { calls } = world.engine;
  expect(calls.indexOf("sandbox#0 web-node1")).toBeGreaterThan(calls.indexOf("remove-sandbox sandbox-0"));
  expect(world.engine.running()).toContain("web-node1/app");
});

describe("a pod", () => {
  test("starts: sandbox, then its containers in order, then it is Running", async () => {
    await world.started(named("web", { containers: [aContainer({ name: "b" }), aContainer({ name: "a" })] }));
    expect(world.engine.calls).toEqual(["sandbox#0 web-node1", "start b#0 web-node1", "start a#0 web-node1"]);
    expect(world.statusOf("web")).toMatchObject({ phase: "Running", podIP: "172.17.0.1", hostIP: "10.0.0.1" });
  });

  test("starts its containers in the order of its spec, also while an image is pulled", async () => {
    world.engine.takesMs.set("pull b", 60_000);
    const pod = named("web", { containers: ["b", "a", "c"].map((name) => aContainer({ name })) });
    await world.started(pod);
    expect(world.engine.calls).toEqual(["sandbox#0 web-node1"]);
    await world.clock.advance(61_000);
    expect(world.engine.calls.slice(1)).toEqual(["start b#0 web-node1", "start a#0 web-node1", "start c#0 web-node1"]);
    // A restart waits for no container that comes after it in the spec.
    world.engine.takesMs.delete("pull b");
    world.engine.takesMs.set("pull c", 60_000);
    for (const name of ["c", "b"]) world.engine.exit(world.engine.idOf("web-node1", name), 1);
    await world.clock.advance(15_000);
    expect(world.engine.calls.slice(4)).toEqual(["start b#1 web-node1"]);
  });

  test("at rest no timer is set but that of the periodic list", async () => {
    await world.started(named("web"));
    expect(world.clock.pendingTimers).toBe(1);
    const before = world.kubelet.pods();
    await world.clock.advance(600_000);
    expect(world.kubelet.pods()).toBe(before);
  });

  test("nothing is done before the containers of the engine were listed", async () => {
    world.want(named("web"));
    await world.clock.advance(10);
    expect(world.engine.calls).toEqual([]);
  });

  test("is listed as soon as it is desired, also before the containers of the engine were listed", () => {
    expect(world.kubelet.pods()).toEqual([]);
    world.want(named("web"));
    expect(world.kubelet.pods()).toHaveLength(1);
  });

  test("a change whose event was missed is found by the periodic list", async () => {
    await world.started(named("web"));
    world.engine.isDeaf = true;
    await world.exit("web", "app", 1, 59_000);
    expect(world.engine.running()).not.toContain("web-node1/app");
    await world.clock.advance(2_000);
    expect(world.engine.running()).toContain("web-node1/app");
  });

  test("what docker rm -f removed is created again, and not asked for", async () => {
    await world.started(named("web"));
    const removed = ["app", "POD"].map((name) => world.engine.idOf("web-node1", name));
    world.engine.inspected.length = 0;
    for (const id of removed) world.engine.destroy(id);
    await world.clock.advance(10);
    expect(world.engine.running()).toEqual(["web-node1/POD", "web-node1/app"]);
    expect(world.engine.inspected.filter((id) => removed.includes(id))).toEqual([]);
  });

  test("an orphan goes only when the source that described it was read", async () => {
    const desire = (pods: readonly Pod[], sources: readonly string[], sourceId?: string) =>
      world.kubelet.setDesired(
        stateOf(pods, { completeSources: new Set(sources) }, sourceId === undefined ? {} : { sourceId }),
        true,
      );
    world.kubelet.start();
    desire([named("web"), named("api")], ["s1"], "s1");
    await world.clock.advance(1_000);
    world.renew();
    world.kubelet.start();
    desire([], ["s2"]);
    await world.clock.advance(1_000);
    expect(world.engine.running().toSorted()).toEqual([
      "api-node1/POD",
      "api-node1/app",
      "web-node1/POD",
      "web-node1/app",
    ]);
    // One warning for both.
    expect(world.logger.lines.filter((line) => line.includes("keeps running unsupervised"))).toHaveLength(1);
    desire([], ["s1", "s2"]);
    await world.clock.advance(20_000);
    expect(world.engine.running()).toEqual([]);
  });

  test("a killed sandbox takes the containers with it into a new one", async () => {
    await world.started(named("web"));
    await world.exit("web", "POD", 137, 100);
    expect(world.engine.calls).toContain("sandbox#1 web-node1");
    expect(world.statusOf("web")).toMatchObject({ phase: "Running", containerStatuses: [{ restartCount: 1 }] });
  });
});

describe("work is counted", () => {
  const counts = () => {
    const { containersPerPod, podWorkerStartDuration, podStartDuration, podWorkerDuration } = world.metrics;
    return {
      added: [containersPerPod, podWorkerStartDuration].map((metric) => samplesOf(metric).at(-1)),
      started: samplesOf(podStartDuration).at(-1),
      work: samplesOf(podWorkerDuration),
    };
  };
  const worked = (type: string, seconds = 0) => [
    `_sum{operation_type="${type}"} ${seconds}`,
    `_count{operation_type="${type}"} 1`,
  ];

  test("for a new pod, an edit, and a restart; not for an end", async () => {
    await world.started(named("web"));
    const added = ["_count 1", "_count 1"];
    expect(counts()).toEqual({ added, started: "_count 1", work: worked("create") });
    world.want(named("web", { containers: [aContainer({ image: "busybox:2" })] }));
    await world.clock.advance(5_000);
    await world.exit("web", "app", 1, 60_000);
    world.want();
    await world.clock.advance(5_000);
    const work = [...worked("create"), ...worked("update", 0.01), ...worked("sync")];
    expect(counts()).toEqual({ added, started: "_count 1", work });
  });

  test("a pod that runs already is new to this process, and has not started with it", async () => {
    await world.started(named("web"));
    world.metrics = aMetrics();
    await world.restarted(named("web"));
    expect(counts()).toEqual({ added: ["_count 1", "_count 1"], started: "_count 0", work: worked("create") });
  });

  test("the lists of all containers", async () => {
    await world.started(named("web"));
    await world.clock.advance(60_000);
    const { plegRelistDuration, plegRelistInterval } = world.metrics;
    expect([plegRelistDuration, plegRelistInterval].flatMap(samplesOf)).toEqual([
      "_sum 0",
      "_count 2",
      "_sum 60",
      "_count 1",
    ]);
  });
});

describe("removal", () => {
  test("kills, stops the sandbox, removes everything and cleans up", async () => {
    await world.started(named("web"));
    world.engine.calls.length = 0;
    world.want();
    await world.clock.advance(100);
    expect(world.engine.calls.map((call) => call.split(" ")[0])).toEqual([
      "kill",
      "stop-sandbox",
      "remove",
      "remove-sandbox",
      "tear-down",
    ]);
    expect(world.engine.containers.size).toBe(0);
    expect(world.kubelet.pods()).toEqual([]);
  });

  test("wanted again meanwhile: the old one ends first, then a new one starts", async () => {
    world.engine.stopTakesMs = 5_000;
    await world.started(named("web"));
    world.want();
    await world.clock.advance(100);
    world.want(named("web"));
    await world.clock.advance(1_000);
    expect(world.engine.calls.filter((call) => call.startsWith("sandbox"))).toHaveLength(1);
    expect(world.statusOf("web")).toMatchObject({
      phase: "Pending",
      message: 'waits until pod "default/web-node1" is gone',
    });
    await world.clock.advance(10_000);
    expect(world.engine.calls.indexOf("tear-down web-node1")).toBeLessThan(
      world.engine.calls.lastIndexOf("sandbox#0 web-node1"),
    );
    expect(world.statusOf("web")?.phase).toBe("Running");
  });

  test("a successor of the same name with another uid waits for its predecessor", async () => {
    world.engine.stopTakesMs = 5_000;
    await world.started(named("web"));
    world.want(named("web", {}, { uid: "other" }));
    await world.clock.advance(1_000);
    expect(world.engine.calls.filter((call) => call.startsWith("sandbox"))).toHaveLength(1);
    await world.clock.advance(10_000);
    expect(world.statusOf("web")?.phase).toBe("Running");
  });

  test("a pod that wants the host port of one that leaves waits for it", async () => {
    world.engine.stopTakesMs = 5_000;
    const containers = [aContainer({ ports: [{ containerPort: 80, hostPort: 80, protocol: "TCP" }] })];
    await world.started(named("old", { containers }));
    world.want(named("new", { containers }), named("free"));
    await world.clock.advance(1_000);
    expect(world.statusOf("free")?.phase).toBe("Running");
    expect(world.statusOf("new")?.phase).toBe("Pending");
    await world.clock.advance(10_000);
    expect(world.statusOf("new")?.phase).toBe("Running");
  });
});

const terminating = () => world.kubelet.pods().filter(({ metadata }) => metadata.deletionTimestamp);

test("a deleted pod stays listed, with its deletion, until its containers are gone", async () => {
  await world.started(named("web", { terminationGracePeriodSeconds: 20 }), named("db"));
  world.engine.stopTakesMs = 15_000;
  const deletedAt = world.clock.now().getTime();
  world.want(named("db"));
  await world.clock.advance(10_000);

  expect(world.kubelet.pods().map(({ metadata }) => metadata.name)).toEqual(["db-node1", "web-node1"]);
  expect(terminating()).toMatchObject([
    {
      metadata: {
        name: "web-node1",
        deletionTimestamp: `${new Date(deletedAt + 20_000).toISOString().slice(0, 19)}Z`,
        deletionGracePeriodSeconds: 20,
        annotations: { "kubernetes.io/config.seen": expect.stringMatching(/^\d/) },
      },
      status: { phase: "Running", containerStatuses: [{ name: "app", state: { running: {} } }] },
    },
  ]);
  await world.clock.advance(6_000);
  expect(world.kubelet.pods().map(({ metadata }) => metadata.name)).toEqual(["db-node1"]);
});

test.each([3, 60])("a source may delete with a grace period of its own, shorter or longer: %d s", async (seconds) => {
  await world.started(named("web", { terminationGracePeriodSeconds: 30 }));
  world.delete("uid-web", seconds);
  await world.clock.advance(10);
  expect(world.engine.calls).toContain(`kill app ${seconds}s`);
});
