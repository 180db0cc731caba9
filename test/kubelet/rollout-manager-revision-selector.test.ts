import { beforeEach, expect, test } from "bun:test";
import { aContainer } from "../support/builders.ts";
import { KubeletWorld, named } from "../support/kubelet-world.ts";

let world: KubeletWorld;
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
  world.renew();
  await world.started(named("web"));
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
