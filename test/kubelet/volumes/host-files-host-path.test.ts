import { expect, test } from "bun:test";
import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { HostPathVolumeSource } from "../../../src/base/api/pod.ts";
import { prepareHostPath } from "../../../src/kubelet/volumes/host-files.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

type HostPathType = HostPathVolumeSource["type"];

const dir = tempDir();
mkdirSync(join(dir, "dir"));
writeFileSync(join(dir, "file"), "");
symlinkSync("dir", join(dir, "link"));
const server = createServer().listen(join(dir, "sock"));
await new Promise((resolve) => server.once("listening", resolve));
server.unref();

const not = (path: string, what: string) => `hostPath type check failed: ${path} is not a ${what}`;
test.each<[HostPathType, string, string | undefined]>([
  ["Directory", join(dir, "missing-dir"), not(join(dir, "missing-dir"), "directory")],
  ["Directory", join(dir, "file"), not(join(dir, "file"), "directory")],
  ["DirectoryOrCreate", join(dir, "file"), not(join(dir, "file"), "directory")],
  ["File", join(dir, "missing-file"), not(join(dir, "missing-file"), "file")],
  ["File", join(dir, "dir"), not(join(dir, "dir"), "file")],
  ["FileOrCreate", join(dir, "nodir/file"), `open ${join(dir, "nodir/file")}: no such file or directory`],
  ["FileOrCreate", join(dir, "dir"), not(join(dir, "dir"), "file")],
  ["Socket", join(dir, "missing-sock"), not(join(dir, "missing-sock"), "socket file")],
  ["CharDevice", join(dir, "file"), not(join(dir, "file"), "character device")],
  ["BlockDevice", "/dev/null", not("/dev/null", "block device")],
])("the recorded outcomes: %s %s", (type, path, want) => expect(prepareHostPath({ path, type })).toBe(want));

test.each<[HostPathType, string]>([
  ["", "dir"],
  ["", "file"],
  ["Directory", "dir"],
  ["Directory", "link"],
  ["DirectoryOrCreate", "dir"],
  ["File", "file"],
  ["FileOrCreate", "file"],
  ["Socket", "sock"],
])("%p takes %s", (type, name) => expect(prepareHostPath({ path: join(dir, name), type })).toBeUndefined());

test("CharDevice takes /dev/null", () => {
  expect(prepareHostPath({ path: "/dev/null", type: "CharDevice" })).toBeUndefined();
});

test.each<HostPathType>(["", "DirectoryOrCreate"])("%p makes a missing directory with its parents", (type) => {
  const path = join(dir, `new-${type}`, "a/b");
  expect(prepareHostPath({ path, type })).toBeUndefined();
  expect(statSync(path).mode & 0o777).toBe(0o755 & ~process.umask());
});

test("FileOrCreate makes an empty file", () => {
  const path = join(dir, "new-file");
  expect(prepareHostPath({ path, type: "FileOrCreate" })).toBeUndefined();
  expect(statSync(path).isFile()).toBe(true);
  expect(statSync(path).size).toBe(0);
});

test("a path below a file is reported, not thrown", () => {
  const path = join(dir, "file/x");
  expect(prepareHostPath({ path, type: "" })).toContain(path);
  expect(prepareHostPath({ path, type: "Directory" })).toContain(path);
});

test("a relative path would be a volume's name to Docker", () => {
  expect(prepareHostPath({ path: "relative/dir", type: "" })).toBe("hostPath must be absolute: relative/dir");
  expect(existsSync("relative")).toBe(false);
});
