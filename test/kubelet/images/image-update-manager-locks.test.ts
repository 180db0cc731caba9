import { expect, test } from "bun:test";
import type { Pod } from "../../../src/base/api/pod.ts";
import { LockFiles } from "../../../src/kubelet/images/image-update-manager.ts";
import { FakeClock } from "../../support/fake-clock.ts";

const pod = { metadata: { name: "web", uid: "u" } } as Pod;
const settle = () => Bun.sleep(0);

function aLock(isPresent: boolean) {
  const clock = new FakeClock();
  const world = { isPresent, failure: undefined as Error | undefined, searches: 0, unlocked: 0 };
  const find = async () => {
    world.searches++;
    const found = world.isPresent;
    await settle();
    if (world.failure) throw world.failure;
    return found;
  };
  const locks = new LockFiles(find, clock, () => world.unlocked++);
  return { clock, world, ask: () => locks.isLocked(pod, "data/lock"), locks };
}

test("a lock counts as present until the search has an answer", async () => {
  const { world, ask } = aLock(false);
  expect(ask()).toBe(true);
  await settle();
  await settle();
  expect(world).toMatchObject({ unlocked: 1 });
  expect(ask()).toBe(false);
  expect(world.searches).toBe(1);
});

test("a removed lock is noticed when it is asked for right after a search that found it", async () => {
  const { world, ask } = aLock(true);
  ask();
  await settle();
  await settle();
  expect(world).toMatchObject({ unlocked: 0, searches: 1 });
  world.isPresent = false;
  expect(ask()).toBe(true);
  await settle();
  await settle();
  expect(world.unlocked).toBe(1);
  expect(ask()).toBe(false);
});

test("a lock that is removed during a search is searched for again when it is asked for meanwhile", async () => {
  const { world, ask } = aLock(true);
  ask();
  world.isPresent = false;
  ask();
  for (let turn = 0; turn < 5; turn++) await settle();
  expect(world).toMatchObject({ unlocked: 1, searches: 2 });
});

test("a file system that fails is left alone for ten seconds, and counts as locked", async () => {
  const { clock, world, ask } = aLock(false);
  world.failure = new Error("no answer");
  ask();
  await settle();
  await settle();
  expect(ask()).toBe(true);
  expect(world.searches).toBe(1);
  world.failure = undefined;
  await clock.advance(10_001);
  expect(ask()).toBe(true);
  await settle();
  await settle();
  expect(ask()).toBe(false);
});

test("pods that are gone are forgotten", async () => {
  const { world, ask, locks } = aLock(false);
  ask();
  await settle();
  await settle();
  locks.prune(new Set());
  expect(ask()).toBe(true);
  expect(world.searches).toBe(2);
});
