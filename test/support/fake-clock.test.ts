import { expect, test } from "bun:test";
import { FakeClock } from "./fake-clock.ts";

test("runs timers in the order they are due and lets what they wake run before the next", async () => {
  const clock = new FakeClock();
  const seen: string[] = [];
  clock.schedule(20, () => seen.push(`late ${clock.monotonicMs()}`));
  void clock.sleep(10).then(async () => {
    seen.push(`woke ${clock.monotonicMs()}`);
    await clock.sleep(5);
    seen.push(`again ${clock.monotonicMs()}`);
  });
  const cancel = clock.schedule(12, () => seen.push("cancelled"));
  cancel();
  await clock.advance(19);
  expect(seen).toEqual(["woke 10", "again 15"]);
  await clock.advance(1);
  expect(seen).toEqual(["woke 10", "again 15", "late 20"]);
  expect(clock.pendingTimers).toBe(0);
});

test("an aborted sleep rejects with the reason and leaves no timer", async () => {
  const clock = new FakeClock();
  const controller = new AbortController();
  const slept = clock.sleep(1000, controller.signal).catch((error: unknown) => error);
  controller.abort("enough");
  expect(await slept).toBe("enough");
  expect(clock.pendingTimers).toBe(0);
});

test("the wall clock moves along and can jump alone", async () => {
  const clock = new FakeClock("2026-01-01T00:00:00Z");
  await clock.advance(1500);
  expect(clock.now().toISOString()).toBe("2026-01-01T00:00:01.500Z");
  clock.jump("1970-01-01T00:00:00Z");
  expect(clock.now().getTime()).toBe(0);
  expect(clock.monotonicMs()).toBe(1500);
});
