import { describe, expect, test } from "bun:test";
import { Reachability } from "../../../src/cluster/client/reachability.ts";
import { FakeClock } from "../../support/fake-clock.ts";

function aWait(ms: number) {
  const clock = new FakeClock();
  const reachability = new Reachability(clock, () => 0.5);
  const ends: [number, boolean][] = [];
  const cancel = reachability.schedule(ms, (isEarly) => ends.push([clock.monotonicMs(), isEarly]));
  return { clock, reachability, ends, cancel };
}

describe("a wait for the API server", () => {
  test("ends after its time while the server is unreachable", async () => {
    const { clock, reachability, ends } = aWait(30_000);
    reachability.noteFailure("connection refused");
    await clock.advance(60_000);
    expect(ends).toEqual([[30_000, false]]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("ends soon after the server has answered again, once", async () => {
    const { clock, reachability, ends } = aWait(30_000);
    reachability.noteFailure("connection refused");
    await clock.advance(4_000);
    reachability.noteResponse();
    await clock.advance(60_000);
    expect(ends).toEqual([[4_500, true]]);
  });

  test("is not touched by answers of a server that was not away, nor when it is about to end", async () => {
    const { clock, reachability, ends } = aWait(5_000);
    reachability.noteResponse();
    await clock.advance(4_900);
    reachability.noteFailure("connection refused");
    reachability.noteResponse();
    await clock.advance(60_000);
    expect(ends).toEqual([[5_000, false]]);
  });

  test("is not ended again and again by a server that comes and goes", async () => {
    const { clock, reachability } = aWait(1);
    const early: number[] = [];
    const again = () =>
      reachability.schedule(30_000, (isEarly) => {
        if (isEarly) early.push(clock.monotonicMs());
        again();
      });
    again();
    for (let count = 0; count < 30; count++) {
      reachability.noteFailure("connection refused");
      reachability.noteResponse();
      await clock.advance(1_000);
    }
    expect(early).toHaveLength(3);
  });

  test("can be cancelled, also when it is about to end early", async () => {
    const { clock, reachability, ends, cancel } = aWait(30_000);
    reachability.noteFailure("connection refused");
    reachability.noteResponse();
    cancel();
    await clock.advance(60_000);
    expect(ends).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });

  test("a pause rejects when its signal aborts", async () => {
    const { clock, reachability } = aWait(1);
    const stop = new AbortController();
    const pause = reachability.pause(1_000, stop.signal);
    stop.abort(new Error("stopped"));
    await expect(pause).rejects.toThrow("stopped");
    await clock.advance(1);
    expect(clock.pendingTimers).toBe(0);
  });
});

test("an outage begins with its first failure, has the last reason, and ends with a response", async () => {
  const clock = new FakeClock();
  const reachability = new Reachability(clock, () => 0.5);
  expect(reachability.outage).toBeUndefined();
  const since = clock.now();
  reachability.noteFailure("connection refused");
  await clock.advance(60_000);
  reachability.noteFailure("no response in time");
  expect(reachability.outage).toEqual({ reason: "no response in time", since });
  reachability.noteResponse();
  expect(reachability.outage).toBeUndefined();
});
