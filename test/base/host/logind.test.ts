import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Logind, readSignals } from "../../../src/base/host/logind.ts";
import { SystemClock } from "../../../src/base/host/system-clock.ts";
import { FakeLogind } from "../../support/fake-logind.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const tempDir = tempDirs();
let directory: string;
let fake: FakeLogind;
let logger: RecordingLogger;
let stop: AbortController;

beforeEach(() => {
  directory = tempDir();
  fake = new FakeLogind(join(directory, "bin"));
  logger = new RecordingLogger();
  stop = new AbortController();
});
afterEach(() => {
  stop.abort(new Error("the test is over"));
});

const dropIn = () => join(directory, "etc/logind.conf.d/99-kubelet-ts.conf");
const logind = (environment: Record<string, string> = fake.env) =>
  new Logind({ clock: new SystemClock(), logger, environment, dropIn: dropIn() });

test("what busctl of systemd 252 shows of the signal is understood", () => {
  const seen: boolean[] = [];
  const take = readSignals((isGoingDown) => seen.push(isGoingDown));
  const text = readFileSync(join(import.meta.dir, "../../fixtures/logind/busctl-monitor-252.txt"), "utf8");
  for (const line of text.split("\n")) take(line.trim());
  expect(seen).toEqual([true, false]);
});

test("a value of another message is not ours", () => {
  const seen: boolean[] = [];
  const take = readSignals((isGoingDown) => seen.push(isGoingDown));
  for (const line of ["Path=/x  Interface=y  Member=PrepareForSleep", "BOOLEAN true;"]) take(line);
  expect(seen).toEqual([]);
});

test("the lock is held until it is released", async () => {
  const hold = await logind().hold(30, stop.signal);
  expect(fake.isHeld).toBe(true);
  hold.release();
  await until("the lock to be gone", () => !fake.isHeld);
  expect(logger.lines).toEqual([]);
});

test("an abort releases it too", async () => {
  const hold = await logind().hold(30, stop.signal);
  hold.lost.catch(() => {});
  stop.abort();
  await until("the lock to be gone", () => !fake.isHeld);
});

test("a logind that would not wait that long is configured to", async () => {
  fake.setDelay(5, 30);
  const hold = await logind().hold(30, stop.signal);
  expect(readFileSync(dropIn(), "utf8")).toContain("[Login]\nInhibitDelayMaxSec=30\n");
  expect(logger.lines).toEqual([
    `info Shutdowns of the machine may now be delayed for 30 s: InhibitDelayMaxSec=30 in ${dropIn()}`,
  ]);
  hold.release();
});

test("signals are passed on in their order", async () => {
  const seen: boolean[] = [];
  const watching = logind().watch((isGoingDown) => seen.push(isGoingDown), stop.signal);
  watching.catch(() => {});
  fake.announce(true);
  fake.announce(false);
  await until("both", () => seen.length === 2);
  expect(seen).toEqual([true, false]);
  stop.abort();
  await expect(watching).rejects.toThrow("busctl monitor ended");
});

test("whether the machine is going down", async () => {
  expect(await logind().isStopping()).toBe(false);
  fake.setState("stopping");
  expect(await logind().isStopping()).toBe(true);
});

test("a machine without systemd says what is missing", async () => {
  const bare = logind({ PATH: join(directory, "nothing") });
  await expect(bare.hold(30, stop.signal)).rejects.toThrow("busctl is not there (it comes with systemd)");
  expect(await bare.isStopping()).toBe(false);
});
