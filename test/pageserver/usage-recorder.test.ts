import { expect, test } from "bun:test";
import type { Summary } from "../../src/api/stats-summary.ts";
import { UsageRecorder } from "../../src/pageserver/usage-recorder.ts";

const time = "";
const summary = (cores: number, rxBytes: number, pods: readonly string[]): Summary => ({
  node: {
    nodeName: "n",
    startTime: time,
    cpu: { time, usageNanoCores: cores * 1e9 },
    memory: { time, workingSetBytes: 100 },
  },
  pods: pods.map((uid) => ({
    podRef: { name: uid, namespace: "default", uid },
    startTime: time,
    containers: [],
    cpu: { time, usageNanoCores: cores * 1e9 },
    memory: { time, workingSetBytes: 7 },
    network: { time, name: "eth0", rxBytes, txBytes: 0, interfaces: [] },
    "ephemeral-storage": { time, usedBytes: 5 },
  })),
});

test("rates come from counters; a counter that goes back starts again", () => {
  const usage = new UsageRecorder();
  usage.add(summary(0.25, 1000, ["a"]), 10_000);
  usage.add(summary(0.5, 3000, ["a"]), 20_000);
  usage.add(summary(0.5, 100, ["a"]), 30_000);
  expect(usage.history("a", "10m", 30_000)).toEqual({
    times: [10_000, 20_000, 30_000],
    cpuCores: [0.25, 0.5, 0.5],
    memoryBytes: [7, 7, 7],
    receivedBytes: [null, 200, null],
    sentBytes: [null, 0, 0],
    diskBytes: [5, 5, 5],
  });
  expect(usage.history("", "10m", 30_000).memoryBytes).toEqual([100, 100, 100]);
});

test("a pod has no values for the time before it, nor after it is gone", () => {
  const usage = new UsageRecorder();
  usage.add(summary(1, 0, ["a"]), 1000);
  usage.add(summary(1, 0, ["a", "b"]), 2000);
  expect(usage.recent(undefined, 2000).pods).toEqual({
    a: { cpuCores: [1, 1], memoryBytes: [7, 7] },
    b: { cpuCores: [null, 1], memoryBytes: [7, 7].map((value, index) => (index === 0 ? null : value)) },
  });
  usage.retain(["b"]);
  expect(Object.keys(usage.recent(undefined, 2000).pods)).toEqual(["b"]);
  expect(usage.history("a", "10m", 2000).cpuCores).toEqual([null, null]);
});

test("a day is kept at two minutes, whatever the pace", () => {
  const usage = new UsageRecorder();
  const day = 86_400_000;
  for (let now = 10_000; now <= 2 * day; now += 10_000) usage.add(summary(1, 0, ["a"]), now);
  const { times } = usage.history("a", "24h", 2 * day);
  expect(times.length).toBe(720);
  expect(times.every((value, index) => index === 0 || value - times[index - 1]! === 120_000)).toBe(true);
  expect(usage.history("a", "1h", 2 * day).times.length).toBe(360);
});

test("a later process continues the history", () => {
  const usage = new UsageRecorder();
  usage.add(summary(0.25, 0, ["a"]), 1_000_000);
  usage.add(summary(0.5, 0, ["a", "b"]), 1_010_000);
  const later = new UsageRecorder();
  later.restore(usage.save());
  later.add(summary(0.75, 0, ["a"]), 1_200_000);
  expect(later.history("a", "1h", 1_200_000).cpuCores).toEqual([0.25, 0.5, 0.75]);
  expect(later.history("b", "1h", 1_200_000).cpuCores).toEqual([null, 0.5, null]);
  expect(later.history("a", "24h", 1_200_000).cpuCores).toEqual([0.25, 0.75]);
});

test.each([
  ["nothing", (_: Uint8Array) => new Uint8Array()],
  ["half of it", (bytes: Uint8Array) => bytes.subarray(0, bytes.length / 2)],
  ["another file", (_: Uint8Array) => Buffer.from("{}\n")],
  [
    "other sizes",
    (bytes: Uint8Array) => Buffer.from(Buffer.from(bytes).toString("latin1").replace("360", "361"), "latin1"),
  ],
])("%s is not taken over", (_, damage) => {
  const usage = new UsageRecorder();
  usage.add(summary(0.25, 0, ["a"]), 1000);
  const saved = usage.save();
  expect(() => usage.restore(damage(saved))).toThrow();
  expect(usage.history("a", "1h", 1000).cpuCores).toEqual([0.25]);
});

test("after the clock was set back the charts show the new time only, and the day continues", () => {
  const usage = new UsageRecorder();
  const day = 86_400_000;
  for (let ms = day; ms < day + 600_000; ms += 60_000) usage.add(summary(1, 0, ["a"]), ms);
  for (let ms = 60_000; ms <= 600_000; ms += 60_000) usage.add(summary(2, 0, ["a"]), ms);
  const hour = usage.history("a", "1h", 600_000);
  expect(hour.times).toEqual(hour.times.toSorted((a, b) => a - b));
  expect(new Set(hour.cpuCores)).toEqual(new Set([2]));
  expect(usage.history("a", "24h", 600_000).cpuCores.length).toBe(5);
});

test("a line ends where nothing was sampled", () => {
  const usage = new UsageRecorder();
  usage.add(summary(1, 0, ["a"]), 1_000_000);
  usage.add(summary(1, 0, ["a"]), 2_000_000);
  const { times, cpuCores } = usage.history("a", "1h", 2_000_000);
  expect([times, cpuCores]).toEqual([
    [1_000_000, 1_000_001, 2_000_000],
    [1, null, 1],
  ]);
});
