import { expect, test } from "bun:test";
import { accessSync, closeSync, constants, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { followKernelLog, type KernelRecord, KMSG_PATH, parseKernelRecord } from "../../../src/base/host/kmsg.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { tempDirs } from "../../support/temp-dir.ts";
import { until } from "../../support/until.ts";

const tempDir = tempDirs();

test("a record with its properties", () => {
  expect(
    parseKernelRecord("6,1234,5678901,-;Out of memory: \\x1bKilled; really\n SUBSYSTEM=net\n DEVICE=n1\n"),
  ).toEqual({ sequence: 1234, message: "Out of memory: \x1bKilled; really" });
  expect(parseKernelRecord("4,7,9,c,caller=T1;x")?.sequence).toBe(7);
  expect(parseKernelRecord("no record")).toBeUndefined();
});

test.each(["/nonexistent/kmsg", "/dev/null"])(
  "%s cannot be followed, which is reported once and is not a failure",
  (path) => {
    const logger = new RecordingLogger();
    expect(followKernelLog(() => {}, logger, path)).toBeUndefined();
    expect(logger.lines).toEqual([
      "warn The kernel's log cannot be read: OOM kills are known from the engine and the counters of cgroups",
    ]);
  },
);

test("records overwritten before they were read do not end it, and none is reported twice", async () => {
  // A pipe with an open writer answers as an empty kernel log does: there is nothing yet.
  const path = join(tempDir(), "kmsg");
  expect(Bun.spawnSync(["mkfifo", path]).exitCode).toBe(0);
  const writer = openSync(path, "r+");
  const opened: PassThrough[] = [];
  const open = () => {
    const stream = new PassThrough({ encoding: "utf8" });
    opened.push(stream);
    return stream;
  };
  const records: KernelRecord[] = [];
  const logger = new RecordingLogger();
  const stop = followKernelLog((record) => records.push(record), logger, path, open);
  opened[0]!.write("6,1,10,-;first\n");
  await until("the first record", () => records.length === 1);
  opened[0]!.destroy(Object.assign(new Error("EPIPE: broken pipe, read"), { code: "EPIPE" }));
  await until("another open", () => opened.length === 2);
  opened[1]!.write("6,1,10,-;first\n");
  await until("the old record to be read", () => opened[1]!.readableLength === 0);
  opened[1]!.write("6,9,90,-;ninth\n");
  await until("the next record", () => records.length === 2);
  expect(records.map(({ message }) => message)).toEqual(["first", "ninth"]);
  stop!();
  expect(opened[1]!.destroyed).toBe(true);
  expect(logger.lines).toEqual([]);
  closeSync(writer);
});

const mayWrite = (() => {
  try {
    accessSync(KMSG_PATH, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    console.warn("the test of the kernel's log is skipped: /dev/kmsg cannot be opened");
    return false;
  }
})();

test.if(mayWrite)("new records are reported, earlier ones are not", async () => {
  const mark = `kubelet-ts test ${crypto.randomUUID()}`;
  writeFileSync(KMSG_PATH, `<6>${mark} before\n`);
  const records: KernelRecord[] = [];
  const stop = followKernelLog((record) => records.push(record), new RecordingLogger());
  writeFileSync(KMSG_PATH, `<6>${mark} after\n`);
  await until("the record", () => records.some(({ message }) => message === `${mark} after`));
  expect(records.some(({ message }) => message === `${mark} before`)).toBe(false);
  stop!();
});
