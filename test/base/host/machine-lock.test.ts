import { expect, test } from "bun:test";
import { join } from "node:path";
import { MachineLock } from "../../../src/base/host/machine-lock.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

test("one of two has the lock, and keeps it; other names are other locks", async () => {
  const directory = join(tempDir(), "run");
  const [first, second] = [new MachineLock("kubepods/a", directory), new MachineLock("kubepods/a", directory)];
  expect(await Promise.all([first.hold(), first.hold()])).toEqual([true, true]);
  expect(await second.hold()).toBe(false);
  expect(await first.hold()).toBe(true);
  expect(await new MachineLock("kubepods/b", directory).hold()).toBe(true);
});

test("without permission to lock nothing is held back", async () => {
  expect(await new MachineLock("kubepods", "/proc/nowhere").hold()).toBe(true);
});
