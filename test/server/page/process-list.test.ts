import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { listProcesses, parseProcess } from "../../../src/server/page/process-list.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const STAT = "42 (a (b) c) S 1 42 42 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 1 0 1000 1000000 200";
const temp = tempDirs();

test("a process of /proc", () => {
  expect(parseProcess("app", 42, STAT, "Name:\ta\nUid:\t1000\t0\t0\t0\nVmRSS:\t  12 kB\n", "sh\0-c\0exit\0")).toEqual({
    container: "app",
    pid: 42,
    user: 1000,
    state: "S",
    memoryBytes: 12_288,
    cpuSeconds: 3,
    command: "sh -c exit",
  });
  expect(parseProcess("app", 42, STAT, "", "").command).toBe("[a (b) c]");
});

test("of thousands of processes the first 200 are listed", () => {
  const proc = temp();
  const processIds = Array.from({ length: 3000 }, (_, index) => `${index + 1}`);
  for (const pid of processIds.slice(0, 250)) {
    mkdirSync(join(proc, pid));
    writeFileSync(join(proc, pid, "stat"), STAT);
    writeFileSync(join(proc, pid, "status"), "");
  }
  expect(listProcesses([{ name: "app", processIds }], proc).length).toBe(200);
});

test("a process that has ended is left out", () => {
  const proc = temp();
  mkdirSync(join(proc, "42"));
  for (const [file, text] of [["stat", STAT] as const, ["status", ""] as const, ["cmdline", "x"] as const]) {
    writeFileSync(join(proc, "42", file), text);
  }
  const found = listProcesses([{ name: "app", processIds: ["42", "43"] }], proc);
  expect(found.map(({ pid }) => pid)).toEqual([42]);
});
