import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StateFile } from "../../src/host/state-file.ts";

function aFile(version = 1) {
  const directory = mkdtempSync(join(tmpdir(), "kubelet-ts-state-"));
  const path = join(directory, "state", "things.json");
  const complaints: string[] = [];
  const open = (of = version) =>
    new StateFile<{ a: number }>(path, { version: of, durable: true }, (message) => complaints.push(message));
  return { directory, path, complaints, open };
}

test("what was written is read, and nothing lies beside it", () => {
  const { path, complaints, open } = aFile();
  open().write({ a: 1 });
  open().write({ a: 2 });
  expect(open().read()).toEqual({ a: 2 });
  expect(readdirSync(join(path, ".."))).toEqual(["things.json"]);
  expect(complaints).toEqual([]);
});

test("no file is no complaint", () => {
  const { complaints, open } = aFile();
  expect(open().read()).toBeUndefined();
  expect(complaints).toEqual([]);
});

test.each(["", "{", '{"version":1'])("a damaged file (%p) is as good as none, and told", (text) => {
  const { path, complaints, open } = aFile();
  open().write({ a: 1 });
  writeFileSync(path, text);
  expect(open().read()).toBeUndefined();
  expect(complaints[0]).toContain("is damaged");
});

test("a file of another version is not believed", () => {
  const { complaints, open } = aFile();
  open(1).write({ a: 1 });
  expect(open(2).read()).toBeUndefined();
  expect(complaints[0]).toContain("is of version 1, not 2");
});

test("a disk that cannot be written is told, not thrown", () => {
  const complaints: string[] = [];
  const format = { version: 1, durable: false };
  new StateFile<number>("/proc/no/such/file.json", format, (message) => complaints.push(message)).write(1);
  expect(complaints[0]).toStartWith('Cannot write "/proc/no/such/file.json"');
});
