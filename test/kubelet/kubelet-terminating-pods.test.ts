import { beforeEach, expect, test } from "bun:test";
import { KubeletWorld, named } from "../support/kubelet-world.ts";

let world: KubeletWorld;

beforeEach(() => {
  world = new KubeletWorld();
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

test("the status of a terminating pod still follows its containers", async () => {
  const grace = { terminationGracePeriodSeconds: 20 };
  await world.started(named("web", grace));
  world.engine.stopTakesMs = 15_000;
  world.want();
  const before = world.kubelet.podsRevision;
  await world.clock.advance(1_000);
  expect(terminating()).toHaveLength(1);
  expect(world.kubelet.podsRevision).toBeGreaterThan(before - 1);
});

test("a source may delete with a grace period of its own", async () => {
  await world.started(named("web", { terminationGracePeriodSeconds: 30 }));
  world.delete("uid-web", 3);
  await world.clock.advance(10);
  expect(world.engine.calls).toContain("kill app 3s");
});

test("a grace period of the source may be longer than the pod's own", async () => {
  await world.started(named("web", { terminationGracePeriodSeconds: 5 }));
  world.delete("uid-web", 60);
  await world.clock.advance(10);
  expect(world.engine.calls).toContain("kill app 60s");
});

test("a pod that comes back under its UID waits for its terminating predecessor", async () => {
  await world.started(named("web", { terminationGracePeriodSeconds: 20 }));
  world.engine.stopTakesMs = 15_000;
  world.want();
  await world.clock.advance(10);
  world.want(named("web"));
  await world.clock.advance(10);
  expect(world.kubelet.pods()).toHaveLength(1);
  expect(world.statusOf("web")).toMatchObject({
    phase: "Pending",
    message: 'waits until pod "default/web-node1" is gone',
  });
});
