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

function aFile() {
  const path = join(tempDir(), "state", "things.json");
  const warnings: string[] = [];
  const clock = new FakeClock();
  const warn = (message: string) => void warnings.push(message);
  const open = () => new StateFile(path, { version: 1, durable: true, parse }, clock, warn);
  return { path, warnings, open };
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

const withData = (data: string) => `{"version":1,"data":${data}}`;
test.each([
  ["", "is damaged: "],
  ['{"version":1', "is damaged: "],
  ...["null", "[]", '{"a":"1"}', "3"].map((data) => [withData(data), "is damaged: a must be a number; "] as const),
  ['{"version":2,"data":{"a":1}}', "is of version 2, not 1; "],
] as const)("the file %p is set aside, which is reported once: %s", (text, problem) => {
  const { path, warnings, open } = aFile();
  open().write({ a: 1 });
  writeFileSync(path, text);
  expect(open().read()).toBeUndefined();
  expect(open().read()).toBeUndefined();
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toStartWith(`"${path}" ${problem}`);
  expect(warnings[0]).toEndWith(`; continuing without it (set aside as "${path}.invalid")`);
});

test("a disk that cannot be written is reported, not thrown", () => {
  const warnings: string[] = [];
  const format = { version: 1, durable: false, parse: Number };
  const warn = (message: string) => void warnings.push(message);
  const file = new StateFile<number>("/proc/no/such/file.json", format, new FakeClock(), warn);
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
  const warn = (message: string) => void warnings.push(message);
  const open = () => new StateFile<string>(path, { version: 1, durable: false, parse: String }, clock, warn);
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
