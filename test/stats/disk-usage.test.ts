import { expect, test } from "bun:test";
import { mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FileSlot } from "../../src/base/concurrency/worker-pool.ts";
import {
  Capacities,
  DiskUsage,
  type FsCapacity,
  type MeasureDirectories,
  measureByDu,
  toExclusions,
} from "../../src/stats/disk-usage.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { mounting, tempDirs } from "../support/temp-dir.ts";

function setUp(scanMs = 0) {
  const clock = new FakeClock();
  const scans: string[][] = [];
  const measure: MeasureDirectories = async (directories, what) => {
    if (what === "bytes") scans.push([...directories]);
    if (scanMs > 0) await clock.sleep(scanMs / 2);
    return new Map(directories.map((directory) => [directory, what === "bytes" ? 4096 : 1]));
  };
  return { clock, scans, disk: new DiskUsage(clock, 60_000, new FileSlot(clock), measure) };
}

test("a request never waits; the next one has the result", async () => {
  const { disk, clock } = setUp();
  expect(disk.ask(["/a", "/a"]).size).toBe(0);
  await disk.settled();
  expect(disk.ask(["/a"]).get("/a")).toMatchObject({ usedBytes: 4096, inodesUsed: 1, at: clock.now() });
});

/** Requests for directories after so many seconds, and how many scans there were by then; without directories the scan ends. */
test.each([
  ["known values are measured again after the period, at a request", 0, "0 /a = 1, 59 /a = 1, 600 = 1, 0 /a = 2"],
  ["a new directory does not wait for the period", 0, "0 /a = 1, 2 /a /b = 2"],
  ["after a long scan there is a long rest, also for new ones", 10_000, "0 /a = 1, 10 = 1, 199 /a /b = 1, 2 /a /b = 2"],
  ["one scan at a time", 1_000, "0 /a = 1, 0 /a /b = 1, 1 = 1"],
  ["no directory, no scan", 0, "0 = 0"],
])("%s", async (_, scanMs, requests) => {
  const { disk, clock, scans } = setUp(scanMs);
  for (const request of requests.split(", ")) {
    const [seconds, ...directories] = request.split(" = ")[0]!.split(" ");
    await clock.advance(Number(seconds) * 1000);
    disk.ask(directories);
    if (scanMs === 0 || directories.length === 0) await disk.settled();
    expect(`${request.split(" = ")[0]} = ${scans.length}`).toBe(request);
  }
  if (scans.length > 1) expect(scans.at(-1)).toEqual(requests.includes("/b") ? ["/a", "/b"] : ["/a"]);
});

test("a file system is measured by its capacity alone", async () => {
  const { disk, scans } = setUp();
  disk.ask(["/a"], ["/tmp", "/nowhere"]);
  await disk.settled();
  expect(scans).toEqual([["/a"]]);
  const found = disk.ask(["/a"], ["/tmp", "/nowhere"]);
  expect([...found.keys()]).toEqual(["/a", "/tmp"]);
  const { usedBytes, inodesUsed, fs } = found.get("/tmp")!;
  expect([usedBytes, inodesUsed]).toEqual([fs!.usedBytes, fs!.inodes - fs!.inodesFree]);
});

const of = (usedBytes: number): FsCapacity => ({
  capacityBytes: 100,
  usedBytes,
  availableBytes: 100 - usedBytes,
  inodes: 0,
  inodesFree: 0,
});

/** A file system that answers when the test resolves a promise. */
function aWorld() {
  const clock = new FakeClock("2026-11-22T05:00:00Z");
  const asked: PromiseWithResolvers<FsCapacity | undefined>[] = [];
  const measure = () => {
    const next = Promise.withResolvers<FsCapacity | undefined>();
    asked.push(next);
    return next.promise;
  };
  let atOnce = 0;
  const capacities = new Capacities(clock, measure, () => {
    atOnce++;
    return of(1);
  });
  return { clock, asked, capacities, atOnce: () => atOnce };
}

test("a new path is read at once, later a thread is asked", async () => {
  const { clock, asked, capacities, atOnce } = aWorld();
  expect(capacities.last("/a")?.usedBytes).toBe(1);
  await clock.advance(10_000);
  const refreshed = capacities.refresh(["/a"]);
  asked[0]?.resolve(of(2));
  await refreshed;
  expect(capacities.last("/a")?.usedBytes).toBe(2);
  expect([atOnce(), asked.length]).toEqual([1, 1]);
});

test("a file system that hangs is waited for a second, asked once, and unknown after a minute", async () => {
  const { clock, asked, capacities, atOnce } = aWorld();
  capacities.last("/a");
  await clock.advance(10_000);
  let isDone = false;
  void capacities.refresh(["/a"]).then(() => {
    isDone = true;
  });
  await clock.advance(500);
  expect(isDone).toBe(false);
  await clock.advance(500);
  expect(isDone).toBe(true);
  expect(capacities.last("/a")?.usedBytes).toBe(1);
  await clock.advance(60_000);
  expect(capacities.last("/a")).toBeUndefined();
  expect([atOnce(), asked.length]).toEqual([1, 1]);
  asked[0]?.resolve(of(3));
  await clock.advance(0);
  expect(capacities.last("/a")?.usedBytes).toBe(3);
});

test("figures that nothing has asked for during hours are shown until the new ones are there", async () => {
  const { clock, asked, capacities } = aWorld();
  capacities.last("/a");
  await clock.advance(7_200_000);
  expect([capacities.last("/a")?.usedBytes, capacities.last("/a")?.usedBytes]).toEqual([1, 1]);
  asked[0]?.resolve(of(2));
  await clock.advance(0);
  expect(capacities.last("/a")?.usedBytes).toBe(2);
});

test("one request without an answer does not hide the figures; a minute without one does", async () => {
  const { clock, asked, capacities } = aWorld();
  capacities.last("/a");
  for (const [secondsLater, used] of [
    [30, 1],
    [40, undefined],
  ] as const) {
    await clock.advance(secondsLater * 1000);
    capacities.last("/a");
    asked.at(-1)?.resolve(undefined);
    await clock.advance(0);
    expect({ secondsLater, used: capacities.last("/a")?.usedBytes }).toEqual({ secondsLater, used });
  }
});

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
  // Without this the test would not show anything.
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
