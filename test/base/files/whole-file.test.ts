import { expect, test } from "bun:test";
import { symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readBoundedText, readTextIfExists } from "../../../src/base/files/whole-file.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("a file up to the limit is read, also when its size is not known", () => {
  const path = join(tempDir(), "file");
  writeFileSync(path, "12345");
  expect(readBoundedText(path, 5)).toBe("12345");
  expect(() => readBoundedText(path, 4)).toThrow("is too large: 5 bytes, at most 4");
  expect(readBoundedText("/proc/self/stat", 4096)).toStartWith(`${process.pid} (`);
  expect(() => readBoundedText("/proc/self/maps", 100)).toThrow("is too large");
  expect(readBoundedText("/proc/self/maps", 10_000_000).length).toBeGreaterThan(1024);
});

test("a sparse file of 8 GB is refused at once", () => {
  const path = join(tempDir(), "file");
  writeFileSync(path, "");
  truncateSync(path, 8 * 1024 ** 3);
  expect(() => readBoundedText(path, 1_000_000)).toThrow("is too large: 8589934592 bytes");
});

test("a FIFO, a directory and a device are refused without waiting", () => {
  const directory = tempDir();
  const pipe = join(directory, "pipe");
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  symlinkSync("/dev/zero", join(directory, "zero"));
  for (const path of [pipe, directory, join(directory, "zero")])
    expect(() => readBoundedText(path, 100)).toThrow("is not a regular file");
});

test("a missing file is undefined where that is asked for", () => {
  const path = join(tempDir(), "missing");
  expect(readTextIfExists(path, 100)).toBeUndefined();
  expect(() => readBoundedText(path, 100)).toThrow("ENOENT");
});
