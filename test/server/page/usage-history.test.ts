import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Summary } from "../../../src/base/api/stats-summary.ts";
import { type ReplaceFile, replaceFile } from "../../../src/base/files/whole-file.ts";
import { KeptHistory, UsageRecorder } from "../../../src/server/page/usage-history.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";

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

/** A recorder of these samples: cores, received bytes and pods by time. */
function recorded(samples: Record<number, Parameters<typeof summary>>): UsageRecorder {
  const usage = new UsageRecorder();
  for (const [time, sample] of Object.entries(samples)) usage.add(summary(...sample), Number(time));
  return usage;
}

test("rates come from counters; a counter that goes back starts again", () => {
  const usage = recorded({ 10000: [0.25, 1000, ["a"]], 20000: [0.5, 3000, ["a"]], 30000: [0.5, 100, ["a"]] });
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

test("the use of the CPU is the average since the sample before, in both series", () => {
  const usage = new UsageRecorder();
  // A burst of 60 s of CPU that no sample coincides with, then a pace of ten seconds, then a new cgroup.
  const counters: [atMs: number, cpuSeconds: number][] = [
    [120_000, 0],
    [240_000, 60],
    [250_000, 65],
    [250_300, 65],
    [360_300, 72],
    [370_300, 1],
  ];
  for (const [atMs, seconds] of counters) {
    const sample = summary(0.01, 0, ["a"]);
    for (const { cpu } of [sample.node, ...sample.pods]) cpu!.usageCoreNanoSeconds = seconds * 1e9;
    usage.add(sample, atMs);
  }
  for (const uid of ["", "a"]) {
    const first = 0.01;
    const fine = [first, 0.5, 0.5, first, 0.06364, first];
    expect(usage.history(uid, "1h", 371_000).cpuCores).toEqual(fine);
    expect(usage.history(uid, "24h", 371_000).cpuCores).toEqual([first, 0.5, 0.09975]);
  }
});

test("a pod has no values for the time before it, nor after it is gone; its rates begin again when it comes back", () => {
  const usage = recorded({ 1000: [1, 0, ["a"]], 2000: [1, 0, ["b", "a"]], 3000: [1, 0, ["b"]], 4000: [1, 9, ["a"]] });
  expect(usage.recent(undefined, 4000).pods).toEqual({
    a: { cpuCores: [1, 1, null, 1], memoryBytes: [7, 7, null, 7] },
    b: { cpuCores: [null, 1, 1, null], memoryBytes: [null, 7, 7, null] },
  });
  expect(usage.history("a", "10m", 4000).receivedBytes).toEqual([null, 0, null, null]);
  expect(usage.recent(undefined, 604_000).pods).toEqual({});
  expect(Object.keys(usage.newest(undefined).pods)).toEqual(["a"]);
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
  const usage = recorded({ 1000000: [0.25, 0, ["a"]], 1010000: [0.5, 0, ["a", "b"]] });
  const later = new UsageRecorder();
  later.restore(usage.save());
  later.add(summary(0.5, 0, ["a"]), 1_060_000);
  expect(later.history("a", "24h", 1_060_000).cpuCores).toEqual([0.25]);
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
])("%s is not taken over", (_, damage) => {
  const usage = recorded({ 1000: [0.25, 0, ["a"]] });
  const saved = usage.save();
  expect(() => usage.restore(damage(saved))).toThrow();
  expect(usage.history("a", "1h", 1000).cpuCores).toEqual([0.25]);
});

const [MINUTE, HOUR, DAY] = [60_000, 3_600_000, 86_400_000];
/** Samples every minute from a time on. */
function sampleFrom(usage: UsageRecorder, startMs: number, forMs: number, cores: number): void {
  for (let ms = 0; ms < forMs; ms += MINUTE) usage.add(summary(cores, 0, ["a"]), startMs + ms);
}

test("after the clock was set back the charts show the new time only, and the day continues", () => {
  const usage = new UsageRecorder();
  sampleFrom(usage, DAY, 10 * MINUTE, 1);
  sampleFrom(usage, MINUTE, 10 * MINUTE, 2);
  const hour = usage.history("a", "1h", 10 * MINUTE);
  expect(hour.times).toEqual(hour.times.toSorted((a, b) => a - b));
  expect(new Set(hour.cpuCores)).toEqual(new Set([2]));
  expect(usage.history("a", "24h", 10 * MINUTE).cpuCores.length).toBe(5);
});

test("after a jump of the clock by a day, forward and back, the charts have the time before and after it", () => {
  const usage = new UsageRecorder();
  const start = 10 * DAY;
  sampleFrom(usage, start, HOUR, 1);
  sampleFrom(usage, start + DAY, 10 * MINUTE, 2);
  expect(new Set(usage.history("a", "1h", start + DAY + 10 * MINUTE).cpuCores)).toEqual(new Set([2]));
  sampleFrom(usage, start + HOUR, HOUR, 3);
  const { times, cpuCores } = usage.history("a", "24h", start + 2 * HOUR);
  expect(times).toEqual(times.toSorted((a, b) => a - b));
  expect(new Set(cpuCores)).toEqual(new Set([1, 3]));
  expect(times.at(-1)).toBeGreaterThan(start + 2 * HOUR - 4 * MINUTE);
});

const KB = 1000;
/** The file holds the same as the memory: times, values and the names of pods. */
const bytesOf = (usage: UsageRecorder) => usage.save().length;
const names = (count: number, from = 0) => Array.from({ length: count }, (_, index) => `uid-${from + index}`);

const later = (count: number) => 1_000_000 + count * 120_000;

test("the memory is bounded: 22 KB for a pod of a day, 2.4 MB for 110, at most 11 MB", () => {
  const usage = new UsageRecorder();
  const bytesAfterDay = (count: number) => {
    for (let sample = 0; sample < 720; sample++) usage.add(summary(1, 0, names(count)), later(sample));
    return bytesOf(usage);
  };
  const node = bytesAfterDay(0);
  expect((bytesAfterDay(1) - node) / KB).toBeWithin(14, 22);
  expect(bytesAfterDay(110)).toBeLessThan(2.4e6);
  expect(bytesAfterDay(2000)).toBeLessThan(11e6);
  expect(usage.history("uid-498", "10m", later(720)).memoryBytes).toContain(7);
  expect(usage.history("uid-499", "10m", later(720)).memoryBytes).not.toContain(7);
});

test("thousands of pods that come and go leave little more than as many that stay", () => {
  const bytesOfDay = (first: (round: number) => number) => {
    const usage = new UsageRecorder();
    for (let round = 0; round < 2000; round++) usage.add(summary(1, 0, names(20, first(round))), later(round));
    return bytesOf(usage);
  };
  expect(bytesOfDay((round) => 20 * round)).toBeLessThan(2 * bytesOfDay(() => 0));
});

test("a line ends where nothing was sampled", () => {
  const usage = recorded({ 1000000: [1, 0, ["a"]], 2000000: [1, 0, ["a"]] });
  const { times, cpuCores } = usage.history("a", "1h", 2_000_000);
  expect([times, cpuCores]).toEqual([
    [1_000_000, 1_000_001, 2_000_000],
    [1, null, 1],
  ]);
});

const temp = tempDirs();

/** A process that keeps its history below `rootDir`. */
function start(rootDir: string, write: ReplaceFile = replaceFile) {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  const usage = new UsageRecorder();
  const history = new KeptHistory(usage, rootDir, clock, logger, write);
  history.restore();
  const sample = () => usage.add(summary(0.5, 0, []), clock.now().getTime());
  const cores = () => usage.history("", "24h", clock.now().getTime()).cpuCores;
  return { clock, logger, history, sample, cores, file: join(rootDir, "state", "usage-history") };
}

/** A process that samples once and stops. @returns its file */
async function saved(rootDir: string): Promise<string> {
  const { sample, history, file } = start(rootDir);
  sample();
  history.stop();
  await settle();
  return file;
}

test("the history is saved when the kubelet stops, and every hour: a crash loses at most an hour", async () => {
  const rootDir = temp();
  await saved(rootDir);
  const second = start(rootDir);
  expect(second.cores()).toEqual([0.5]);
  await second.clock.advance(HOUR - 1);
  second.sample();
  await second.clock.advance(1);
  await second.clock.advance(HOUR - 1);
  second.sample();
  // No stop: the process is killed.
  const third = start(rootDir);
  expect(third.cores()).toEqual([0.5, null, 0.5]);
  expect([...second.logger.lines, ...third.logger.lines]).toEqual([]);
});

test("a first start has no history and logs nothing", () => {
  const { cores, logger } = start(temp());
  expect([cores(), logger.lines]).toEqual([[], []]);
});

test.each<[string, (file: string) => void]>([
  ["empty, as after a power cut", (file) => truncateSync(file, 0)],
  ["cut off", (file) => truncateSync(file, 100)],
  ["another program's", (file) => writeFileSync(file, "#!/bin/sh\n")],
  [
    "another version's",
    (file) => writeFileSync(file, readFileSync(file, "latin1").replace("usage-3", "usage-2"), "latin1"),
  ],
  ["far too large", (file) => truncateSync(file, 17 * 1024 * 1024)],
])("a file that is %s is reported in one line and replaced by the next save", async (_, damage) => {
  const rootDir = temp();
  damage(await saved(rootDir));
  const second = start(rootDir);
  expect(second.logger.lines).toEqual(["warn The usage history cannot be read; the page's charts start empty"]);
  expect(second.cores()).toEqual([]);
  await saved(rootDir);
  const third = start(rootDir);
  expect([third.cores(), third.logger.lines]).toEqual([[0.5], []]);
});

test("a directory in its place is reported, too", () => {
  const rootDir = temp();
  mkdirSync(join(rootDir, "state", "usage-history"), { recursive: true });
  expect(start(rootDir).logger.lines.length).toBe(1);
});

test("a disk that is full or read-only is reported once, and once more when it can be written again", async () => {
  let isFull = true;
  const rootDir = temp();
  const { clock, logger, sample, history } = start(rootDir, (path, content, options) => {
    if (isFull) throw new Error("ENOSPC: no space left on device");
    replaceFile(path, content, options);
  });
  sample();
  await clock.advance(5 * HOUR);
  const lost = "warn The usage history cannot be saved; a restart loses the charts since the last save";
  expect(logger.lines).toEqual([lost]);
  isFull = false;
  await clock.advance(HOUR);
  expect(logger.lines).toEqual([lost, "info The usage history is saved again"]);
  history.stop();
  expect(clock.pendingTimers).toBe(0);
  expect(start(rootDir).cores().at(-1)).toBe(0.5);
});
