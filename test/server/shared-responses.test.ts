import { expect, test } from "bun:test";
import { jsonResponse } from "../../src/server/request-handler.ts";
import { LaneFullError, SharedResponses, WorkLane } from "../../src/server/shared-responses.ts";
import { FakeClock } from "../support/fake-clock.ts";

const STAYS = new AbortController().signal;

test("one answer serves all who ask at the same time, and later ones for as long as it is good", async () => {
  const clock = new FakeClock();
  const shared = new SharedResponses(clock);
  let made = 0;
  const make = async () => jsonResponse(String(++made));
  const answers = await Promise.all(Array.from({ length: 100 }, () => shared.get("q", 1_000, STAYS, make)));
  expect(new Set(answers).size).toBe(1);
  await clock.advance(999);
  expect((await shared.get("q", 1_000, STAYS, make)).body).toBe("1");
  await clock.advance(1);
  expect((await shared.get("q", 1_000, STAYS, make)).body).toBe("2");
  await clock.advance(2_000);
  expect(clock.pendingTimers).toBe(0);
});

test("an answer without an age is shared only while it is made, and a failure is not kept", async () => {
  const shared = new SharedResponses(new FakeClock());
  let made = 0;
  const make = async () => jsonResponse(String(++made));
  await shared.get("q", 0, STAYS, make);
  expect((await shared.get("q", 0, STAYS, make)).body).toBe("2");
  const failing = async () => {
    throw new Error("broken");
  };
  await expect(shared.get("r", 1_000, STAYS, failing)).rejects.toThrow("broken");
  expect((await shared.get("r", 1_000, STAYS, make)).status).toBe(200);
});

test("too many different questions at a time are answered with 503", async () => {
  const shared = new SharedResponses(new FakeClock());
  const { promise, resolve } = Promise.withResolvers<void>();
  const make = async () => {
    await promise;
    return jsonResponse("1");
  };
  const answers = Array.from({ length: 65 }, (_, index) => shared.get(`q${index}`, 0, STAYS, make));
  expect(await answers[64]).toMatchObject({ status: 503, headers: { "Retry-After": "1" } });
  resolve();
  expect((await answers[0])!.status).toBe(200);
});

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
  expect((await lane.collect(numbers(), STAYS)).length).toBe(5_000);
});
