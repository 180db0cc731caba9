import { expect, test } from "bun:test";
import { TimerWheel } from "../../../src/kubelet/prober/timer-wheel.ts";
import { FakeClock } from "../../support/fake-clock.ts";

test("runs each timer at the first tick that is not before its time", async () => {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock, 200);
  const ran: string[] = [];
  for (const dueMs of [0, 1, 200, 201, 399, 1000]) {
    wheel.schedule(dueMs, () => ran.push(`${dueMs}@${clock.monotonicMs()}`));
  }
  await clock.advance(2000);
  expect(ran).toEqual(["0@0", "1@200", "200@200", "201@400", "399@400", "1000@1000"]);
});

test("hundreds of timers share one timer of the clock, none waits when all are done", async () => {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock, 200);
  let ran = 0;
  for (let i = 0; i < 600; i++) wheel.schedule(i * 17, () => ran++);
  expect(clock.pendingTimers).toBe(1);
  await clock.advance(600 * 17 + 200);
  expect(ran).toBe(600);
  expect(clock.pendingTimers).toBe(0);
});

test("an earlier timer moves the wake-up forward", async () => {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock, 200);
  const ran: number[] = [];
  wheel.schedule(10_000, () => ran.push(clock.monotonicMs()));
  wheel.schedule(400, () => ran.push(clock.monotonicMs()));
  await clock.advance(10_000);
  expect(ran).toEqual([400, 10_000]);
});

test("a cancelled timer does not run, not even within its own tick; nothing stays armed for it", async () => {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock, 200);
  const ran: string[] = [];
  const cancels: (() => void)[] = [];
  wheel.schedule(100, () => {
    ran.push("first");
    for (const cancel of cancels) cancel();
  });
  cancels.push(wheel.schedule(100, () => ran.push("second")));
  cancels.push(wheel.schedule(5000, () => ran.push("third")));
  await clock.advance(200);
  expect(ran).toEqual(["first"]);
  expect(clock.pendingTimers).toBe(0);
});

test("a timer set by a timer for now runs at this very tick", async () => {
  const clock = new FakeClock();
  const wheel = new TimerWheel(clock, 200);
  const ran: number[] = [];
  wheel.schedule(200, () => {
    wheel.schedule(clock.monotonicMs(), () => ran.push(clock.monotonicMs()));
  });
  await clock.advance(200);
  expect(ran).toEqual([200]);
});
