import { expect, test } from "bun:test";
import { closeSync, mkdirSync, openSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findOpenWriters, youngestFirst } from "../../src/sources/open-writers.ts";
import { tempDirs } from "../support/temp-dir.ts";

const tempDir = tempDirs();

/** /proc as if only this process ran: a busy machine has more of them than the search takes time for. */
function procOf(pid: number): string {
  const proc = tempDir();
  symlinkSync(`/proc/${pid}`, join(proc, `${pid}`));
  return proc;
}

test.each([
  { flags: "r", want: false },
  { flags: "w", want: true },
  { flags: "a", want: true },
  { flags: "r+", want: true },
])("a file that we hold open with $flags: $want", ({ flags, want }) => {
  const path = join(tempDir(), "web.yaml");
  writeFileSync(path, "");
  const proc = procOf(process.pid);
  const fd = openSync(path, flags);
  expect([...findOpenWriters(new Set([path]), proc)]).toEqual(want ? [path] : []);
  closeSync(fd);
  expect([...findOpenWriters(new Set([path]), proc)]).toEqual([]);
});

test("another process that writes slowly is found", async () => {
  const path = join(tempDir(), "web.yaml");
  const child = Bun.spawn(["sh", "-c", `exec > ${path}; echo half; read line; echo rest`], { stdin: "pipe" });
  while (!(await Bun.file(path).exists()) || (await Bun.file(path).text()) === "") await Bun.sleep(5);
  const proc = procOf(child.pid);
  expect([...findOpenWriters(new Set([path]), proc)]).toEqual([path]);
  child.stdin.write("\n");
  child.stdin.end();
  await child.exited;
  expect([...findOpenWriters(new Set([path]), proc)]).toEqual([]);
});

test.each([
  { lastPid: 400, want: ["400", "7", "32758", "30000"] },
  { lastPid: 32758, want: ["32758", "30000", "400", "7"] },
  { lastPid: Number.POSITIVE_INFINITY, want: ["32758", "30000", "400", "7"] },
])("the youngest first, also after process ids began anew: last given $lastPid", ({ lastPid, want }) => {
  expect(youngestFirst(["7", "30000", "32758", "400"], lastPid)).toEqual([...want]);
});

test("processes that end meanwhile, and a machine without /proc, are no trouble", () => {
  const proc = tempDir();
  mkdirSync(join(proc, "7/fd"), { recursive: true });
  mkdirSync(join(proc, "self"));
  symlinkSync("/x", join(proc, "7/fd/3"));
  expect([...findOpenWriters(new Set(["/x"]), proc)]).toEqual([]);
  mkdirSync(join(proc, "7/fdinfo"));
  writeFileSync(join(proc, "7/fdinfo/3"), "pos:\t0\nflags:\t0100001\n");
  expect([...findOpenWriters(new Set(["/x"]), proc)]).toEqual(["/x"]);
  expect([...findOpenWriters(new Set(["/x"]), join(proc, "nowhere"))]).toEqual([]);
});
