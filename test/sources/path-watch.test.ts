import { expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { PathWatch } from "../../src/sources/path-watch.ts";
import { tempDirs } from "../support/temp-dir.ts";
import { until } from "../support/until.ts";

const tempDir = tempDirs();

const replaceLink = (target: string, path: string) => {
  symlinkSync(target, `${path}.new`);
  renameSync(`${path}.new`, path);
};

/** Makes directories (undefined), files with a text, and links (`-> target`), by path. */
function lay(dir: string, entries: Record<string, string | undefined>): void {
  for (const [name, content] of Object.entries(entries)) {
    const path = join(dir, name);
    mkdirSync(content === undefined ? path : dirname(path), { recursive: true });
    if (content?.startsWith("-> ")) symlinkSync(content.slice(3), path);
    else if (content !== undefined) writeFileSync(path, content);
  }
}

type Change = (dir: string) => void;

test.each<[when: string, path: string, before: Record<string, string | undefined>, change: Change]>([
  [
    "..data is swapped, as Kubernetes writes a volume",
    "password",
    { "..1/password": "1", "..2/password": "2", "..data": "-> ..1", password: "-> ..data/password" },
    (dir) => replaceLink("..2", join(dir, "..data")),
  ],
  [
    "a link to a file elsewhere is replaced, as certbot does",
    "live/key",
    { "archive/key1": "1", "archive/key2": "2", "live/key": "-> ../archive/key1" },
    (dir) => replaceLink("../archive/key2", join(dir, "live/key")),
  ],
  [
    "the file that a link leads to is written",
    "live/key",
    { "archive/key": "1", "live/key": "-> ../archive/key" },
    (dir) => writeFileSync(join(dir, "archive/key"), "2"),
  ],
  [
    "the directory is replaced",
    "a/b/file",
    { "a/b/file": "1", "a.new/b/file": "2" },
    (dir) => {
      rmSync(join(dir, "a"), { recursive: true });
      renameSync(join(dir, "a.new"), join(dir, "a"));
    },
  ],
  ["a missing directory appears", "a/b/file", {}, (dir) => mkdirSync(join(dir, "a"))],
  [
    "a file appears in the directory itself",
    "a",
    { a: undefined },
    (dir) => writeFileSync(join(dir, "a/pod.yaml"), ""),
  ],
])("reports that %s", async (_, path, before, change) => {
  const dir = tempDir();
  lay(dir, before);
  let events = 0;
  const watch = new PathWatch(join(dir, path), () => events++);
  expect(watch.arm()).toBe(true);
  expect(watch.arm()).toBe(false);
  change(dir);
  await until("an event", () => events > 0);
  // Armed again, it watches what the path leads to now.
  watch.arm();
  watch.stop();
});

test("ignores other names in the directories above", async () => {
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
