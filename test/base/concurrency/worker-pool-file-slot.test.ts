import { expect, test } from "bun:test";
import { FileSlot, TaskTimeoutError } from "../../../src/base/concurrency/worker-pool.ts";
import { FakeClock } from "../../support/fake-clock.ts";

test("accesses run one after the other; what one throws arrives", async () => {
  const slot = new FileSlot(new FakeClock());
  const order: string[] = [];
  const first = slot.run(async () => void order.push("first"), 1_000);
  const second = slot.run(() => Promise.reject(new Error("ENOENT")), 1_000);
  await first;
  expect(await second.catch((error: Error) => error.message)).toBe("ENOENT");
  expect(await slot.run(async () => order, 1_000)).toEqual(["first"]);
});

test("an access that hangs keeps the slot: later ones fail at their deadline and never begin", async () => {
  const clock = new FakeClock();
  const slot = new FileSlot(clock);
  const ended = Promise.withResolvers<string>();
  const hung = slot.run(() => ended.promise, 1_000).catch((error) => error);
  let begun = 0;
  const next = slot.run(async () => begun++, 1_000).catch((error) => error);
  await clock.advance(1_000);
  expect(await hung).toBeInstanceOf(TaskTimeoutError);
  expect(await next).toMatchObject({ message: "no answer within 1 s" });
  ended.resolve("late");
  expect(await slot.run(async () => "free", 1_000)).toBe("free");
  expect(begun).toBe(0);
});
