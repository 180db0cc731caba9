import { expect, test } from "bun:test";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StateFile } from "../../../src/base/host/state-file.ts";
import { Mounter } from "../../../src/kubelet/volumes/mounter.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { fillUp } from "../../support/fill-up.ts";
import { mounting, tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();
const parse = (data: unknown) => {
  if (typeof (data as { a?: unknown })?.a === "number") return data as { a: number };
  throw new Error("a must be a number");
};

function aFile(version = 1) {
  const directory = tempDir();
  const path = join(directory, "state", "things.json");
  const warnings: string[] = [];
  const clock = new FakeClock();
  const open = (of = version) =>
    new StateFile<{ a: number }>(path, { version: of, durable: true, parse }, clock, (message) =>
      warnings.push(message),
    );
  return { directory, path, clock, warnings, open };
}

test("what was written is read, and no other file is left", () => {
  const { path, warnings, open } = aFile();
  open().write({ a: 1 });
  open().write({ a: 2 });
  expect(open().read()).toEqual({ a: 2 });
  expect(readdirSync(join(path, ".."))).toEqual(["things.json"]);
  expect(warnings).toEqual([]);
});

test("a missing file is not reported", () => {
  const { warnings, open } = aFile();
  expect(open().read()).toBeUndefined();
  expect(warnings).toEqual([]);
});

test.each(["", "{", '{"version":1'])("a damaged file (%p) counts as none, and is reported", (text) => {
  const { path, warnings, open } = aFile();
  open().write({ a: 1 });
  writeFileSync(path, text);
  expect(open().read()).toBeUndefined();
  expect(warnings[0]).toContain("is damaged");
});

test.each(["null", "[]", '{"a":"1"}', "3"])("a file of this version with other content (%p) is set aside", (data) => {
  const { path, warnings, open } = aFile();
  open().write({ a: 1 });
  writeFileSync(path, `{"version":1,"data":${data}}`);
  expect(open().read()).toBeUndefined();
  expect(warnings).toEqual([
    `"${path}" is damaged: a must be a number; continuing without it (set aside as "${path}.invalid")`,
  ]);
  expect(open().read()).toBeUndefined();
  expect(warnings).toHaveLength(1);
});

test("a file of another version is not believed", () => {
  const { warnings, open } = aFile();
  open(1).write({ a: 1 });
  expect(open(2).read()).toBeUndefined();
  expect(warnings[0]).toContain("is of version 1, not 2");
});

test("a disk that cannot be written is reported, not thrown", () => {
  const warnings: string[] = [];
  const format = { version: 1, durable: false, parse: Number };
  const file = new StateFile<number>("/proc/no/such/file.json", format, new FakeClock(), (message) => {
    warnings.push(message);
  });
  file.write(1);
  file.write(2);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toStartWith('Cannot write "/proc/no/such/file.json", will retry: ');
});

test.skipIf(!mounting.ok)("a disk with room for half of it keeps the old one, and gets the new one later", async () => {
  const directory = tempDir();
  await new Mounter().mountFileSystem("tmpfs", directory, ["size=1m"]);
  const path = join(directory, "things.json");
  const clock = new FakeClock();
  const warnings: string[] = [];
  const open = () =>
    new StateFile<string>(path, { version: 1, durable: false, parse: String }, clock, (message) =>
      warnings.push(message),
    );
  open().write("old");
  fillUp(join(directory, "filler"), 8192);
  const big = "x".repeat(40_000);
  const file = open();
  file.write("other");
  file.write(big);
  file.write(big);
  expect(warnings).toHaveLength(1);
  expect(open().read()).toBe("other");
  expect(readdirSync(directory).sort()).toEqual(["filler", "things.json"]);
  rmSync(join(directory, "filler"));
  await clock.advance(31_000);
  expect(open().read()).toBe(big);
  expect(clock.pendingTimers).toBe(0);
});
