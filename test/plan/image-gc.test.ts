import { expect, test } from "bun:test";
import { computeImageGc, type ImageGcPolicy } from "../../src/plan/image-gc.ts";

const HOUR = 3_600_000;
const policy: ImageGcPolicy = {
  highThresholdPercent: 85,
  lowThresholdPercent: 80,
  minimumTtlMs: 120_000,
  maximumAgeMs: 0,
};
const disk = (availablePercent: number) => ({ capacityBytes: 1000, availableBytes: availablePercent * 10 });
/** Images of 20 bytes on a disk of 1000. @param hoursUnused by image id */
const images = (hoursUnused: Record<string, number>) =>
  Object.entries(hoursUnused).map(([id, hours]) => ({ id, sizeBytes: 20, lastUsedMs: 100 * HOUR - hours * HOUR }));

test.each([
  { when: "below the high threshold nothing goes", available: 16, there: { a: 9 }, want: [], missing: 0 },
  { when: "at the high threshold the longest unused go", available: 15, there: { a: 1, b: 9, c: 5, d: 7 }, want: ["b disk", "d disk", "c disk"], missing: 0 },
  { when: "no more than need be", available: 15, there: { a: 1, b: 9, c: 5, d: 7, e: 8 }, want: ["b disk", "e disk", "d disk"], missing: 0 },
  { when: "what was used a moment ago stays", available: 15, there: { a: 0.01, b: 9 }, want: ["b disk"], missing: 30 },
  { when: "too old goes whatever the disk", available: 90, maximumAgeMs: 6 * HOUR, there: { a: 6, b: 7 }, want: ["b age"], missing: 0 },
  { when: "what age frees need not be freed again", available: 15, maximumAgeMs: 6 * HOUR, there: { a: 1, b: 7, c: 8, d: 9 }, want: ["d age", "c age", "b age"], missing: 0 },
  { when: "a high threshold of 100 is off", available: 0, highThresholdPercent: 100, there: { a: 9 }, want: [], missing: 0 },
  { when: "thresholds of 1 and 0: everything", available: 98, highThresholdPercent: 1, lowThresholdPercent: 0, there: { a: 9 }, want: ["a disk"], missing: 0 },
] as const)("$when", ({ available, there, want, missing, when: _, ...given }) => {
  const plan = computeImageGc(images(there), disk(available), { ...policy, ...given }, 100 * HOUR);
  expect(plan.removals.map(({ id, why }) => `${id} ${why}`)).toEqual([...want]);
  expect(plan.missingBytes).toBe(missing);
}); // biome-ignore format: a table

test.each([undefined, { capacityBytes: 0, availableBytes: 0 }])(
  "a disk that cannot be asked frees nothing: %p",
  (none) => {
    expect(computeImageGc(images({ a: 9 }), none, policy, 100 * HOUR)).toEqual({
      removals: [],
      usedPercent: undefined,
      missingBytes: 0,
    });
  },
);
