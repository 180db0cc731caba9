import { expect, test } from "bun:test";
import { appendReading, type CpuReading, computeUsageNanoCores, decayLoad } from "../../src/stats/cpu-rate.ts";

/** Half a core, read at these seconds. */
const halfCore = (...seconds: number[]) =>
  seconds.reduce<CpuReading[]>(
    (kept, second) => appendReading(kept, { atMs: second * 1000, usageNanoseconds: second * 5e8 }),
    [],
  );

const times = (readings: readonly CpuReading[]) => readings.map(({ atMs }) => atMs / 1000);

test("one reading is not a rate, two are", () => {
  expect(computeUsageNanoCores(halfCore(0))).toBeUndefined();
  expect(computeUsageNanoCores(halfCore(0, 15))).toBe(500_000_000);
  expect(computeUsageNanoCores([])).toBeUndefined();
});

test("two readings within a throttling period are none", () => {
  expect(computeUsageNanoCores(halfCore(0, 0.05))).toBeUndefined();
});

test("asked each second, the rate is over the last ten and nothing older is kept", () => {
  const readings = halfCore(...Array.from({ length: 60 }, (_, second) => second));
  expect(times(readings)).toEqual([49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59]);
});

test("asked each minute, the rate is over that minute", () => {
  expect(times(halfCore(0, 60, 120))).toEqual([60, 120]);
});

test("a reading from long ago says nothing about now", () => {
  const readings = halfCore(0, 3600);
  expect(times(readings)).toEqual([3600]);
  expect(computeUsageNanoCores(readings)).toBeUndefined();
});

test("a counter that went back starts over", () => {
  const readings = appendReading(halfCore(0, 10), { atMs: 20_000, usageNanoseconds: 7 });
  expect(readings).toEqual([{ atMs: 20_000, usageNanoseconds: 7 }]);
  expect(computeUsageNanoCores(readings)).toBeUndefined();
});

test("load moves towards what there is now, half the way in 7 s", () => {
  expect(decayLoad(undefined, 0, 3)).toBe(3);
  expect(decayLoad(4, 6931, 0)).toBeCloseTo(2, 3);
  expect(decayLoad(0, 1e6, 2)).toBeCloseTo(2);
});
