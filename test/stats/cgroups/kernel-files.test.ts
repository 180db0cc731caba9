import { expect, test } from "bun:test";
import { rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { countKeptFiles, KeptFiles } from "../../../src/stats/cgroups/kernel-files.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const makeDirectory = tempDirs();

test("a file is opened once, and read again from its start", () => {
  const directory = makeDirectory();
  const files = new KeptFiles();
  const before = countKeptFiles();
  for (const text of ["17", "4", "x".repeat(40_000), ""]) {
    writeFileSync(join(directory, "memory.current"), text);
    expect(files.read(directory, "memory.current")).toBe(text);
    expect(files.read(directory, "memory.peak")).toBeUndefined();
    expect(countKeptFiles()).toBe(before + 1);
  }
  files.close();
  expect(countKeptFiles()).toBe(before);
  expect(files.read(directory, "memory.current")).toBe("");
  files.close();
});

test("what went is undefined; what came again in its place is read", async () => {
  // Files of a process fail when it ends, as those of a cgroup do when it is removed.
  const child = Bun.spawn(["sleep", "60"]);
  const link = join(makeDirectory(), "process");
  symlinkSync(`/proc/${child.pid}`, link);
  const files = new KeptFiles();
  const before = countKeptFiles();
  expect(files.read(link, "stat")).toStartWith(`${child.pid} `);
  expect(countKeptFiles()).toBe(before + 1);
  child.kill("SIGKILL");
  await child.exited;
  expect(files.read(link, "stat")).toBeUndefined();
  expect(countKeptFiles()).toBe(before);
  rmSync(link);
  symlinkSync(`/proc/${process.pid}`, link);
  expect(files.read(link, "stat")).toStartWith(`${process.pid} `);
  expect(countKeptFiles()).toBe(before + 1);
  files.close();
});
