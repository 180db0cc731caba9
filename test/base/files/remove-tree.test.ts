import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeTree } from "../../../src/base/files/remove-tree.ts";
import { makeDeepTree } from "../../support/deep-tree.ts";
import { PathAttacker } from "../../support/path-attacker.ts";
import { tempDirs } from "../../support/temp-dir.ts";

setDefaultTimeout(120_000);
const tempDir = tempDirs();

test("a tree with files, directories, links and names that are not UTF-8 is gone; what links lead to is not", () => {
  const base = tempDir();
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/kept"), "kept");
  mkdirSync(join(base, "tree/a/b/c"), { recursive: true });
  mkdirSync(join(base, "tree/empty"));
  writeFileSync(join(base, "tree/a/b/c/file"), "x");
  writeFileSync(Buffer.concat([Buffer.from(join(base, "tree/a/")), Buffer.from([0xff, 0x80])]), "x");
  mkdirSync(Buffer.concat([Buffer.from(join(base, "tree/a/b/")), Buffer.from([0xfe])]));
  symlinkSync(join(base, "outside"), join(base, "tree/link"));
  symlinkSync("../../outside", join(base, "tree/a/link"));
  removeTree(join(base, "tree"));
  expect(readdirSync(base)).toEqual(["outside"]);
  expect(readFileSync(join(base, "outside/kept"), "utf8")).toBe("kept");
});

test("a missing path, a missing parent, a file and a link", () => {
  const base = tempDir();
  removeTree(join(base, "nothing"));
  removeTree(join(base, "nothing/below"));
  writeFileSync(join(base, "file"), "x");
  removeTree(join(base, "file"));
  mkdirSync(join(base, "target/inner"), { recursive: true });
  symlinkSync("target", join(base, "link"));
  removeTree(join(base, "link"));
  expect(readdirSync(base)).toEqual(["target"]);
  expect(existsSync(join(base, "target/inner"))).toBe(true);
});

test("entries with the names of moved directories are removed too", () => {
  const base = tempDir();
  for (const name of [".removed-0", ".removed-1/x", "a/b/c", "a/b2/c", "d/.removed-2/x"])
    mkdirSync(join(base, "tree", name), { recursive: true });
  writeFileSync(join(base, "tree/.removed-3"), "x");
  removeTree(join(base, "tree"));
  expect(readdirSync(base)).toEqual([]);
});

test("a tree 5,000 directories deep, more than twice what a path can say, is gone", () => {
  const base = tempDir();
  mkdirSync(join(base, "tree"));
  makeDeepTree(join(base, "tree"), 5000);
  removeTree(join(base, "tree"));
  expect(readdirSync(base)).toEqual([]);
});

test("under attack nothing outside is removed", async () => {
  const base = tempDir();
  const volume = join(base, "volume");
  mkdirSync(volume);
  mkdirSync(join(base, "attacker"));
  const attacker = new PathAttacker(volume, join(base, "attacker"));
  try {
    while (!attacker.hasDoneEnough) {
      try {
        mkdirSync(join(volume, "x/in"), { recursive: true });
        removeTree(join(volume, "x"));
      } catch {
        // The attacker made an entry at the last moment.
      }
    }
  } finally {
    await attacker.stop();
  }
  expect(readFileSync(join(attacker.outside, "in/mark"), "utf8")).toBe("outside");
});

test("a tree that is not empty in time is an error", () => {
  const base = tempDir();
  mkdirSync(join(base, "tree/a/b"), { recursive: true });
  expect(() => removeTree(join(base, "tree"), 0)).toThrow("it takes too long");
});

test.skipIf(process.getuid?.() !== 0)("a mount beneath, even of the same file system, is not entered", () => {
  const base = tempDir();
  mkdirSync(join(base, "tree/mounted"), { recursive: true });
  mkdirSync(join(base, "data"));
  writeFileSync(join(base, "data/kept"), "kept");
  expect(Bun.spawnSync(["mount", "--bind", join(base, "data"), join(base, "tree/mounted")]).exitCode).toBe(0);
  try {
    expect(() => removeTree(join(base, "tree"))).toThrow(/EBUSY|is a mount point/);
    expect(readFileSync(join(base, "data/kept"), "utf8")).toBe("kept");
  } finally {
    Bun.spawnSync(["umount", join(base, "tree/mounted")]);
  }
  removeTree(join(base, "tree"));
  expect(readdirSync(base)).toEqual(["data"]);
});
