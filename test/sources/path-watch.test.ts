import { expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { FileSlot } from "../../src/base/concurrency/worker-pool.ts";
import { PathWatch } from "../../src/sources/path-watch.ts";
import { FakeClock } from "../support/fake-clock.ts";
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
  ["a file appears in the directory", "a", { a: undefined }, (dir) => writeFileSync(join(dir, "a/pod.yaml"), "")],
])("reports that %s", async (_, path, before, change) => {
  const dir = tempDir();
  lay(dir, before);
  let events = 0;
  const watch = new PathWatch(() => events++);
  const paths = [join(dir, path)];
  expect(watch.arm(paths)).toBe(true);
  expect(watch.arm(paths)).toBe(false);
  change(dir);
  await until("an event", () => events > 0);
  // Armed again, it watches what the path leads to now.
  watch.arm(paths);
  watch.stop();
});

test("a directory below another watched one is watched again once it was replaced", async () => {
  const dir = tempDir();
  lay(dir, { "all/a": undefined, "new": undefined });
  const changed: (string | undefined)[] = [];
  const watch = new PathWatch((path) => changed.push(path));
  const paths = [join(dir, "all"), join(dir, "all/a")];
  watch.arm(paths);
  rmSync(join(dir, "all/a"), { recursive: true });
  // Most file systems give it the same inode number.
  mkdirSync(join(dir, "all/a"));
  await until("the events", () => changed.length > 1);
  expect(watch.arm(paths)).toBe(true);
  writeFileSync(join(dir, "all/a/file"), "");
  await until("an event of the new one", () => changed.includes(join(dir, "all/a/file")));
  expect([watch.arm([join(dir, "all")]), watch.arm([join(dir, "all")])]).toEqual([false, false]);
  watch.stop();
});

test("looks once a minute for changes without an event, however often it is armed; not while a path does not answer", async () => {
  const clock = new FakeClock();
  const slot = new FileSlot(clock);
  const paths = [join(tempDir(), "missing")];
  let looks = 0;
  const watch = new PathWatch(() => looks++, { clock, slot });
  for (let second = 0; second < 59; second++, await clock.advance(1_000)) watch.arm(paths);
  expect(looks).toBe(0);
  await clock.advance(1_000);
  await until("the look", () => looks === 1);
  const disk = Promise.withResolvers<void>();
  const hanging = slot.run(() => disk.promise, 1).catch(() => {});
  await clock.advance(61_000);
  await hanging;
  expect(looks).toBe(1);
  disk.resolve();
  await clock.advance(59_000);
  await until("the next look", () => looks === 2);
  watch.stop();
  expect(clock.pendingTimers).toBe(0);
});

test("ignores other names in the directories above", async () => {
  const dir = tempDir();
  writeFileSync(join(dir, "file"), "");
  const seen: string[] = [];
  const watch = new PathWatch(() => seen.push("event"));
  const other = new PathWatch(() => seen.push("other"));
  watch.arm([join(dir, "file")]);
  other.arm([join(dir, "other")]);
  writeFileSync(join(dir, "other"), "");
  await until("the event of the other name", () => seen.includes("other"));
  expect(seen).not.toContain("event");
  watch.stop();
  other.stop();
});
