import { expect, test } from "bun:test";
import { Capacities } from "../../src/stats/capacities.ts";
import type { FsCapacity } from "../../src/stats/disk-usage.ts";
import { FakeClock } from "../support/fake-clock.ts";

const of = (usedBytes: number): FsCapacity => ({
  capacityBytes: 100,
  usedBytes,
  availableBytes: 100 - usedBytes,
  inodes: 0,
  inodesFree: 0,
});

/** A file system whose answers are given by hand. */
function aWorld() {
  const clock = new FakeClock("2026-11-22T05:00:00Z");
  const asked: PromiseWithResolvers<FsCapacity | undefined>[] = [];
  const measure = () => {
    const next = Promise.withResolvers<FsCapacity | undefined>();
    asked.push(next);
    return next.promise;
  };
  let atOnce = 0;
  const capacities = new Capacities(clock, measure, () => {
    atOnce++;
    return of(1);
  });
  return { clock, asked, capacities, atOnce: () => atOnce };
}

test("a new path is read at once, later a thread is asked", async () => {
  const { clock, asked, capacities, atOnce } = aWorld();
  expect(capacities.last("/a")?.usedBytes).toBe(1);
  await clock.advance(10_000);
  const refreshed = capacities.refresh(["/a"]);
  asked[0]?.resolve(of(2));
  await refreshed;
  expect(capacities.last("/a")?.usedBytes).toBe(2);
  expect([atOnce(), asked.length]).toEqual([1, 1]);
});

test("a file system that hangs is waited for a second, asked once, and unknown after a minute", async () => {
  const { clock, asked, capacities, atOnce } = aWorld();
  capacities.last("/a");
  await clock.advance(10_000);
  let isDone = false;
  void capacities.refresh(["/a"]).then(() => {
    isDone = true;
  });
  await clock.advance(500);
  expect(isDone).toBe(false);
  await clock.advance(500);
  expect(isDone).toBe(true);
  expect(capacities.last("/a")?.usedBytes).toBe(1);
  await clock.advance(60_000);
  expect(capacities.last("/a")).toBeUndefined();
  expect([atOnce(), asked.length]).toEqual([1, 1]);
  asked[0]?.resolve(of(3));
  await clock.advance(0);
  expect(capacities.last("/a")?.usedBytes).toBe(3);
});

test("figures that nothing has asked for during hours are shown until the new ones are there", async () => {
  const { clock, asked, capacities } = aWorld();
  capacities.last("/a");
  await clock.advance(7_200_000);
  expect([capacities.last("/a")?.usedBytes, capacities.last("/a")?.usedBytes]).toEqual([1, 1]);
  asked[0]?.resolve(of(2));
  await clock.advance(0);
  expect(capacities.last("/a")?.usedBytes).toBe(2);
});

test("one request without an answer does not hide the figures; a minute without one does", async () => {
  const { clock, asked, capacities } = aWorld();
  capacities.last("/a");
  for (const [secondsLater, used] of [
    [30, 1],
    [40, undefined],
  ] as const) {
    await clock.advance(secondsLater * 1000);
    capacities.last("/a");
    asked.at(-1)?.resolve(undefined);
    await clock.advance(0);
    expect({ secondsLater, used: capacities.last("/a")?.usedBytes }).toEqual({ secondsLater, used });
  }
});
