import { beforeEach, expect, test } from "bun:test";
import { aContainer } from "../support/builders.ts";
import { KubeletWorld, named } from "../support/kubelet-world.ts";

let world: KubeletWorld;

beforeEach(() => {
  world = new KubeletWorld();
});

const onNode = { nodeName: "node1" };
const app = (image = "app:1") =>
  named(
    "app",
    { ...onNode, containers: [aContainer({ image })] },
    { annotations: { "kubelet-ts.io/depends-on": "default/db=Ready" } },
  );
const db = (image = "db:1") =>
  named("db", {
    ...onNode,
    containers: [aContainer({ image, readinessProbe: { exec: { command: ["ok"] } } as never })],
  });

/** The readiness probe of the running container of db says this. */
function setReady(isReady: boolean): void {
  const containerId = world.engine.idOf("db-node1", "app");
  world.probes.set("uid-db", new Map([["app", { containerId, started: true, ready: isReady }]]));
  world.kubelet.workers.get("uid-db")?.wake();
}

const startsOf = (name: string) => world.engine.calls.filter((call) => call.startsWith("start") && call.endsWith(name));

test("a pod starts when its dependency is Ready, and shows what it waits for", async () => {
  await world.started(app(), db());
  await world.clock.advance(5_000);
  expect(startsOf("app-node1")).toEqual([]);
  expect(world.statusOf("app")).toMatchObject({
    phase: "Pending",
    conditions: expect.arrayContaining([
      expect.objectContaining({ type: "DependenciesMet", status: "False", reason: "WaitingForDependency" }),
    ]),
    containerStatuses: [
      { state: { waiting: { reason: "WaitingForDependency", message: 'waits for pod "default/db" to be Ready' } } },
    ],
  });
  setReady(true);
  await world.clock.advance(10);
  expect(startsOf("app-node1")).toHaveLength(1);
  expect(world.recorder.events).toContain('app-node1 WaitingForDependency waits for pod "default/db" to be Ready');
});

test("a wait beyond its timeout is a warning, once, and continues", async () => {
  await world.started(app(), db());
  await world.clock.advance(1_200_000);
  const events = world.recorder.events.filter((event) => event.includes("DependencyTimeout"));
  expect(events).toEqual(['app-node1 DependencyTimeout pod "default/db" was not Ready within 5m0s; still waiting']);
  setReady(true);
  await world.clock.advance(10);
  expect(startsOf("app-node1")).toHaveLength(1);
});

test("over 20 restarts of the engine the app never starts before its database is Ready", async () => {
  await world.started(app(), db());
  setReady(true);
  await world.clock.advance(10);
  for (let restart = 0; restart < 20; restart++) {
    const before = startsOf("app-node1").length;
    world.probes.clear();
    world.engine.lose();
    for (const [id] of [...world.engine.containers]) world.engine.exit(id, 137);
    world.engine.back();
    await world.clock.advance(700_000);
    expect(world.engine.running()).toContain("db-node1/app");
    expect(startsOf("app-node1")).toHaveLength(before);
    setReady(true);
    await world.clock.advance(700_000);
    expect(world.engine.running()).toContain("app-node1/app");
  }
});

test("edits of both: the app starts again after the new database is Ready", async () => {
  await world.started(app(), db());
  setReady(true);
  await world.clock.advance(10);
  world.want(app("app:2"), db("db:2"));
  await world.clock.advance(5_000);
  expect(world.engine.find("db-node1", "app")).toMatchObject({ container: { image: "db:2", state: "running" } });
  expect(world.engine.running()).not.toContain("app-node1/app");
  setReady(true);
  await world.clock.advance(10);
  expect(world.engine.find("app-node1", "app")).toMatchObject({ container: { image: "app:2", state: "running" } });
});

test("a running app is left alone when its database is not Ready for a while", async () => {
  await world.started(app(), db());
  setReady(true);
  await world.clock.advance(10);
  setReady(false);
  await world.clock.advance(60_000);
  expect(world.engine.running()).toContain("app-node1/app");
  expect(startsOf("app-node1")).toHaveLength(1);
});

test("a dependency that does not exist is a condition and an event", async () => {
  await world.started(app());
  await world.clock.advance(10);
  expect(startsOf("app-node1")).toEqual([]);
  expect(world.recorder.events).toContain(
    'app-node1 DependencyNotFound kubelet-ts.io/depends-on: there is no pod "default/db"',
  );
});

test("pods that are removed together stop in reverse order", async () => {
  await world.started(app(), db());
  setReady(true);
  await world.clock.advance(10);
  world.engine.calls.length = 0;
  world.engine.stopTakesMs = 5_000;
  world.want();
  await world.clock.advance(20_000);
  const order = world.engine.calls.filter((call) => /^(kill|tear-down)/.test(call));
  expect(order).toEqual(["kill app 30s", "tear-down app-node1", "kill app 30s", "tear-down db-node1"]);
});

test("pods that are halted together stop in reverse order", async () => {
  await world.started(app(), db());
  setReady(true);
  await world.clock.advance(10);
  world.engine.stopTakesMs = 5_000;
  const end = { phase: "Failed" as const, reason: "Terminated" };
  void world.kubelet.halt("uid-db", end, 30);
  void world.kubelet.halt("uid-app", end, 30);
  await world.clock.advance(2_000);
  expect(world.engine.running()).toContain("db-node1/app");
  await world.clock.advance(4_000);
  expect(world.engine.running()).not.toContain("app-node1/app");
  await world.clock.advance(10_000);
  expect(world.engine.running()).toEqual([]);
});
