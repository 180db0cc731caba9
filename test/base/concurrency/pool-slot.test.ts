import { expect, test } from "bun:test";
import { PoolSlot } from "../../../src/base/concurrency/pool-slot.ts";
import { TaskTimeoutError } from "../../../src/base/concurrency/worker-pool.ts";
import { FakeClock } from "../../support/fake-clock.ts";

function aSlot() {
  const clock = new FakeClock();
  return { clock, slot: new PoolSlot(clock) };
}

test("work runs one after the other, and its outcome arrives", async () => {
  const { clock, slot } = aSlot();
  const log: string[] = [];
  const work = (name: string) => async () => {
    log.push(`${name} begins`);
    await Promise.resolve();
    log.push(`${name} ends`);
    return name;
  };
  const both = await Promise.all([slot.attempt(work("a"), 1_000), slot.attempt(work("b"), 1_000)]);
  expect(both).toEqual([{ value: "a" }, { value: "b" }]);
  expect(log).toEqual(["a begins", "a ends", "b begins", "b ends"]);
  const failed = await slot.attempt(async () => Promise.reject(new Error("no room")), 1_000).catch((why) => why);
  expect(failed.message).toBe("no room");
  expect(await slot.attempt(work("c"), 1_000)).toEqual({ value: "c" });
  expect(clock.pendingTimers).toBe(0);
});

test("a queue of quick work is waited for while it moves, for a second", async () => {
  const { clock, slot } = aSlot();
  let ended = 0;
  const work = async () => {
    await clock.sleep(60);
    return ++ended;
  };
  const all = Promise.all(Array.from({ length: 30 }, () => slot.attempt(work, 1_000)));
  await clock.advance(5_000);
  const outcomes = await all;
  expect(outcomes.slice(0, 16)).toEqual(Array.from({ length: 16 }, (_, index) => ({ value: index + 1 })));
  expect(outcomes.slice(17)).toEqual(Array.from({ length: 13 }, () => undefined));
  expect(clock.pendingTimers).toBe(0);
});

test("behind work that hangs nothing begins, until it comes back", async () => {
  const { clock, slot } = aSlot();
  const hang = Promise.withResolvers<void>();
  const first = slot.attempt(() => hang.promise, 1_000).catch((error: unknown) => error);
  let hasBegun = false;
  const begin = async () => {
    hasBegun = true;
  };
  const second = slot.attempt(begin, 1_000);
  await clock.advance(1_000);
  expect(await first).toBeInstanceOf(TaskTimeoutError);
  expect(await second).toBeUndefined();
  hang.resolve();
  await slot.settled();
  expect(hasBegun).toBe(false);
  expect(await slot.attempt(async () => "again", 1_000)).toEqual({ value: "again" });
});
