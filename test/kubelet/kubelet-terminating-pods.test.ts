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

test.each([3, 60])("a source may delete with a grace period of its own, shorter or longer: %d s", async (seconds) => {
  await world.started(named("web", { terminationGracePeriodSeconds: 30 }));
  world.delete("uid-web", seconds);
  await world.clock.advance(10);
  expect(world.engine.calls).toContain(`kill app ${seconds}s`);
});
