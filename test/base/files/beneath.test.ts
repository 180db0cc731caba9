import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readlinkSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { descriptorPath, EscapeError, openBeneath } from "../../../src/base/files/beneath.ts";
import { PathAttacker } from "../../support/path-attacker.ts";
import { tempDirs } from "../../support/temp-dir.ts";

const tempDir = tempDirs();

/** A volume with links of every kind, next to something that must never be reached. */
function aVolume() {
  const base = tempDir();
  const volume = join(base, "volume");
  mkdirSync(join(volume, "a/b"), { recursive: true });
  mkdirSync(join(base, "outside"));
  writeFileSync(join(base, "outside/secret"), "secret");
  writeFileSync(join(volume, "file"), "x");
  symlinkSync(join(base, "outside"), join(volume, "absolute-out"));
  symlinkSync("../outside", join(volume, "relative-out"));
  symlinkSync("../../../outside", join(volume, "a/deep-out"));
  symlinkSync("/", join(volume, "slash"));
  symlinkSync(`${volume}-not`, join(volume, "same-prefix"));
  mkdirSync(`${volume}-not`);
  symlinkSync(join(volume, "a"), join(volume, "absolute-in"));
  symlinkSync("../a/b", join(volume, "a/relative-in"));
  symlinkSync(volume, join(volume, "self"));
  symlinkSync("loop", join(volume, "loop"));
  symlinkSync("/proc/self/root", join(volume, "magic"));
  symlinkSync("not-yet", join(volume, "dangling"));
  return { base, volume };
}

function whereIs(volume: string, path: string): string {
  using held = openBeneath(volume, path);
  return readlinkSync(descriptorPath(held.descriptor)).slice(volume.length);
}

test.each([
  ["", ""],
  [".", ""],
  ["a", "/a"],
  ["a//b/.", "/a/b"],
  ["a/..", ""],
  ["a/../a/b", "/a/b"],
  ["file", "/file"],
  ["absolute-in/b", "/a/b"],
  ["a/relative-in", "/a/b"],
  ["self/self/a/b", "/a/b"],
])("%p is %p", (path, want) => expect(whereIs(aVolume().volume, path)).toBe(want));

const BY_LINKS =
  "absolute-out absolute-out/secret relative-out/secret a/deep-out slash slash/etc same-prefix magic magic/etc loop";
test.each(["..", "a/../..", "../volume/a", ...BY_LINKS.split(" ")])(
  "%p leads out and is refused, to make a directory too",
  (path) => {
    const { volume, base } = aVolume();
    expect(() => openBeneath(volume, path)).toThrow(EscapeError);
    expect(() => openBeneath(volume, `${path}/new`, { mode: 0o777 })).toThrow(EscapeError);
    expect(readdirSync(join(base, "outside"))).toEqual(["secret"]);
  },
);

test("a missing component is the system's error", () => {
  expect(() => openBeneath(aVolume().volume, "a/none")).toThrow(expect.objectContaining({ code: "ENOENT" }));
  expect(() => openBeneath(aVolume().volume, "file/x")).toThrow(expect.objectContaining({ code: "ENOTDIR" }));
});

test("missing directories are made: the last with exactly the mode, those before less the umask", () => {
  const { volume } = aVolume();
  openBeneath(volume, "n/m/o", { mode: 0o2777 })[Symbol.dispose]();
  const modeOf = (path: string) => (statSync(join(volume, path)).mode & 0o7777).toString(8);
  const masked = (0o777 & ~process.umask()).toString(8);
  expect([modeOf("n"), modeOf("n/m"), modeOf("n/m/o")]).toEqual([masked, masked, "2777"]);
  openBeneath(volume, "dangling/x", { mode: 0o700 })[Symbol.dispose]();
  expect(modeOf("not-yet/x")).toBe("700");
});

test("an existing directory keeps its mode", () => {
  const { volume } = aVolume();
  const before = statSync(join(volume, "a/b")).mode;
  openBeneath(volume, "a/b", { mode: 0o777 })[Symbol.dispose]();
  expect(statSync(join(volume, "a/b")).mode).toBe(before);
});

test("no descriptor stays open, whatever happens", () => {
  const { volume } = aVolume();
  const before = readdirSync("/proc/self/fd").length;
  for (const path of ["a/b", "slash", "loop", "a/none", "..", "self/self/a", "n/m", "file/x"]) {
    try {
      openBeneath(volume, path)[Symbol.dispose]();
    } catch {
      // what is refused must close its descriptors too
    }
  }
  expect(readdirSync("/proc/self/fd")).toHaveLength(before);
});

test("against a program that exchanges the path all the time, what is opened or made is always inside", async () => {
  const { volume } = aVolume();
  const attacker = new PathAttacker(volume, tempDir());
  try {
    for (let attempt = 0; attempt < 3_000 || !attacker.hasDoneEnough; attempt++) {
      try {
        using held = openBeneath(volume, "x/in", attempt % 2 === 0 ? undefined : { mode: 0o777 });
        const real = readlinkSync(descriptorPath(held.descriptor));
        expect(real).toStartWith(`${volume}/`);
      } catch (error) {
        // Refused when a link was there, or the entry was gone, at the moment of the check.
        if (!(error instanceof EscapeError) && !(error as NodeJS.ErrnoException).code) throw error;
      }
      if (attempt % 100 === 99) await Bun.sleep(0);
    }
  } finally {
    await attacker.stop();
  }
  expect(readdirSync(attacker.outside)).toEqual(["in"]);
  expect(readdirSync(join(attacker.outside, "in"))).toEqual(["mark"]);
});
