import { expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PathWatch } from "../../src/sources/path-watch.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const tempDir = tempDirs();

const replaceLink = (target: string, path: string) => {
  symlinkSync(target, `${path}.new`);
  renameSync(`${path}.new`, path);
};

test.each([
  {
    when: "..data is swapped, as Kubernetes writes a volume",
    make(dir: string) {
      for (const version of ["..1", "..2"]) {
        mkdirSync(join(dir, version));
        writeFileSync(join(dir, version, "password"), version);
      }
      symlinkSync("..1", join(dir, "..data"));
      symlinkSync("..data/password", join(dir, "password"));
    },
    change: (dir: string) => replaceLink("..2", join(dir, "..data")),
    path: "password",
  },
  {
    when: "a link to a file elsewhere is replaced, as certbot does",
    make(dir: string) {
      mkdirSync(join(dir, "live"));
      mkdirSync(join(dir, "archive"));
      for (const version of ["1", "2"]) writeFileSync(join(dir, "archive", `key${version}`), version);
      symlinkSync("../archive/key1", join(dir, "live/key"));
    },
    change: (dir: string) => replaceLink("../archive/key2", join(dir, "live/key")),
    path: "live/key",
  },
  {
    when: "the file that a link leads to is written",
    make(dir: string) {
      mkdirSync(join(dir, "live"));
      mkdirSync(join(dir, "archive"));
      writeFileSync(join(dir, "archive/key"), "1");
      symlinkSync("../archive/key", join(dir, "live/key"));
    },
    change: (dir: string) => writeFileSync(join(dir, "archive/key"), "2"),
    path: "live/key",
  },
  {
    when: "the directory is replaced",
    make(dir: string) {
      for (const version of ["a", "a.new"]) {
        mkdirSync(join(dir, version, "b"), { recursive: true });
        writeFileSync(join(dir, version, "b/file"), version);
      }
    },
    change(dir: string) {
      rmSync(join(dir, "a"), { recursive: true });
      renameSync(join(dir, "a.new"), join(dir, "a"));
    },
    path: "a/b/file",
  },
  {
    when: "a missing directory appears",
    make() {},
    change: (dir: string) => mkdirSync(join(dir, "a")),
    path: "a/b/file",
  },
  {
    when: "a file appears in the directory itself",
    make: (dir: string) => mkdirSync(join(dir, "a")),
    change: (dir: string) => writeFileSync(join(dir, "a/pod.yaml"), ""),
    path: "a",
  },
])("reports that $when", async ({ make, change, path }) => {
  const dir = tempDir();
  make(dir);
  let events = 0;
  const watch = new PathWatch(join(dir, path), () => events++);
  expect(watch.arm()).toBe(true);
  expect(watch.arm()).toBe(false);
  change(dir);
  await until("an event", () => events > 0);
  // Armed again, it follows the new way.
  watch.arm();
  watch.stop();
});

test("ignores other names on the way", async () => {
  const dir = tempDir();
  writeFileSync(join(dir, "file"), "");
  const seen: string[] = [];
  const watch = new PathWatch(join(dir, "file"), () => seen.push("event"));
  const other = new PathWatch(join(dir, "other"), () => seen.push("other"));
  watch.arm();
  other.arm();
  writeFileSync(join(dir, "other"), "");
  await until("the event of the other name", () => seen.includes("other"));
  expect(seen).not.toContain("event");
  watch.stop();
  other.stop();
});
