import { expect, test } from "bun:test";
import { LaneFullError, WorkLane } from "../../src/server/shared-responses.ts";
import { FakeClock } from "../support/fake-clock.ts";

test("work is done in its order, and one piece in each turn of the event loop", async () => {
  const lane = new WorkLane(new FakeClock(), 10);
  const seen: string[] = [];
  const all = ["a", "b", "c"].map((name) => lane.run(() => seen.push(name)));
  await Promise.resolve();
  expect(seen).toEqual([]);
  await all[0];
  expect(seen).toEqual(["a"]);
  await Promise.all(all);
  expect(seen).toEqual(["a", "b", "c"]);
});

test("work beyond the limit is refused, and a failure ends only its own piece", async () => {
  const lane = new WorkLane(new FakeClock(), 2);
  const failing = lane.run(() => {
    throw new Error("broken");
  });
  const next = lane.run(() => "next");
  await expect(lane.run(() => "refused")).rejects.toBeInstanceOf(LaneFullError);
  await expect(failing).rejects.toThrow("broken");
  expect(await next).toBe("next");
  expect(await lane.run(() => "again")).toBe("again");
});

test("long work is followed by a pause, so that it gets half of the time", async () => {
  let nowMs = 0;
  const sleeps: number[] = [];
  const clock = new FakeClock();
  clock.monotonicMs = () => nowMs;
  clock.sleep = async (ms) => {
    sleeps.push(ms);
    nowMs += ms;
  };
  const lane = new WorkLane(clock, 10);
  const work = () => {
    nowMs += 150;
  };
  for (let i = 0; i < 3; i++) await lane.run(work);
  expect(sleeps).toEqual([]);
  await lane.run(work);
  // 450 ms were used; 200 ms may be used at once, and 225 came back meanwhile.
  expect(sleeps).toEqual([50]);
});

test("a long list is collected piece by piece", async () => {
  const lane = new WorkLane(new FakeClock(), 10);
  function* numbers() {
    for (let i = 0; i < 5_000; i++) yield i;
  }
  expect((await lane.collect(numbers(), new AbortController().signal)).length).toBe(5_000);
});
