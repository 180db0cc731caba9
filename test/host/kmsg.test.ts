import { expect, test } from "bun:test";
import { accessSync, constants, writeFileSync } from "node:fs";
import { followKernelLog, type KernelRecord, KMSG_PATH, parseKernelRecord } from "../../src/host/kmsg.ts";
import { RecordingLogger } from "../support/recording-logger.ts";
import { until } from "../support/until.ts";

test("a record and what comes with it", () => {
  expect(
    parseKernelRecord("6,1234,5678901,-;Out of memory: \\x1bKilled; really\n SUBSYSTEM=net\n DEVICE=n1\n"),
  ).toEqual({
    sequence: 1234,
    microseconds: 5_678_901,
    message: "Out of memory: \x1bKilled; really",
  });
  expect(parseKernelRecord("4,7,9,c,caller=T1;x")?.sequence).toBe(7);
  expect(parseKernelRecord("no record")).toBeUndefined();
});

test.each(["/nonexistent/kmsg", "/dev/null"])("%s cannot be followed, which is told once and is no failure", (path) => {
  const logger = new RecordingLogger();
  expect(followKernelLog(() => {}, logger, path)).toBeUndefined();
  expect(logger.lines).toEqual([
    "warn The kernel's log cannot be read: OOM kills are known from the engine and the counters of cgroups",
  ]);
});

const mayWrite = (() => {
  try {
    accessSync(KMSG_PATH, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    console.warn("the test of the kernel's log is skipped: /dev/kmsg is not to be had");
    return false;
  }
})();

test.if(mayWrite)("records from now on are handed over, those from before are not", async () => {
  const mark = `kubelet-ts test ${crypto.randomUUID()}`;
  writeFileSync(KMSG_PATH, `<6>${mark} before\n`);
  const records: KernelRecord[] = [];
  const stop = followKernelLog((record) => records.push(record), new RecordingLogger());
  writeFileSync(KMSG_PATH, `<6>${mark} after\n`);
  await until("the record", () => records.some(({ message }) => message === `${mark} after`));
  expect(records.some(({ message }) => message === `${mark} before`)).toBe(false);
  stop!();
});
