import { expect, test } from "bun:test";
import { mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileSlot } from "../../src/base/concurrency/file-slot.ts";
import { measureByDu, toExclusions } from "../../src/stats/disk-usage.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { mounting, tempDirs } from "../support/temp-dir.ts";

const makeDirectory = tempDirs();

test("du measures bytes and inodes, and omits what is gone", async () => {
  const directory = makeDirectory();
  const [full, odd] = [join(directory, "full"), join(directory, "-s odd name")];
  for (const path of [full, odd]) mkdirSync(path);
  writeFileSync(join(full, "file"), "x".repeat(100_000));
  const bytes = await measureByDu([full, odd, join(directory, "gone")], "bytes", new FileSlot(new FakeClock()));
  expect(bytes.get(full)).toBeGreaterThanOrEqual(100_000);
  expect([...bytes.keys()].sort()).toEqual([odd, full].sort());
  expect((await measureByDu([full], "inodes", new FileSlot(new FakeClock()))).get(full)).toBe(2);
});

const MOUNTINFO = [
  "28 1 254:0 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w",
  "40 28 0:50 / /srv/pods/a\\040b/[x]*/held rw shared:3 - tmpfs tmpfs rw",
  "41 28 0:51 / /srv/pods/abc rw - tmpfs tmpfs rw",
  "",
].join("\n");

test.each([
  { of: "/srv/pods", want: ["--exclude=/srv/pods/a b/\\[x\\]\\*/held", "--exclude=/srv/pods/abc"] },
  { of: "/srv/pods/abc", want: [] },
  { of: "/srv/pods/ab", want: [] },
])("mounts beneath $of are left out, the directory itself never", ({ of, want }) => {
  expect(toExclusions(of, of, MOUNTINFO)).toEqual([...want]);
});

test("mounts are left out by the path that was asked for, links and all", () => {
  expect(toExclusions("/link", "/srv/pods/a b", MOUNTINFO)).toEqual(["--exclude=/link/\\[x\\]\\*/held"]);
});

test.skipIf(!mounting.ok)("on an overlay of two disks files count, and mounts beneath do not", async () => {
  const directory = makeDirectory();
  const mount = (type: string, target: string, ...options: string[]) =>
    expect(Bun.spawnSync(["mount", "-t", type, ...options, type, target]).exitCode).toBe(0);
  const [lower, disk, root] = ["lower", "disk", "root"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  for (const path of [lower, disk, root]) mkdirSync(path);
  mount("tmpfs", disk);
  const [upper, work] = [join(disk, "upper"), join(disk, "work")];
  for (const path of [upper, work]) mkdirSync(path);
  writeFileSync(join(lower, "old"), "x".repeat(300_000));
  mount("overlay", root, "-o", `lowerdir=${lower},upperdir=${upper},workdir=${work}`);
  const [volume, mounted] = [join(root, "volume"), join(root, "volume", "[mounted]")];
  for (const path of [volume, mounted]) mkdirSync(path);
  writeFileSync(join(volume, "file"), "x".repeat(100_000));
  mount("tmpfs", mounted);
  writeFileSync(join(mounted, "other"), "x".repeat(1_000_000));
  const link = join(directory, "link");
  symlinkSync(directory, link);
  // The subject of the test: else it would prove nothing.
  expect(statSync(join(volume, "file")).dev).not.toBe(statSync(volume).dev);

  const linked = join(link, "root", "volume");
  const bytes = await measureByDu([root, volume, mounted, linked], "bytes", new FileSlot(new FakeClock()));
  expect(bytes.get(volume)).toBeWithin(100_000, 150_000);
  expect(bytes.get(linked)).toBeWithin(100_000, 150_000);
  expect(bytes.get(mounted)).toBeWithin(1_000_000, 1_050_000);
  expect(bytes.get(root)).toBeWithin(400_000, 500_000);
  const inodes = await measureByDu([volume, mounted], "inodes", new FileSlot(new FakeClock()));
  expect(Object.fromEntries(inodes)).toEqual({ [volume]: 2, [mounted]: 2 });
});
