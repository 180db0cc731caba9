import { describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileSlot } from "../../src/base/concurrency/worker-pool.ts";
import { checkForChange, type KnownFile, readManifests } from "../../src/sources/manifest-files.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { tempDirs } from "../support/temp-dir.ts";

const temp = tempDirs();
const check = (path: string, known: ReadonlyMap<string, KnownFile>) =>
  checkForChange(path, known, new FileSlot(new FakeClock()));

/** A directory with two files, and what is known of them. */
function aDirectory() {
  const directory = temp();
  const path = (name: string) => join(directory, name);
  writeFileSync(path("b.yaml"), "kind: Pod");
  writeFileSync(path("a.yaml"), "kind: Pod");
  writeFileSync(path("notes.txt"), "");
  mkdirSync(path("sub"));
  const known = new Map<string, KnownFile>();
  for (const [file, content] of readManifests(directory, new Map()).contents) {
    if (content.kind === "content") known.set(file, content);
  }
  return { directory, path, known };
}

describe("the check of a directory", () => {
  test("without a change is the same snapshot as the one of the reader", async () => {
    const { directory, known } = aDirectory();
    expect(await check(directory, known)).toEqual(readManifests(directory, known));
  });

  test.each<[string, (path: (name: string) => string) => void]>([
    ["a file is written", (path) => writeFileSync(path("a.yaml"), "kind: Pod # new")],
    ["a file is added", (path) => writeFileSync(path("c.yaml"), "x")],
    [
      "a file is replaced by one of the same text",
      (path) => {
        writeFileSync(path(".new"), "kind: Pod");
        renameSync(path(".new"), path("a.yaml"));
      },
    ],
    ["a link leads nowhere", (path) => symlinkSync("/nowhere", path("c.yaml"))],
  ])("sees when %s", async (_, change) => {
    const { directory, path, known } = aDirectory();
    change(path);
    expect(await check(directory, known)).toBeUndefined();
  });

  test("a file that must be read again is returned without its text while that is the same, else without unused bytes", () => {
    const { directory, path, known } = aDirectory();
    const young = new Map([...known].map(([file, { hash }]) => [file, { hash }]));
    writeFileSync(path("b.yaml"), "kind: Pod # new");
    const { contents } = readManifests(directory, young);
    const { identity } = known.get(path("a.yaml"))!;
    expect(contents.get(path("a.yaml"))).toEqual({ kind: "same", identity: identity! });
    const changed = contents.get(path("b.yaml"));
    expect(changed?.kind === "content" && changed.bytes.buffer.byteLength).toBe(15);
  });

  test("a file that is gone is missing from the listing, as for the reader", async () => {
    const { directory, path, known } = aDirectory();
    unlinkSync(path("b.yaml"));
    expect(await check(directory, known)).toEqual(readManifests(directory, known));
  });

  test("files of which nothing is known have to be read", async () => {
    const { directory, path } = aDirectory();
    expect(await check(directory, new Map())).toBeUndefined();
    expect(await check(path("a.yaml"), new Map())).toBeUndefined();
  });

  test("an empty directory, a single file, a path or the target of a link that is missing need no thread", async () => {
    const { path, known } = aDirectory();
    symlinkSync("/nowhere", path("dangling"));
    for (const it of [temp(), path("sub"), path("a.yaml"), path("none"), path("dangling")]) {
      const snapshot = await check(it, known);
      expect(snapshot).toBeDefined();
      expect(snapshot).toEqual(readManifests(it, known));
    }
    expect(await check(temp(), new Map())).toBeDefined();
  });
});

test("a check that waits for a disk that hangs is given up after a second", async () => {
  const clock = new FakeClock("2026-11-22T05:00:00Z");
  const slot = new FileSlot(clock);
  const hanging = Promise.withResolvers<void>();
  void slot.run(() => hanging.promise, 60_000);
  const check = checkForChange(temp(), new Map(), slot);
  await clock.advance(1_000);
  expect(await check).toBeUndefined();
  hanging.resolve();
});
