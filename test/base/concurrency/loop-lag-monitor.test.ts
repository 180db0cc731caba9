import { expect, test } from "bun:test";
import { LoopLagMonitor } from "../../../src/base/concurrency/loop-lag-monitor.ts";
import { FakeClock } from "../../support/fake-clock.ts";

test("nothing is armed while no window is open", async () => {
  const clock = new FakeClock();
  const monitor = new LoopLagMonitor(clock);
  expect(clock.pendingTimers).toBe(0);
  const close = monitor.openWindow();
  await clock.advance(1000);
  expect(clock.pendingTimers).toBe(1);
  expect(close()).toBe(0);
  expect(clock.pendingTimers).toBe(0);
});

test("a stall is seen by every window that contains it, and by no other", async () => {
  const clock = new FakeClock();
  const monitor = new LoopLagMonitor(clock);
  const early = monitor.openWindow();
  const around = monitor.openWindow();
  await clock.advance(100);
  expect(early()).toBe(0);
  clock.stall(3000);
  await clock.advance(0);
  const late = monitor.openWindow();
  await clock.advance(100);
  expect(around()).toBeGreaterThan(2900);
  expect(late()).toBe(0);
});

test("a stall counts although its tick has not run yet", () => {
  const clock = new FakeClock();
  const close = new LoopLagMonitor(clock).openWindow();
  clock.stall(2000);
  expect(close()).toBe(1950);
});

test("lateness of other timers counts too", () => {
  const monitor = new LoopLagMonitor(new FakeClock());
  const close = monitor.openWindow();
  monitor.observe(700);
  expect(close()).toBe(700);
});
