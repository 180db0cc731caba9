import { expect, test } from "bun:test";
import { GarbageCollector } from "../../src/apiserver/object-deleter.ts";
import { aConfigMap, anApiServer, CONFIG_MAPS } from "./support.ts";

const owner = (kind: string, uid: string, apiVersion = "apps/v1") => ({ apiVersion, kind, name: "web", uid });

/** An API server with a collector, and what it leaves of a ConfigMap with these owners. */
async function aWorld(isKnown = true, isOwn = () => true) {
  const world = anApiServer();
  const { store, registry, deleter, clock, post, names } = world;
  const deployment = {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "web", namespace: "default", uid: "alive" },
  };
  store.put("deployments.apps", deployment);
  const facts = { isKnown };
  const collector = new GarbageCollector({
    store,
    registry,
    deleter,
    disk: { wait: async () => {} },
    clock,
    isOwn,
    refresh: () => facts.isKnown,
  });
  collector.start();
  const submit = (...ownerReferences: object[]) =>
    post(CONFIG_MAPS, { ...aConfigMap("child"), metadata: { name: "child", ownerReferences } });
  const left = async (checks: number) => {
    for (let i = 0; i < checks; i++) await clock.advance(5_000);
    return await names(CONFIG_MAPS);
  };
  return { ...world, facts, collector, submit, left };
}

test.each([
  { when: "its owner never was", owners: [owner("Deployment", "gone")], left: [] },
  { when: "its owner lives", owners: [owner("Deployment", "alive")], left: ["child"] },
  {
    when: "one of its owners lives",
    owners: [owner("Deployment", "gone"), owner("Deployment", "alive"), owner("Deployment", "gone too")],
    left: ["child"],
    owned: ["alive"],
  },
  { when: "its owner's kind is not served", owners: [owner("Tenant", "x", "a.example/v1")], left: ["child"] },
  { when: "its owner is a node", owners: [owner("Node", "node1", "v1")], left: ["child"] },
])("$when: $left is left", async ({ owners, left, owned = owners.map(({ uid }) => uid) }) => {
  const world = await aWorld();
  await world.submit(...owners);
  expect(await world.left(1)).toEqual(["child"]);
  expect(await world.left(2)).toEqual([...left]);
  const owns = world.store.list("configmaps").flatMap(({ metadata }) => metadata.ownerReferences ?? []);
  expect(owns.map(({ uid }) => uid)).toEqual(left.length > 0 ? [...owned] : []);
});

test("the objects of controllers are looked through once for many changes", async () => {
  let looked = 0;
  const { store, clock } = await aWorld(true, () => {
    looked++;
    return false;
  });
  for (let i = 0; i < 100; i++) {
    const metadata = { name: `pod-${i}`, namespace: "default", ownerReferences: [owner("Deployment", "alive")] };
    store.put("pods", { apiVersion: "v1", kind: "Pod", metadata });
  }
  await clock.advance(60_000);
  expect(looked).toBe(100);
});

test("nothing is collected before all sources were read", async () => {
  const { submit, left, facts } = await aWorld(false);
  await submit(owner("Deployment", "gone"));
  expect(await left(10)).toEqual(["child"]);
  facts.isKnown = true;
  expect(await left(3)).toEqual([]);
});

test("an owner that goes with its file takes along what it owns", async () => {
  const { submit, left, store } = await aWorld();
  await submit(owner("Deployment", "alive"));
  expect(await left(3)).toEqual(["child"]);
  store.remove("deployments.apps", "default", "web");
  expect(await left(3)).toEqual([]);
});

test("nothing is collected after a stop", async () => {
  const { submit, left, collector } = await aWorld();
  await submit(owner("Deployment", "gone"));
  collector.stop();
  expect(await left(5)).toEqual(["child"]);
});
