import { expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Summary } from "../../../src/base/api/stats-summary.ts";
import { type ReplaceFile, replaceFile } from "../../../src/base/files/replace-file.ts";
import { KeptHistory } from "../../../src/daemon/assembly/kept-history.ts";
import { UsageRecorder } from "../../../src/server/page/usage-recorder.ts";
import { FakeClock, settle } from "../../support/fake-clock.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const temp = tempDirs();
const HOUR_MS = 3_600_000;
const summary: Summary = {
  node: { nodeName: "n", startTime: "", cpu: { time: "", usageNanoCores: 5e8 } },
  pods: [],
};

/** A process that keeps its history below `rootDir`. */
function start(rootDir: string, write: ReplaceFile = replaceFile) {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  const usage = new UsageRecorder();
  const history = new KeptHistory(usage, rootDir, clock, logger, write);
  history.restore();
  const sample = () => usage.add(summary, clock.now().getTime());
  const cores = () => usage.history("", "24h", clock.now().getTime()).cpuCores;
  return { clock, logger, history, sample, cores, file: join(rootDir, "state", "usage-history") };
}

test("the history is saved when the kubelet stops, and every hour: a crash loses at most an hour", async () => {
  const rootDir = temp();
  const first = start(rootDir);
  first.sample();
  first.history.stop();
  await settle();
  const second = start(rootDir);
  expect(second.cores()).toEqual([0.5]);
  await second.clock.advance(HOUR_MS - 1);
  second.sample();
  await second.clock.advance(1);
  await second.clock.advance(HOUR_MS - 1);
  second.sample();
  // No stop: the process is killed.
  const third = start(rootDir);
  expect(third.cores()).toEqual([0.5, null, 0.5]);
  expect([...first.logger.lines, ...second.logger.lines, ...third.logger.lines]).toEqual([]);
});

test("a first start has no history and logs nothing", () => {
  const { cores, logger } = start(temp());
  expect([cores(), logger.lines]).toEqual([[], []]);
});

test.each<[string, (file: string) => void]>([
  ["empty, as after a power cut", (file) => truncateSync(file, 0)],
  ["cut off", (file) => truncateSync(file, 1000)],
  ["another program's", (file) => writeFileSync(file, "#!/bin/sh\n")],
  [
    "another version's",
    (file) => writeFileSync(file, readFileSync(file, "latin1").replace("usage-1", "usage-2"), "latin1"),
  ],
  ["far too large", (file) => truncateSync(file, 17 * 1024 * 1024)],
])("a file that is %s is reported in one line and replaced by the next save", async (_, damage) => {
  const rootDir = temp();
  const first = start(rootDir);
  first.sample();
  first.history.stop();
  await settle();
  damage(first.file);
  const second = start(rootDir);
  expect(second.logger.lines).toEqual(["warn The usage history cannot be read; the page's charts start empty"]);
  expect(second.cores()).toEqual([]);
  second.sample();
  second.history.stop();
  await settle();
  const third = start(rootDir);
  expect([third.cores(), third.logger.lines]).toEqual([[0.5], []]);
});

test("a directory in its place is reported, too", () => {
  const rootDir = temp();
  const file = join(rootDir, "state", "usage-history");
  mkdirSync(file, { recursive: true });
  expect(start(rootDir).logger.lines.length).toBe(1);
  expect(existsSync(dirname(file))).toBe(true);
});

test("a disk that is full or read-only is reported once, and once more when it can be written again", async () => {
  let isFull = true;
  const rootDir = temp();
  const { clock, logger, sample, history } = start(rootDir, (path, content, options) => {
    if (isFull) throw new Error("ENOSPC: no space left on device");
    replaceFile(path, content, options);
  });
  sample();
  await clock.advance(5 * HOUR_MS);
  const lost = "warn The usage history cannot be saved; a restart loses the charts since the last save";
  expect(logger.lines).toEqual([lost]);
  isFull = false;
  await clock.advance(HOUR_MS);
  expect(logger.lines).toEqual([lost, "info The usage history is saved again"]);
  history.stop();
  expect(clock.pendingTimers).toBe(0);
  expect(start(rootDir).cores().at(-1)).toBe(0.5);
});
